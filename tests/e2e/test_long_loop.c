/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A recurrence over 4,096 tokens stays a loop from the model to the kernels: it has few of them,
 * and trains to the same bits in a fifth of the bytes. */
#include "e2e.h"

#include <stdio.h>

#define SSM "$EXAMPLES/ssm.scrimp -D N=1 -D T=%d "

static json_t *compiled(int tokens)
{
    return run_json(0, "$SCRIMP bench " SSM "--steps 1 --json", tokens);
}

/* The number of kernels says what a compiler's time goes into, whatever the machine. */
static void test_kernels(void)
{
    json_t *few = compiled(16), *many = compiled(4096);
    size_t kernels = json_array_size(json_object_get(few, "kernels"));
    char text[64];
    snprintf(text, sizeof text, "%zu", json_array_size(json_object_get(many, "kernels")));
    EXPECT(kernels > 0 && json_array_size(json_object_get(many, "kernels")) <= kernels + 8, text);
    json_decref(few);
    json_decref(many);
}

static void train(const char *budget, const char *out)
{
    Result r =
        run("$SCRIMP train -q " SSM "--data $TMP/text.txt --budget %s --steps 2 --out $TMP/%s",
            4096, budget, out);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void test_same_bits(void)
{
    make_text(in_tmp("text.txt"), 100000);
    train("100%", "all");
    train("20%", "fifth");
    expect_ok("cmp $TMP/all/model.safetensors $TMP/fifth/model.safetensors");
}

int main(void)
{
    e2e_begin();
    test_kernels();
    test_same_bits();
    return e2e_end();
}
