/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans in the kernel cache: the second run reads what the first one found, answers are the same,
 * and a file that is damaged, foreign or in the way does no harm. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define MODEL "$EXAMPLES/ffn.scrimp -D N=256 -D width=64 -D layers=8"
#define PLAN  "$SCRIMP plan " MODEL " --json --cache $TMP/cache"

static int n_plans(void)
{
    Result r = run("ls $TMP/cache 2>/dev/null | grep -c 'plans$'");
    int n = -1;
    EXPECT(sscanf(r.out, "%d", &n) == 1, r.err);
    result_free(&r);
    return n;
}

/* The answer of a search goes to $TMP/NAME, but for the time it took. */
static void plan_to(const char *name, const char *options)
{
    char command[600];
    snprintf(command, sizeof command,
             PLAN " %s > $TMP/json && sed 's/\"solve_seconds\": [^,}]*//' $TMP/json > $TMP/%s",
             options, name);
    expect_ok(command);
}

static void test_kept(void)
{
    expect_ok("mkdir -p $TMP/cache");
    plan_to("searched", "--budget 60% --no-cache");
    plan_to("limited", "--budget 60% --time-limit 1000");
    expect_ok("$SCRIMP dump " MODEL " --stage=remat --budget 60% > $TMP/dump");
    EXPECT(n_plans() == 0, "nothing is kept with --no-cache, a time limit, or by dump");
    plan_to("whole", "--budget 100%");
    EXPECT(n_plans() == 0, "a step that fits as it is is not searched");
    plan_to("first", "--budget 60%");
    EXPECT(n_plans() == 1, "the search is kept");
    expect_ok("cp $TMP/cache/*.plans $TMP/kept");
    plan_to("second", "--budget 60%");
    expect_ok("cd $TMP && cmp searched first && cmp searched second && cmp searched limited");
    plan_to("min", "--budget min");
    plan_to("min_searched", "--budget min --no-cache");
    expect_ok("cd $TMP && cmp min min_searched && ! ls cache | grep tmp");
    EXPECT(n_plans() == 1, "it answers every budget");
    expect_ok("SCRIMP_CACHE=$TMP/cache $SCRIMP bench " MODEL " --steps 1 --budget 60%");
    EXPECT(n_plans() == 1, "and every verb");
    plan_to("other", "--budget 60% --effort 0.5");
    EXPECT(n_plans() == 2, "other options are other questions");
    plan_to("tree", "--budget min --solver twremat");
    int n = n_plans();
    EXPECT(n > 2, "answers of another solver");
    plan_to("tree_again", "--budget min --solver twremat");
    EXPECT(n_plans() == n, "which are found again");
    expect_ok("cd $TMP && cmp tree tree_again && rm cache/*.plans");
}

/* The one file, spoilt by a command; the answer and the file are as before. */
static void test_spoilt(const char *how)
{
    char command[600];
    plan_to("first", "--budget 60%");
    snprintf(command, sizeof command, "f=$(ls $TMP/cache/*.plans); %s", how);
    expect_ok(command);
    plan_to("again", "--budget 60%");
    expect_ok("cd $TMP && cmp searched again && cmp kept cache/*.plans");
}

/* The oldest plans go when they are too many; kernels stay. */
static void test_bound(void)
{
    expect_ok("rm $TMP/cache/*.plans; n=$(ls $TMP/cache | wc -l); echo $n > $TMP/n; test $n -gt 0");
    expect_ok("cd $TMP/cache; for i in $(seq 10 80); do f=$(printf %032d.plans $i); "
              "truncate -s 1M $f; touch -d \"$((100 - i)) hours ago\" $f; done; "
              "touch $(printf %032d.plans 15)");
    plan_to("again", "--budget 60%");
    expect_ok("cd $TMP && cmp searched again; for f in cache/*.plans; do cmp -s $f kept && exit 0; "
              "done; exit 1");
    int n = n_plans();
    EXPECT(n >= 60 && n <= 64, "64 MiB");
    expect_ok("test -e $TMP/cache/$(printf %032d.plans 15) && rm $TMP/cache/*.plans && "
              "test $(ls $TMP/cache | wc -l) = $(cat $TMP/n)");
}

/* Planning does without. */
static void test_unusable(void)
{
    expect_ok("$SCRIMP plan " MODEL " --budget 60% --cache /dev/null/x > $TMP/o");
    expect_ok("env -u HOME -u SCRIMP_CACHE -u XDG_CACHE_HOME TMPDIR=$TMP/cache $SCRIMP plan " MODEL
              " --budget 60% > $TMP/o && ! ls $TMP/cache | grep scrimp-");
    expect_ok(PLAN " --budget 60% > $TMP/o; f=$(ls $TMP/cache/*.plans); rm $f; mkdir $f; " PLAN
                   " --budget 60% > $TMP/o");
}

int main(void)
{
    e2e_begin();
    test_kept();
    test_spoilt("true");
    test_spoilt("echo x > $f");
    test_spoilt(": > $f");
    test_spoilt("truncate -s -1 $f");
    test_spoilt("printf '\\001' | dd of=$f bs=1 seek=100 conv=notrunc 2>/dev/null");
    test_spoilt("head -c 1000 /dev/zero > $f");
    test_bound();
    test_unusable();
    return e2e_end();
}
