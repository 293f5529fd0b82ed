/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/random_model.h"

#include "ir/support/strbuf.h"
#include "tests/support/random.h"

#include <string.h>

typedef struct ModelText {
    StrBuf text;
    Random random;
    ModelLimits limits;
    ModelFamily family;
    int n_labels;   /* for unique labels */
    int n, c, h, w; /* of x now: images [n,c,h,w], vectors [n,c], sequences [n,h,c] */
    const char *accumulate;
} ModelText;

static const char *model_word(ModelText *m, const char *const *words, int n)
{
    return words[random_below(&m->random, n)];
}
#define MODEL_WORD(m, ...)                                                                         \
    model_word(m, (const char *const[]){__VA_ARGS__},                                              \
               (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static int model_number(ModelText *m, int a, int b)
{
    return random_below(&m->random, 2) ? a : b;
}

static bool model_chance(ModelText *m, int one_in)
{
    return random_below(&m->random, one_in) == 0;
}

static const char *model_activation(ModelText *m)
{
    return MODEL_WORD(m, "relu()", "gelu()", "gelu(approx = \"tanh\")", "silu()", "tanh()",
                      "sigmoid()", "leaky_relu(0.1)", "elu()", "softplus()", "mish()",
                      "hardswish()", "relu6()");
}

static const char *model_bias(ModelText *m)
{
    return MODEL_WORD(m, "", ", bias = false");
}

#define MODEL_PUT(m, ...) strbuf_printf(&(m)->text, __VA_ARGS__)

static void model_dropout(ModelText *m)
{
    if (!m->limits.no_dropout)
        MODEL_PUT(m, "  x = dropout(x, %s)\n", MODEL_WORD(m, "0.1", "0.25", "0.5"));
}

/* --- images --- */

static void model_conv(ModelText *m)
{
    int k = model_chance(m, 3) ? 1 : 3, out = model_number(m, 8, 16), groups = 1, stride = 1;
    if (m->h >= 6 && model_chance(m, 3))
        stride = 2;
    if (model_chance(m, 3) && m->c % 4 == 0)
        groups = model_number(m, 4, m->c);
    if (groups == m->c)
        out = m->c;
    MODEL_PUT(m, "  x = x |> l%d: conv(%d, %d, stride = %d, pad = %d, groups = %d%s)\n",
              m->n_labels++, out, k, stride, k / 2, groups, model_bias(m));
    m->c = out;
    m->h = (m->h - 1) / stride + 1;
    m->w = (m->w - 1) / stride + 1;
}

static void model_image_piece(ModelText *m)
{
    switch (random_below(&m->random, 7)) {
    case 0:
    case 1:
        model_conv(m);
        break;
    case 2:
        MODEL_PUT(m, "  x = x |> l%d: bn() |> %s\n", m->n_labels++, model_activation(m));
        break;
    case 3: /* a residual block */
        MODEL_PUT(m,
                  "  x = x + (x |> l%d: conv(%d, 3, pad = 1, bias = false) |> l%d: bn() |> %s)\n",
                  m->n_labels, m->c, m->n_labels + 1, model_activation(m));
        m->n_labels += 2;
        break;
    case 4:
        if (m->h < 4)
            break;
        MODEL_PUT(m, "  x = x |> %s(2)\n", MODEL_WORD(m, "maxpool", "avgpool"));
        m->h /= 2;
        m->w /= 2;
        break;
    case 5:
        model_dropout(m);
        break;
    default: /* squeeze and excite */
        MODEL_PUT(m, "  x = x * sigmoid(x |> global_avgpool() |> l%d: conv(%d, 1))\n",
                  m->n_labels++, m->c);
    }
}

static void model_images(ModelText *m, int pieces)
{
    m->n = model_number(m, 2, 4);
    m->c = model_number(m, 3, 8);
    m->h = m->w = model_number(m, 8, 9);
    MODEL_PUT(m, "model m(x: f32[%d, %d, %d, %d]) {\n", m->n, m->c, m->h, m->w);
    model_conv(m);
    MODEL_PUT(m, "  x = x |> l%d: bn()\n", m->n_labels++);
    for (int i = 0; i < pieces; i++)
        model_image_piece(m);
    MODEL_PUT(m, "  return x |> %s |> head: linear(%d)\n}\n",
              MODEL_WORD(m, "global_avgpool() |> flatten()", "flatten()"), MODEL_CLASSES);
}

/* --- vectors --- */

static void model_vector_piece(ModelText *m)
{
    int l = m->n_labels++;
    switch (random_below(&m->random, 9)) {
    case 0:
    case 1:
        m->c = model_number(m, 16, 24);
        MODEL_PUT(m, "  x = x |> l%d: linear(%d%s) |> %s\n", l, m->c, model_bias(m),
                  model_activation(m));
        break;
    case 2:
        MODEL_PUT(m, "  x = x |> l%d: layernorm(%s)\n", l,
                  MODEL_WORD(m, "", "bias = false", "affine = false"));
        break;
    case 3:
        MODEL_PUT(m, "  x = x + (x |> l%d.ln: layernorm() |> l%d.fc: linear(%d) |> %s)\n", l, l,
                  m->c, model_activation(m));
        break;
    case 4: /* a gate */
        MODEL_PUT(m, "  a, b = x |> l%d: linear(%d) |> split(2)\n  x = a * sigmoid(b)\n", l,
                  2 * m->c);
        break;
    case 5:
        model_dropout(m);
        break;
    case 6:
        if (m->c > 48)
            break;
        MODEL_PUT(m, "  x = concat([x, %s(x)], axis = 1)\n", MODEL_WORD(m, "tanh", "abs", "exp"));
        MODEL_PUT(m, "  x = x |> l%d: layernorm()\n", l);
        m->c *= 2;
        break;
    case 7: /* root mean square norm */
        MODEL_PUT(m, "  x = x * rsqrt(mean(x * x, axis = -1, keepdims = true) + 1e-3)\n");
        break;
    default:
        MODEL_PUT(m, "  x = x + softmax(x) * max(x, axis = -1, keepdims = true)\n");
    }
}

static void model_vectors(ModelText *m, int pieces)
{
    m->n = model_number(m, 4, 8);
    m->c = model_number(m, 16, 33);
    MODEL_PUT(m, "model m(x: f32[%d, %d]) {\n", m->n, m->c);
    for (int i = 0; i < pieces; i++)
        model_vector_piece(m);
    MODEL_PUT(m, "  return x |> head: linear(%d%s)\n}\n", MODEL_CLASSES, model_bias(m));
}

/* --- sequences --- */

static void model_attention(ModelText *m)
{
    int l = m->n_labels++, heads = model_number(m, 2, 4);
    MODEL_PUT(m,
              "  y = x |> l%d.ln: layernorm()\n"
              "  q, k, v = y |> l%d.qkv: linear(%d%s) |> split(3, axis = -1)\n"
              "  q, k, v = [rearrange(t, \"b t (h d) -> b h t d\", h = %d) for t in [q, k, v]]\n"
              "  a = einsum(\"b h t d, b h s d -> b h t s\", q, k) * %d**-0.5\n"
              "  a = a%s |> softmax()%s\n"
              "  y = einsum(\"b h t s, b h s d -> b h t d\", a, v) |> rearrange(\"b h t d -> b t "
              "(h d)\")\n"
              "  x = x + (y |> l%d.proj: linear(%d))\n",
              l, l, 3 * m->c, model_bias(m), heads, m->c / heads,
              MODEL_WORD(m, "", " |> causal_mask()"),
              m->limits.no_dropout || model_chance(m, 2) ? "" : " |> dropout(0.1)", l, m->c);
}

static void model_sequences(ModelText *m, int pieces)
{
    m->n = model_number(m, 2, 3);
    m->h = model_number(m, 8, 12);
    m->c = model_number(m, 16, 32);
    MODEL_PUT(m, "model m(ids: i32[%d, %d]) {\n", m->n, m->h);
    MODEL_PUT(m, "  x = (ids |> wte: embedding(%d, %d)) + (iota(%d) |> wpe: embedding(%d, %d))\n",
              MODEL_CLASSES, m->c, m->h, m->h, m->c);
    for (int i = 0; i < (pieces + 1) / 2; i++) {
        model_attention(m);
        int l = m->n_labels++;
        MODEL_PUT(m,
                  "  x = x + (x |> l%d.ln: layernorm() |> l%d.fc: linear(%d) |> %s |> l%d.proj: "
                  "linear(%d))\n",
                  l, l, 2 * m->c, model_activation(m), l, m->c);
        if (model_chance(m, 3))
            model_dropout(m);
    }
    if (model_chance(m, 2))
        MODEL_PUT(m, "  return einsum(\"b t c, v c -> b t v\", x, $wte.weight)\n}\n");
    else
        MODEL_PUT(m, "  return x |> head: linear(%d)\n}\n", MODEL_CLASSES);
}

/* --- training --- */

static void model_optimizer(ModelText *m)
{
    const char *clip = MODEL_WORD(m, "", ", clip = 0.5", ", clip = 100.0");
    switch (random_below(&m->random, 6)) {
    case 0:
        MODEL_PUT(m, "  optim = sgd(lr = 0.05, weight_decay = 1e-3%s)\n", clip);
        break;
    case 1:
        MODEL_PUT(
            m, "  optim = sgd(lr = 0.05, momentum = 0.9, dampening = %s, weight_decay = 1e-3%s)\n",
            MODEL_WORD(m, "0", "0.1"), clip);
        break;
    case 2:
        MODEL_PUT(
            m, "  optim = sgd(lr = cosine(0.05, warmup = 2), momentum = 0.9, nesterov = true%s)\n",
            clip);
        break;
    case 3:
        MODEL_PUT(m, "  optim = adam(lr = 1e-3, betas = [0.9, 0.99], weight_decay = 1e-2%s)\n",
                  clip);
        break;
    default:
        MODEL_PUT(m,
                  "  optim = adamw(lr = linear_decay(2e-3, min = 1e-4), weight_decay = 1.0, "
                  "decay_on = %s%s)\n",
                  MODEL_WORD(m, "all", "matrices"), clip);
    }
    if (!m->limits.no_accumulate && model_chance(m, 4))
        MODEL_PUT(m, "  accumulate = 2\n");
}

static void model_train(ModelText *m)
{
    bool sequence = m->family == MODEL_SEQUENCES;
    strbuf_put(&m->text, "train {\n  batch = synthetic(");
    /* The input's type is the model's: repeat it from its first line. */
    const char *from = strstr(m->text.text, "m(") + 2;
    const char *type = strchr(from, ':') + 2, *end = strchr(type, ']') + 1;
    if (sequence)
        MODEL_PUT(m, "x = %.*s, label = i32[%d, %d])\n", (int)(end - type), type, m->n, m->h);
    else
        MODEL_PUT(m, "x = %.*s, label = i32[%d])\n", (int)(end - type), type, m->n);
    strbuf_put(&m->text, "  logits = m(batch.x)\n");
    if (model_chance(m, 4))
        MODEL_PUT(m, "  loss = mse(logits, 0.5) + 0.1 * cross_entropy(logits, batch.label)\n");
    else
        MODEL_PUT(m, "  loss = cross_entropy(logits, batch.label, label_smoothing = %s)\n",
                  MODEL_WORD(m, "0", "0.1"));
    model_optimizer(m);
    strbuf_put(&m->text, "  steps = 10\n}\n");
}

const char *random_model(Pool *pool, uint64_t seed, ModelFamily family, int pieces,
                         ModelLimits limits)
{
    ModelText m = {.text = strbuf_new(pool), .limits = limits, .family = family};
    m.random.state = seed * 7919 + (uint64_t)family;
    random_next(&m.random);
    if (family == MODEL_IMAGES)
        model_images(&m, pieces);
    else if (family == MODEL_VECTORS)
        model_vectors(&m, pieces);
    else
        model_sequences(&m, pieces);
    model_train(&m);
    return m.text.text;
}

const char *shared_random_model(Pool *pool, ModelFamily family)
{
    return random_model(pool, 52, family, 4, (ModelLimits){0});
}
