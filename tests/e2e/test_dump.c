/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A dump of what passes have made begins with a comment: the `scrimp opt` line that makes the same
 * bytes of the model's IR.  The line is run. */
#include "e2e.h"

#include <string.h>

typedef struct Case {
    const char *model, *defs, *stage, *options;
} Case;

static const Case cases[] = {
    {"mlp", "", "grad", ""},
    {"mlp", "", "plan", "--budget min --no-loc"},
    {"convnet", "-D N=4", "remat", "--budget 60%"},
    {"convnet", "-D N=4", "plan", "--budget 80% --solver chen --no-masks"},
    {"convnet", "-D N=4", "plan", "--device cuda --exact"},
    {"chargpt", "-D L=2", "plan", "--budget 40%"},
    {"chargpt", "-D L=2", "plan", "--budget 60% --cost flops --objective memory --no-attention"},
    {"densenet", "-D depth=121 -D size=64 -D N=2", "plan", "--budget 60% --effort 0.05"},
    {"densenet", "-D depth=121 -D size=64 -D N=2", "remat",
     "--budget 60% --effort 0.05 --no-views"},
};

/* Runs the first comment of $TMP/dump that is such a line, on $TMP/FILE.ir. */
#define RUN_LINE                                                                                   \
    "cd $TMP && grep -m 1 '^# scrimp opt' dump | sed \"s|^# scrimp|$SCRIMP|\" > line && "          \
    "test -s line && sh ./line > again && cmp dump again"

static void make_ir(const char *model, const char *defs)
{
    Result r = run("$SCRIMP dump $EXAMPLES/%s.scrimp %s --stage=ir > $TMP/FILE.ir", model, defs);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void test_line(const Case *c)
{
    make_ir(c->model, c->defs);
    Result r = run("$SCRIMP dump $EXAMPLES/%s.scrimp %s --stage=%s %s > $TMP/dump", c->model,
                   c->defs, c->stage, c->options);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    r = run(RUN_LINE);
    EXPECT(r.code == 0, r.out);
    result_free(&r);
}

/* Every section of --print-after-all is what its own line makes, or says that the graph is as it
 * was, which the same passes without the last show; the first is the model's IR. */
static void test_after_all(void)
{
    make_ir("mlp", "-D N=8");
    expect_ok("cd $TMP && $SCRIMP dump $EXAMPLES/mlp.scrimp -D N=8 --budget min --print-after-all "
              "> all && awk '/^# before/ {n = 0; next} /^# after .*: unchanged$/ {print ++n > "
              "\"same\"; next} /^# after/ {n++; next} {print > (\"part\" n)}' all && "
              "cmp part0 FILE.ir && test $(cat same | wc -l) -gt 5");
    Result r = run("cd $TMP && cp part0 last && p=$(grep '^# scrimp opt' all | tail -1 | "
                   "sed \"s/.*-p '\\(.*\\)'.*/\\1/\") && for k in $(seq 18); do "
                   "$SCRIMP opt -p \"$(echo \"$p\" | cut -d, -f1-$k)\" FILE.ir > again || exit 1; "
                   "tail -n +2 again > graph; if grep -qx $k same; then cmp graph last || exit 1; "
                   "else cmp part$k again && ! cmp -s graph last || exit 1; cp graph last; fi; "
                   "done; echo $k");
    EXPECT(r.code == 0 && strcmp(r.out, "18\n") == 0, r.out);
    result_free(&r);
    expect_said(0, "# after remat (",
                "$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=remat "
                "--print-after-all");
    expect_run(1, "E407", "$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=ast --print-after-all");
    expect_run(1, "E407", "$SCRIMP dump $EXAMPLES/mlp.scrimp --dot --print-after-all");
    expect_run(1, "E407", "$SCRIMP dump $EXAMPLES/mlp.scrimp --diff ir..grad --print-after-all");
}

/* No passes, no line; a device's libraries: none either, and it says why. */
static void test_no_line(void)
{
    expect_ok("! $SCRIMP dump $EXAMPLES/mlp.scrimp --stage=ir | grep '^#'");
    expect_ok("! $SCRIMP dump $EXAMPLES/mlp.scrimp --stage=grad --dot | grep '^#'");
    expect_said(0, "# no `scrimp opt` line",
                "SCRIMP_CUDA_PATH=$(dirname $SCRIMP)/cuda-sim $SCRIMP dump --stage=plan "
                "--device sm_80 $EXAMPLES/mlp.scrimp");
}

/* A pass that does not run is no empty answer. */
static void test_dump_after(void)
{
#define AFTER "$SCRIMP dump $EXAMPLES/mlp.scrimp --dump-after "
    expect_run(1, "help: add --stage=grad", AFTER "fold");
    expect_run(1, "no pass runs for --stage=ir", AFTER "all");
    expect_run(1, "does not run for --stage=grad", AFTER "remat --stage=grad");
    expect_run(1, "help: add --stage=remat", AFTER "remat --stage=grad");
    expect_run(1, "help: add --stage=plan", AFTER "views --stage=remat");
    expect_run(1, "leave --no-masks out", AFTER "masks --stage=plan --no-masks");
    expect_run(1, "help: add --stage=grad", AFTER "fold --stage=ast");
    expect_run(1, "E407", AFTER "fold --stage=grad --json");
    expect_run(1, "help: add --stage=remat", AFTER "remat --diff ir..grad");
    expect_run(0, "# after remat", AFTER "remat --diff grad..remat");
    make_ir("mlp", "");
    expect_run(1, "name it in --passes", "$SCRIMP opt -p cse --dump-after fold $TMP/FILE.ir");
    expect_run(0, "# after fold", "$SCRIMP opt -p cse,fold --dump-after fold $TMP/FILE.ir");
}

static void test_arguments(void)
{
    make_ir("mlp", "");
#define OPT "$SCRIMP opt $TMP/FILE.ir -p "
    expect_run(1, "effort=0 is not a number above 0", OPT "'remat(effort=0)'");
    expect_run(1, "effort=1x is not a number", OPT "'remat(effort=1x)'");
    expect_run(1, "views=maybe is not yes or no", OPT "'remat(views=maybe)'");
    expect_run(1, "remat takes budget", OPT "'remat(threads=2)'");
}

int main(void)
{
    e2e_begin();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        test_line(&cases[k]);
    test_after_all();
    test_dump_after();
    test_no_line();
    test_arguments();
    return e2e_end();
}
