/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `compile --device`: a folder that a C program runs without scrimp and without a compiler, on the
 * simulated device (tests/cuda/sim): the losses and weights of the step for the host, bit for bit;
 * what it says where it cannot run. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* SCRIMP_CUDA_REAL, even empty: the machine's own device (tests/gpu/run.sh). */
#define HERE    "cd $TMP && " SIMULATED
#define COMPILE "$SCRIMP compile --exact $EXAMPLES/mlp.scrimp -D N=20 "
#define BUILD   "gcc -O2 -std=c11 -Wall -Wextra -Werror -DSTEPS=4 "

static void test_example(void)
{
    expect_run(0, "names begin with step_", "cd $TMP && " COMPILE "-o step.so --header step.h");
    expect_ok("cd $TMP && " BUILD "-I. $EXAMPLES/aot/train_mlp.c ./step.so -lm -o host && "
              "./host host.w > host.txt");
    expect_run(0, "wrote the folder dev/step",
               HERE "sh -c 'mkdir dev && " COMPILE "--device $ARCHS -o dev/step/'");
    expect_ok("cd $TMP && " BUILD "-Idev/step $EXAMPLES/aot/train_mlp.c -Ldev/step -l:step.so "
              "-Wl,-rpath,'$ORIGIN' -lm -o program");
    /* The folder may be moved, and nothing compiles. */
    expect_ok(
        "cd $TMP && mv dev/step elsewhere && mv program elsewhere && mkdir only && "
        "if test ! \"${SCRIMP_CUDA_REAL+x}\"; then cp $SCRIMP_BUILD/cuda-sim/libcuda.so.1 "
        "only; fi && SCRIMP_CUDA_PATH=only PATH=/none elsewhere/program device.w > device.txt");
    expect_ok("cd $TMP && cmp host.txt device.txt && cmp host.w device.w && test -s host.w");
    expect_ok("cd $TMP && ! ldd elsewhere/step.so | grep -e gccjit -e scrimp -e cuda");
}

/* What a second export leaves no trace of; two steps in one program, on two threads; C++. */
static void test_again(void)
{
    expect_ok(HERE "sh -c '" COMPILE "--device cuda -o two --name a && ls two/sm_90 > first && "
                   "$SCRIMP compile --exact $EXAMPLES/mlp.scrimp -D N=24 --device sm_90 -o two "
                   "--name b && ls two/sm_90 > second && ! cmp first second && "
                   "test $(ls two/sm_90 | wc -l) = $(grep -c cubin two/manifest.json)'");
    expect_ok(HERE "sh -c '" COMPILE "--device sm_90 -o one'");
    expect_ok(
        "cd $TMP && printf '#include \"one.h\"\\n#include \"b.h\"\\n#include <pthread.h>\\n"
        "static void *run(void *c) { "
        "return one_train_step((one_Context *)c, 0.1f, 0, 1) ? c : NULL; }\\n"
        "int main(void) { one_Context c; b_Context d; pthread_t t; void *ran = NULL; "
        "int ok = one_open(&c) && b_open(&d) && "
        "one_initialize(&c, 1) && b_initialize(&d, 1) && b_train_step(&d, 0.1f, 0, 1) && "
        "pthread_create(&t, NULL, run, &c) == 0 && pthread_join(t, &ran) == 0 && ran; "
        "one_close(&c); b_close(&d); return !ok || one_fetch(&c); }' > both.c && "
        "gcc -pthread -Ione -Itwo both.c ./one/one.so ./two/b.so -lm -o both && "
        "SCRIMP_CUDA_PATH=$SCRIMP_BUILD/cuda-sim ./both && "
        "if command -v g++ > o; then g++ -pthread -x c++ -Ione -Itwo both.c -x none ./one/one.so "
        "./two/b.so -o both && SCRIMP_CUDA_PATH=$SCRIMP_BUILD/cuda-sim ./both; fi");
}

static void test_faults(void)
{
    static const struct {
        const char *said, *command;
    } rows[] = {
        {"elsewhere/manifest.json is of another step",
         "sed -i 's/\"key\": \"/&0/' elsewhere/manifest.json && $RUN; code=$?; "
         "sed -i 's/\"key\": \"0/\"key\": \"/' elsewhere/manifest.json; exit $code"},
        {".cubin is not the file that was compiled",
         "for f in elsewhere/sm_90/*; do printf x | dd of=$f bs=1 seek=9000 conv=notrunc; done "
         "2> o; $RUN"},
        {"cannot read", "rm elsewhere/sm_90/*; $RUN"},
        {"the arena needs", "SCRIMP_SIM_BYTES=1000000 $RUN"},
        {"cannot read", "rm elsewhere/manifest.json; $RUN"},
        {"compiled: sm_100 and others",
         COMPILE "--device sm_100,sm_80 -o step && " BUILD
                 "-Istep $EXAMPLES/aot/train_mlp.c step/step.so -lm -o other && ./other"},
        {"install NVIDIA's driver 580 or newer, or NVRTC of CUDA 12",
         "rm -r step && SCRIMP_SIM_NVRTC=13 " COMPILE "--device sm_90 -o step && " BUILD
         "-Istep $EXAMPLES/aot/train_mlp.c step/step.so -lm -o other && "
         "SCRIMP_SIM_DRIVER=12040 ./other"},
    };
    setenv("RUN", "elsewhere/program", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[1000];
        snprintf(command, sizeof command,
                 "cd $TMP && export SCRIMP_CUDA_PATH=$SCRIMP_BUILD/cuda-sim && %s",
                 rows[i].command);
        expect_run(1, rows[i].said, command);
    }
    expect_run(1, "there is no such device", COMPILE "--device sm_80,cuda -o $TMP/x");
    expect_run(1, "there is no such device",
               "$SCRIMP train $EXAMPLES/mlp.scrimp --device sm_80,sm_90");
    expect_run(1, "cannot write", COMPILE "--device sm_80 -o $TMP/none/x");
    expect_run(1, "there is no such device", COMPILE "--device sm_80, -o $TMP/x");
    /* A manifest is of what lies beside it: one that could not be written is not there. */
    expect_run(1, "cannot write",
               "cd $TMP && rm step/step.so && mkdir -p step/step.so/x && " SIMULATED COMPILE
               "--device sm_80 -o step");
    expect_run(1, "", "test -e $TMP/step/manifest.json");
    if (access("/dev/nvidia0", F_OK) != 0)
        expect_run(1, "--device sm_90 names what to compile for",
                   "SCRIMP_CUDA_PATH=$TMP " COMPILE "--device cuda -o $TMP/x");
}

int main(void)
{
    e2e_begin();
    if (run("command -v gcc").code != 0)
        return e2e_end() ? 1 : 77;
    bool real = getenv("SCRIMP_CUDA_REAL") != NULL;
    setenv("ARCHS", real ? "cuda" : "sm_80,sm_90", 1);
    test_example();
    if (!real) {
        test_again();
        test_faults();
    }
    return e2e_end();
}
