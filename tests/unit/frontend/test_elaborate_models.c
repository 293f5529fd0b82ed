/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The examples: names, shapes and initial values of the published models, every mode, and training
 * sections. */
#include "check.h"
#include "ir/summary.h"
#include "tests/support/elaborate_text.h"

#include <stdlib.h>
#include <string.h>

typedef struct NamedShape {
    const char *name, *type, *init;
} NamedShape;

/* From state_dict() of the published models. */
static const NamedShape resnet_names[] = {
    {"$conv1.weight", "f32[64,3,7,7]", "normal(0.025253813613805267)"}, /* sqrt(2 / (64*49)) */
    {"$bn1.weight", "f32[64]", "ones"},
    {"$bn1.running_var", "f32[64]", "ones"},
    {"$layer1.0.conv1.weight", "f32[64,64,1,1]", NULL},
    {"$layer1.0.downsample.0.weight", "f32[256,64,1,1]", NULL},
    {"$layer1.0.downsample.1.running_mean", "f32[256]", "zeros"},
    {"$layer3.5.conv2.weight", "f32[256,256,3,3]", NULL},
    {"$layer4.2.bn3.bias", "f32[2048]", "zeros"},
    {"$fc.weight", "f32[1000,2048]", NULL},
    {"$fc.bias", "f32[1000]", NULL},
};
static const NamedShape densenet_names[] = {
    {"$features.conv0.weight", "f32[64,3,7,7]",
     "normal(0.11664236870396086)"}, /* sqrt(2 / (3*49)) */
    {"$features.norm0.weight", "f32[64]", "ones"},
    {"$features.denseblock1.denselayer1.norm1.weight", "f32[64]", "ones"},
    {"$features.denseblock4.denselayer16.conv2.weight", "f32[32,128,3,3]", NULL},
    {"$features.transition3.conv.weight", "f32[512,1024,1,1]", NULL},
    {"$features.norm5.running_mean", "f32[1024]", "zeros"},
    {"$classifier.bias", "f32[1000]", "zeros"},
};
static const NamedShape inception_names[] = {
    {"$Conv2d_1a_3x3.conv.weight", "f32[32,3,3,3]", "normal(0.1)"},
    {"$Mixed_5b.branch5x5_1.conv.weight", "f32[48,192,1,1]", NULL},
    {"$Mixed_6b.branch7x7_2.conv.weight", "f32[128,128,1,7]", NULL},
    {"$Mixed_7c.branch3x3dbl_3b.bn.running_var", "f32[384]", "ones"},
    {"$AuxLogits.conv1.conv.weight", "f32[768,128,5,5]", "normal(0.01)"},
    {"$AuxLogits.fc.weight", "f32[1000,768]", "normal(0.001)"},
    {"$fc.weight", "f32[1000,2048]", "normal(0.1)"},
};
static const NamedShape gpt2_names[] = {
    {"$wte.weight", "f32[50257,768]", "normal(0.02)"},
    {"$wpe.weight", "f32[1024,768]", "normal(0.02)"},
    {"$h.0.ln_1.weight", "f32[768]", "ones"},
    {"$h.0.attn.c_attn.weight", "f32[768,2304]", "normal(0.02)"},
    {"$h.0.attn.c_attn.bias", "f32[2304]", "zeros"},
    {"$h.11.attn.c_proj.weight", "f32[768,768]",
     "normal(0.004082482904638631)"}, /* 0.02/sqrt(24) */
    {"$h.11.mlp.c_fc.weight", "f32[768,3072]", "normal(0.02)"},
    {"$h.11.mlp.c_proj.weight", "f32[3072,768]", "normal(0.004082482904638631)"},
    {"$ln_f.bias", "f32[768]", "zeros"},
};

/* The text's number within rounding: the same formula may be evaluated in another order. */
static bool same_init(const char *a, const char *b)
{
    if (strncmp(a, "normal(", 7) != 0 || strncmp(b, "normal(", 7) != 0)
        return strcmp(a, b) == 0;
    double x = strtod(a + 7, NULL), y = strtod(b + 7, NULL);
    return x > y * (1 - 1e-9) && x < y * (1 + 1e-9);
}

