/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The examples of today's models have the parameters that the public implementations have, by name
 * count and by number; those that need no data train a step. */
#include "e2e.h"
#include "verify_example.h"

#include <stdio.h>
#include <string.h>

typedef struct Row {
    const char *example;
    long long parameters; /* that are trained */
    const char *source;
} Row;

/* What PyTorch's own, timm's and Hugging Face's models count: sum(p.numel() for p in
 * model.parameters()). */
static const Row rows[] = {
    {"vit.scrimp", 86567656, "timm vit_base_patch16_224; torchvision vit_b_16"},
    {"vit.scrimp -D size_name=large", 304326632, "timm vit_large_patch16_224"},
    {"vit.scrimp -D size_name=small", 22050664, "timm vit_small_patch16_224"},
    {"vit.scrimp -D size_name=tiny", 5717416, "timm vit_tiny_patch16_224"},
    {"mobilenet_v2.scrimp", 3504872, "torchvision mobilenet_v2"},
    {"efficientnet.scrimp", 5288548, "torchvision efficientnet_b0"},
    {"efficientnet.scrimp -D version=4", 19341616, "torchvision efficientnet_b4"},
    {"efficientnet.scrimp -D version=7", 66347960, "torchvision efficientnet_b7"},
    {"simclr.scrimp", 11497152, "torchvision resnet18, a 3x3 stem, and the projection head"},
    {"convnext.scrimp", 28589128, "torchvision convnext_tiny"},
    {"convnext.scrimp -D size_name=small", 50223688, "torchvision convnext_small"},
    {"convnext.scrimp -D size_name=base", 88591464, "torchvision convnext_base"},
    {"mixer.scrimp", 59880472, "timm mixer_b16_224"},
    {"ddpm.scrimp", 35746307, "diffusers UNet2DModel, google/ddpm-cifar10-32"},
    {"dcgan.scrimp --model generator", 3576704, "pytorch/examples dcgan, Generator"},
    {"dcgan.scrimp --model discriminator", 2765568, "pytorch/examples dcgan, Discriminator"},
    {"lenet.scrimp", 61706, "PyTorch's tutorial on neural networks, with pictures of 28x28"},
    {"audio.scrimp", 26915, "PyTorch's tutorial on speech commands, M5"},
    {"bert.scrimp", 109514298, "transformers BertForMaskedLM, bert-base-uncased"},
    {"bert.scrimp -D size_name=large", 335174458,
     "transformers BertForMaskedLM, bert-large-uncased"},
    {"llama.scrimp -D size_name=7b -D T=16", 6738415616, "transformers Llama-2-7b-hf"},
    {"llama.scrimp -D size_name=8b -D T=16", 8030261248, "transformers Meta-Llama-3-8B"},
    {"moe.scrimp -D size_name=8x7b -D T=16", 46702792704, "transformers Mixtral-8x7B-v0.1"},
    {"ssm.scrimp -D size_name=130m -D T=16", 129135360, "transformers mamba-130m-hf"},
    {"ssm.scrimp -D size_name=370m -D T=16", 371516416, "transformers mamba-370m-hf"},
};

static void test_parameters(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Result r = run("$SCRIMP summary --json -D N=1 $EXAMPLES/%s", rows[i].example);
        char wanted[64], detail[300];
        snprintf(wanted, sizeof wanted, "\"params\": %lld,", rows[i].parameters);
        snprintf(detail, sizeof detail, "%s (%s): no %s", rows[i].example, rows[i].source, wanted);
        EXPECT(r.code == 0 && strstr(r.out, wanted), detail);
        result_free(&r);
    }
}

/* Whatever form the examples write attention in, its scores are no tensor. */
static void test_attention(void)
{
    static const char *const names[] = {"bert", "chargpt", "ddpm",        "demo",
                                        "gpt2", "llama",   "transformer", "vit"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Result r = run("$SCRIMP dump --stage grad --no-loc $EXAMPLES/%s.scrimp", names[i]);
        EXPECT(r.code == 0 && strstr(r.out, "= attention ") && !strstr(r.out, "= softmax "),
               names[i]);
        result_free(&r);
    }
}

/* A loop has the multiply-adds of its steps written out. */
static void test_loops(void)
{
    static const char *const forms[] = {"unrolled", "scan"};
    double macs[2];
    for (int i = 0; i < 2; i++) {
        json_t *o = run_json(
            0, "$SCRIMP summary --json -D N=1 -D form=%s $EXAMPLES/lstm_ptb.scrimp", forms[i]);
        macs[i] = json_get_number(o, "macs");
        json_decref(o);
    }
    EXPECT(macs[0] > 0 && macs[0] - macs[1] == 0, "multiply-adds of a loop");
}

/* To a paper a loop is one vertex with the results that are read: of a GRU not the last state. */
static void test_loop_counts(void)
{
    json_t *o = run_json(0, "$SCRIMP summary --json --count kusumoto -D N=4 -D T=16 -D H=32 "
                            "$EXAMPLES/gru.scrimp"),
           *loop = json_object_get(json_object_get(o, "ops"), "loop");
    EXPECT(json_get_number(loop, "count") == 2 &&
               json_get_number(loop, "elements") == 2 * 16 * 4 * 32,
           "loops of a paper's graph");
    json_decref(o);
}

/* Three steps of training with a loop and with its steps written out end at the same weights. */
static void test_same_bits(void)
{
    static const char *const small[] = {
        "lstm_ptb.scrimp -D N=4 -D V=20 -D T=6 -D H=16 -D p=0",
        "gru.scrimp -D N=4 -D T=6 -D H=16 --data $TMP/t.txt",
        "ode.scrimp -D N=8 -D H=16 -D steps=5 --data $TMP/idx",
        "ssm.scrimp -D N=4 -D T=6 -D width=16 --data $TMP/t.txt",
    };
    make_digits(80);
    make_text(in_tmp("t.txt"), 2000);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        Result r =
            run("for f in scan unrolled; do $SCRIMP train $EXAMPLES/%s -q -D form=$f --steps 3 "
                "--out $TMP/$f || exit 1; done; "
                "cmp $TMP/scan/model.safetensors $TMP/unrolled/model.safetensors",
                small[i]);
        EXPECT(r.code == 0, r.code == 1 && *r.out ? r.out : r.err);
        result_free(&r);
        expect_ok("rm -r $TMP/scan $TMP/unrolled");
    }
}

/* As in the slow test of all examples, at one budget. */
static void test_verify(void)
{
    static const char *const small[] = {
        "llama.scrimp -D N=2 -D T=8 -D layers=1",
        "moe.scrimp -D N=2 -D T=8 -D layers=1 -D E=4",
        "ode.scrimp -D N=20 -D H=8",
        "ssm.scrimp -D N=2 -D T=11 -D width=16",
    };
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        verify_example(small[i], "", "min", 2);
}

int main(void)
{
    e2e_begin();
    test_parameters();
    test_attention();
    test_loops();
    test_loop_counts();
    test_same_bits();
    test_verify();
    return e2e_end();
}
