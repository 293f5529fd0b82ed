/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps ahead of time as a C programmer meets them: two in one program, names, threads. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

static void write_file(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void write_model(const char *name, int width)
{
    char text[1000];
    snprintf(text, sizeof text,
             "model m(x: f32[64, 16]) { return x |> fc1: linear(%d) |> tanh() |> fc2: linear(10) "
             "}\n"
             "train {\n"
             "  batch = synthetic(x = f32[64, 16], label = i32[64])\n"
             "  loss  = cross_entropy(m(batch.x), batch.label)\n"
             "  optim = sgd(lr = 0.1)\n"
             "  steps = 12\n"
             "}\n",
             width);
    write_file(name, text);
}

/* Trains a step on data of its own; the macro stands for what a user writes for each. */
static const char train_program[] =
    "#include <stdio.h>\n"
    "#define TRAIN(NAME, losses) do { \\\n"
    "    NAME##_Context ctx; uint64_t state = 1; \\\n"
    "    if (!NAME##_open(&ctx)) return 1; \\\n"
    "    NAME##_initialize(&ctx, 1); \\\n"
    "    const NAME##_Tensor *x = NAME##_tensor(\"input\", \"batch.x\"); \\\n"
    "    const NAME##_Tensor *label = NAME##_tensor(\"input\", \"batch.label\"); \\\n"
    "    const NAME##_Tensor *loss = NAME##_tensor(\"output\", \"loss\"); \\\n"
    "    for (int i = 0; i < 64 * 16; i++) \\\n"
    "        ((float *)(ctx.arena + x->offset))[i] = (float)NAME##_uniform(&state); \\\n"
    "    for (int i = 0; i < 64; i++) ((int32_t *)(ctx.arena + label->offset))[i] = i % 10; \\\n"
    "    for (int s = 0; s < 5; s++) { \\\n"
    "        NAME##_train_step(&ctx, 0.1f, s, 1); \\\n"
    "        memcpy(&losses[s], ctx.arena + loss->offset, 4); \\\n"
    "    } \\\n"
    "    free(ctx.arena); free(ctx.threads); \\\n"
    "} while (0)\n";

static void test_two_steps(void)
{
    char text[4000];
    write_model("small.scrimp", 24);
    write_model("large.scrimp", 40);
    expect_run(0, "names begin with small_",
               "cd $TMP && $SCRIMP compile small.scrimp -o small.so --header small.h");
    expect_run(0, "names begin with big",
               "cd $TMP && $SCRIMP compile large.scrimp --name big -o large.so --header large.h");
    snprintf(text, sizeof text,
             "#include \"small.h\"\n#include \"large.h\"\n%s"
             "int main(void)\n{\n    float a[5], b[5];\n"
             "    TRAIN(small, a);\n    TRAIN(big, b);\n"
             "    for (int s = 0; s < 5; s++) printf(\"%%a %%a\\n\", (double)a[s], (double)b[s]);\n"
             "    return small_TENSORS == big_TENSORS && small_ARENA_BYTES < big_ARENA_BYTES && "
             "a[4] < a[0] && b[4] < b[0] && a[0] != b[0] ? 0 : 1;\n}\n",
             train_program);
    write_file("two.c", text);
    expect_run(0, NULL,
               "cd $TMP && gcc -O2 -std=c11 -Wall -Wextra -Werror -I. two.c ./small.so ./large.so "
               "-lm -o two && ./two > two.txt");
    /* In the other order, and with threads: the same bits. */
    expect_run(0, NULL,
               "cd $TMP && gcc -O2 -std=c11 -fopenmp -I. two.c ./large.so ./small.so -lm -o owt && "
               "./owt > owt.txt && cmp two.txt owt.txt");
    /* Nothing else is seen of an object, and nothing of scrimp is needed. */
    expect_run(0, NULL,
               "cd $TMP && test \"$(nm -D --defined-only large.so | cut -d' ' -f3)\" = big_step && "
               "! ldd large.so | grep -e gccjit -e scrimp");
    expect_run(
        0, NULL,
        "cd $TMP && if command -v g++ > o; then echo '#include \"small.h\"' > two.cc && echo "
        "'int main() { small_Context c; return !small_open(&c); }' >> two.cc && g++ -I. "
        "two.cc ./small.so -o cc && ./cc; fi");
}

static void test_names(void)
{
    expect_run(0, NULL,
               "cd $TMP && mkdir d && $SCRIMP compile small.scrimp -o d/3-d.v2.so "
               "--header d/x.h && grep -q ' step_3_d_v2_step(' d/x.h");
    expect_run(1, "--name 3d: not an identifier of C",
               "cd $TMP && $SCRIMP compile small.scrimp --name 3d");
    expect_run(1, "its NAME is empty", "cd $TMP && $SCRIMP compile small.scrimp --name ''");
    expect_run(0, NULL,
               "cd $TMP/d && $SCRIMP compile - < ../small.scrimp && grep -q ' step_step(' "
               "step.h && ! ls | grep tmp");
}

/* More threads than there were when the memory was made: none runs without scratch of its own. */
static void test_more_threads_later(void)
{
    char text[4000];
    snprintf(text, sizeof text,
             "#include \"small.h\"\n#include <stdio.h>\n"
             "static int bad, calls;\nstatic char *first, *last;\n"
             "static void look(char *const *buf, int64_t begin, int64_t end, char *scratch)\n{\n"
             "    (void)buf;\n"
             "    if (scratch < first || scratch + small_SCRATCH_BYTES > last) bad = 1;\n"
             "#pragma omp atomic\n    calls += (int)(end - begin);\n}\n"
             "int main(void)\n{\n    small_Context ctx;\n    omp_set_num_threads(2);\n"
             "    if (!small_open(&ctx)) return 1;\n"
             "    first = (char *)ctx.threads;\n"
             "    last = first + 4096 + 2 * small_SCRATCH_BYTES;\n"
             "    omp_set_dynamic(0);\n    omp_set_num_threads(16);\n"
             "    small_run(&ctx, 0, look, NULL, 1000);\n"
             "#pragma omp parallel num_threads(1)\n    small_run(&ctx, 0, look, NULL, 1000);\n"
             "    omp_set_num_threads(1);\n    small_run(&ctx, 0, look, NULL, 1000);\n"
             "    return bad || calls != 3000;\n}\n");
    write_file("more.c", text);
    expect_run(0, NULL, "cd $TMP && gcc -O1 -fopenmp -I. more.c ./small.so -lm -o more && ./more");
}

/* What `initialize` draws is of the distribution that the model names. */
static void test_initial_values(void)
{
    write_file("init.scrimp",
               "model m(x: f32[4, 3]) { return x |> fc: linear(2, init = normal(0, mean = 3)) }\n"
               "train {\n  batch = synthetic(x = f32[4, 3], label = i32[4])\n"
               "  loss  = cross_entropy(m(batch.x), batch.label)\n"
               "  optim = sgd(lr = 0.1)\n  steps = 2\n}\n");
    write_file("init.c", "#include \"init.h\"\n"
                         "int main(void)\n{\n    init_Context ctx;\n"
                         "    if (!init_open(&ctx) || !init_initialize(&ctx, 1)) return 2;\n"
                         "    const init_Tensor *w = init_tensor(\"param\", \"fc.weight\");\n"
                         "    for (int i = 0; i < 6; i++)\n"
                         "        if (((float *)(ctx.arena + w->offset))[i] != 3) return 1;\n"
                         "    return 0;\n}\n");
    expect_run(0, NULL,
               "cd $TMP && $SCRIMP compile init.scrimp -o init.so --header init.h && "
               "gcc -O1 -I. init.c ./init.so -lm -o init && ./init");
}

int main(void)
{
    e2e_begin();
    if (run("command -v gcc").code != 0)
        return 77;
    test_two_steps();
    test_names();
    test_initial_values();
    test_more_threads_later();
    return e2e_end();
}
