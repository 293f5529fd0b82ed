/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saving as a user meets it: file systems without links, disks that are slower than the steps. */
#include "e2e.h"
#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* False where there is no LD_PRELOAD. */
static bool have_library(const char *variable)
{
    const char *path = getenv(variable);
    if (!*path)
        return false;
    EXPECT(access(path, R_OK) == 0, path);
    return true;
}

/* Training, resuming and reading are the same where a second name has to be a copy. */
static void test_no_links(void)
{
    if (!have_library("NO_LINKS"))
        return;
    write_tiny_model(8, 2);
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/links -q");
    expect_run(0, NULL,
               "LD_PRELOAD=$NO_LINKS $SCRIMP train $TMP/tiny.scrimp --out $TMP/none --steps 4 -q");
    expect_run(0, NULL,
               "LD_PRELOAD=$NO_LINKS $SCRIMP train $TMP/tiny.scrimp --out $TMP/none --resume -q");
    expect_run(0, NULL, "cmp $TMP/links/model.safetensors $TMP/none/model.safetensors");
    expect_run(0, NULL, "test $(stat -c %h $TMP/none/model.safetensors) = 1"); /* no link indeed */
    expect_run(0, NULL, "test $(stat -c %h $TMP/links/model.safetensors) = 2");
}

/* Saves that take longer than what is between them: every one is made, in order, and the run says
 * what it waits for. */
static void test_late_disk(void)
{
    if (!have_library("LATE_DISK"))
        return;
    write_tiny_model(6, 1);
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/quick -q");
    Result r =
        run("RENAMED=$TMP/renamed LD_PRELOAD=$LATE_DISK $SCRIMP train $TMP/tiny.scrimp --out "
            "$TMP/late");
    EXPECT(r.code == 0 && strstr(r.err, "the run waits for every save"), r.err);
    result_free(&r);
    expect_run(0, NULL, "test $(grep -c 'late/trainer.json$' $TMP/renamed) = 6");
    expect_run(0, NULL,
               "for i in 1 2 3 4 5 6; do echo $TMP/late/model-000000000$i.safetensors; done > "
               "$TMP/wanted; grep /model-0 $TMP/renamed | cmp - $TMP/wanted");
    expect_run(0, NULL, "cmp $TMP/quick/model.safetensors $TMP/late/model.safetensors");
}

int main(void)
{
    e2e_begin();
    test_no_links();
    test_late_disk();
    return e2e_end();
}
