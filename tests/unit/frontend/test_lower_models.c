/* The examples against published facts: parameters, buffers, multiply-adds, operations and
 * activation elements of torchvision's ResNets and Hugging Face's GPT-2, names and shapes included.
 */
#include "lower_text.h"

typedef struct Published {
    const char *example, *defs[3];
    int64_t params, buffers, activations;
    double macs;
    int conv, linear, norm;
} Published;

/* Counted by tracing torchvision 0.14.1 and the Hugging Face model at batch 1. */
static const Published published[] = {
    {"resnet", {"N=1", "depth=18"}, 11689512, 9600, 8230376, 1814073344.0, 20, 1, 20},
    {"resnet", {"N=1", "depth=34"}, 21797672, 17024, 12620776, 3663761408.0, 36, 1, 36},
    {"resnet", {"N=1", "depth=50"}, 25557032, 53120, 37559784, 4089184256.0, 53, 1, 53},
    {"resnet", {"N=1", "depth=101"}, 44549160, 105344, 56325608, 7801405440.0, 104, 1, 104},
    {"resnet", {"N=1", "depth=152"}, 60192808, 151424, 79506920, 11513626624.0, 155, 1, 155},
    {"resnet", {"N=1", "depth=200"}, 64673832, 176000, 114830824, 15007481856.0, 203, 1, 203},
    {"gpt2", {"N=1"}, 124439808, 0, 828457984, 145824153600.0, 0, 49, 25},
    {"gpt2", {"N=1", "size_name=medium"}, 354823168, 0, 2119255040, 413475536896.0, 0, 97, 49},
};

static void check_published(const Published *p)
{
    Lowered r = lower_example(p->example, FRONTEND_INFER, p->defs);
    if (r.graph) {
        Summary s = graph_summary(r.pool, r.graph);
        const char *which = p->defs[1] ? p->defs[1] : p->example;
        CHECK_MSG(s.params == p->params, "%s: %lld parameters", which, (long long)s.params);
        CHECK_MSG(s.buffers == p->buffers, "%s: %lld buffers", which, (long long)s.buffers);
        CHECK_MSG(s.macs == p->macs, "%s: %.0f multiply-adds", which, s.macs);
        CHECK_MSG(s.activation_elements == p->activations, "%s: %lld activations", which,
                  (long long)s.activation_elements);
        CHECK(count_ops(&r, OP_conv2d) == p->conv);
        CHECK(count_ops(&r, OP_linear) == p->linear);
        CHECK(count_ops(&r, OP_bn_apply) + count_ops(&r, OP_layernorm) == p->norm);
    }
    lowered_free(&r);
}

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
    return x > y * (1 - 1e-12) && x < y * (1 + 1e-12);
}

static void check_names(const char *example, const NamedShape *names, size_t n)
{
    static const char *const one[] = {"N=1", NULL};
    Lowered r = lower_example(example, FRONTEND_INFER, one);
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
    lowered_free(&r);
}

/* Every example in every mode: verified by lowered_finish, with the outputs that the mode promises.
 */
static void check_modes(const char *example)
{
    static const char *const outputs[3][4] = {
        {"loss", NULL}, {"loss", "accuracy", "logits", NULL}, {"logits", NULL}};
    static const FrontendMode modes[] = {FRONTEND_TRAIN, FRONTEND_EVAL, FRONTEND_INFER};
    for (int m = 0; m < 3; m++) {
        Lowered r = lower_example(example, modes[m], NULL);
        bool classes = count_ops(&r, OP_cross_entropy) > 0;
        for (int i = 0; r.graph && outputs[m][i]; i++)
            CHECK_MSG(graph_output(r.graph, outputs[m][i]) != VALUE_NONE ||
                          (!classes && strcmp(outputs[m][i], "accuracy") == 0),
                      "%s has no %s", example, outputs[m][i]);
        bool dynamic =
            count_ops(&r, OP_dropout) || count_ops(&r, OP_bn_stats) || count_ops(&r, OP_bn_running);
        CHECK_MSG(modes[m] == FRONTEND_TRAIN || !dynamic, "%s: inference must not train", example);
        CHECK(!r.graph || r.graph->train.present == (modes[m] != FRONTEND_INFER));
        lowered_free(&r);
    }
}

static void check_chargpt(void)
{
    Lowered r = lower_example("chargpt", FRONTEND_TRAIN, NULL);
    if (r.graph) {
        const TrainSpec *t = &r.graph->train;
        Summary s = graph_summary(r.pool, r.graph);
        CHECK(s.params == 65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128);
        CHECK(t->optim == OPTIM_ADAMW && t->decay_matrices_only && t->clip == 1.0);
        CHECK(t->beta1 == 0.9 && t->beta2 == 0.99 && t->weight_decay == 0.1 && t->eps == 1e-8);
        CHECK(t->lr.kind == LR_COSINE && t->lr.base == 1e-3 && t->lr.min == 1e-4 &&
              t->lr.warmup == 100);
        CHECK(!t->lr.in_epochs && t->steps == 2000 && t->epochs == 0 && t->accumulate == 1);
        CHECK(t->held_out_is_part && t->held_out == 0.1 && t->data_chars);
        CHECK(t->data_batch == 12 && t->data_length == 64 && strcmp(t->data_kind, "text") == 0);
        CHECK(strcmp(t->data_path, "data/tinyshakespeare.txt") == 0);
    }
    lowered_free(&r);
}

int main(void)
{
    static const char *const examples[] = {"mlp",  "convnet", "resnet", "chargpt",
                                           "gpt2", "demo",    "ffn",    "nascell"};
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        check_published(&published[i]);
    check_names("resnet", resnet_names, sizeof resnet_names / sizeof resnet_names[0]);
    check_names("gpt2", gpt2_names, sizeof gpt2_names / sizeof gpt2_names[0]);
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        check_modes(examples[i]);
    check_chargpt();
    return test_result();
}
