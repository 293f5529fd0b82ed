/* Recomputation is invisible: every example with every solver, at one and two threads.
 * slow_verify.c goes through all combinations. */
#include "verify_example.h"

static const char *const examples[] = {"mlp.scrimp -D N=16", "convnet.scrimp -D N=8",
                                       "resnet.scrimp -D depth=18 -D size=32 -D N=2 -D classes=10",
                                       "chargpt.scrimp -D N=2 -D L=2 -D p=0.1"};

int main(void)
{
    e2e_begin();
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
        verify_example(examples[e], "", "60%", 1);
        verify_example(examples[e], "", "min", 2);
        verify_example(examples[e], "chen", "80%", 2);
        verify_example(examples[e], "kusumoto_approx", "40%", 1);
    }
    verify_example("convnet.scrimp -D N=8", "", "100%", 2); /* masks against whole tensors */
    return e2e_end();
}