static void check_names(const char *example, const NamedShape *names, size_t n)
{
    static const char *const one[] = {"N=1", NULL};
    Elaborated r = elaborate_example(example, FRONTEND_INFER, one);
    for (size_t i = 0; i < n; i++) {
        const Node *node = find_node(&r, names[i].name);
        if (!node)
            continue;
        const char *type = type_text(r.pool, value_type(r.graph, node->out[0]));
        const char *init = node_string(node, ATTR_init, "");
        CHECK_MSG(strcmp(type, names[i].type) == 0, "%s is %s", names[i].name, type);
        CHECK_MSG(!names[i].init || same_init(init, names[i].init), "%s starts as %s",
                  names[i].name, init);
    }
    elaborated_free(&r);
}

/* Every example in every mode: verified by elaborated_finish, with the outputs that the mode
 * promises.
 */
static void check_modes(const char *example)
{
    static const char *const outputs[4][4] = {
        {"loss", NULL}, {"loss", "accuracy", NULL}, {"logits", NULL}, {"logits", NULL}};
    static const FrontendMode modes[] = {FRONTEND_TRAIN, FRONTEND_EVAL, FRONTEND_INFER,
                                         FRONTEND_PREDICT};
    for (int m = 0; m < 4; m++) {
        Elaborated r = elaborate_example(example, modes[m], NULL);
        bool classes = count_ops(&r, OP_cross_entropy) > 0;
        for (int i = 0; r.graph && outputs[m][i]; i++)
            CHECK_MSG(graph_output(r.graph, outputs[m][i]) != VALUE_NONE ||
                          (!classes && strcmp(outputs[m][i], "accuracy") == 0),
                      "%s has no %s", example, outputs[m][i]);
        bool dynamic =
            count_ops(&r, OP_dropout) || count_ops(&r, OP_bn_stats) || count_ops(&r, OP_bn_running);
        CHECK_MSG(modes[m] == FRONTEND_TRAIN || !dynamic, "%s: inference must not train", example);
        CHECK(!r.graph || r.graph->train.present == (modes[m] != FRONTEND_INFER));
        elaborated_free(&r);
    }
}

static void check_chargpt(void)
{
    Elaborated r = elaborate_example("chargpt", FRONTEND_TRAIN, NULL);
    if (r.graph) {
        const TrainSpec *t = &r.graph->train;
        Summary s = graph_summary(r.pool, r.graph);
        CHECK(s.params == 65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128);
        CHECK(t->rule.optim == OPTIM_ADAMW && t->rule.decay_matrices_only && t->rule.clip == 1.0);
        CHECK(t->rule.beta1 == 0.9 && t->rule.beta2 == 0.99 && t->rule.weight_decay == 0.1 &&
              t->rule.eps == 1e-8);
        CHECK(t->rule.lr.kind == LR_COSINE && t->rule.lr.base == 1e-3 && t->rule.lr.min == 1e-4 &&
              t->rule.lr.warmup == 100);
        CHECK(!t->rule.lr.in_epochs && t->steps == 2000 && t->epochs == 0 && t->accumulate == 1);
        CHECK(t->held_out_is_part && t->held_out == 0.1 && t->data_chars);
        CHECK(t->data_batch == 12 && t->data_length == 64 && strcmp(t->data_kind, "text") == 0);
        CHECK(strcmp(t->data_path, "data/tinyshakespeare.txt") == 0);
    }
    elaborated_free(&r);
}

int main(void)
{
    // clang-format off
    static const char *const examples[] = {
        "mlp", "convnet", "alexnet", "vgg", "googlenet", "inception_v3", "resnet", "densenet",
        "unet", "pspnet", "nascell", "ffn", "lstm_ptb", "transformer", "chargpt", "gpt2", "demo",
    };
    // clang-format on
    check_names("resnet", resnet_names, sizeof resnet_names / sizeof resnet_names[0]);
    check_names("densenet", densenet_names, sizeof densenet_names / sizeof densenet_names[0]);
    check_names("inception_v3", inception_names,
                sizeof inception_names / sizeof inception_names[0]);
    check_names("gpt2", gpt2_names, sizeof gpt2_names / sizeof gpt2_names[0]);
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        check_modes(examples[i]);
    check_chargpt();
    return test_result();
}
