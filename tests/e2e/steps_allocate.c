/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "steps_allocate.h"

#include "e2e.h"
#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Allocations {
    long own, of_libraries, not_given_back;
} Allocations;

static long number_after(const char *text, const char *what)
{
    const char *at = text ? strstr(text, what) : NULL;
    return at ? strtol(at + strlen(what), NULL, 10) : -1;
}

/* options: the model and whatever else. */
static Allocations count_allocations(const char *options, int steps)
{
    Result r = run("cd $TMP && $(dirname $SCRIMP)/tests/e2e/scrimp_counting train %s --threads 2 "
                   "--steps %d",
                   options, steps);
    Allocations a = {number_after(r.err, "allocations: "),
                     number_after(r.err, "of picture libraries: "), -1};
    const char *libraries = strstr(r.err, "of picture libraries: ");
    a.not_given_back = number_after(libraries, ", ");
    EXPECT(r.code == 0 && a.own > 0 && libraries, r.err);
    result_free(&r);
    return a;
}

void expect_no_more(const char *options, int few, int many)
{
    count_allocations(options, 2); /* compiles */
    Allocations a = count_allocations(options, few), b = count_allocations(options, many);
    char detail[300];
    snprintf(detail, sizeof detail,
             "%s: %ld allocations in %d steps, %ld in %d; of picture libraries %ld and %ld",
             options, a.own, few, b.own, many, a.of_libraries, b.of_libraries);
    EXPECT(a.own == b.own && a.own > 100, detail);
    EXPECT(a.not_given_back == 0 && b.not_given_back == 0, detail);
    printf("%s\n", detail);
}

void expect_no_allocation(int few, int many)
{
    write_tiny_model(1000000, 0);
    expect_no_more("tiny.scrimp --log log", few, many);
    expect_no_more("tiny.scrimp --log log.csv --tensorboard board.$$", few, many);
}
