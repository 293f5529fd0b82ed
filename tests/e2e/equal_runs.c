/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "equal_runs.h"

#include "e2e.h"

void expect_equal_runs(const char *a, const char *b)
{
    Result r = run("cmp $TMP/%s/model.safetensors $TMP/%s/model.safetensors && "
                   "cmp $TMP/%s/optimizer-*.safetensors $TMP/%s/optimizer-*.safetensors",
                   a, b, a, b);
    EXPECT(r.code == 0, *r.out ? r.out : r.err);
    result_free(&r);
}

void expect_equal_steps(const char *a, const char *b)
{
    Result r = run("cd $TMP && for f in %s %s; do sed 's/, \"seconds.*//' $f.log > $f.rows; done; "
                   "cmp %s.rows %s.rows",
                   a, b, a, b);
    EXPECT(r.code == 0, *r.out ? r.out : r.err);
    result_free(&r);
    expect_equal_runs(a, b);
}
