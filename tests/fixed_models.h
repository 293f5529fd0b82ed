/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small models of kinds that tests/support/random_model.h does not draw: recurrence over shared
 * weights, an encoder and decoder with padding masks, several weighted losses.  Integers of a batch
 * are below MODEL_CLASSES. */
#ifndef SCRIMP_TESTS_FIXED_MODELS_H
#define SCRIMP_TESTS_FIXED_MODELS_H

typedef struct FixedModel {
    const char *name, *text;
} FixedModel;

static const FixedModel fixed_models[] = {
    {"LSTM language model, tied embedding",
     "block Cell(x, h, c) {\n"
     "  g = (x |> ih: linear(32)) + (h |> hh: linear(32))\n"
     "  i, f, o, u = split(g, 4, axis = -1)\n"
     "  c = sigmoid(f) * c + sigmoid(i) * tanh(u)\n"
     "  return sigmoid(o) * tanh(c), c\n"
     "}\n"
     "model m(ids: i32[3, 5]) {\n"
     "  e = ids |> embed: embedding(10, 8)\n"
     "  h, c = [zeros([3, 8]), zeros([3, 8])]\n"
     "  hs = []\n"
     "  for t in 0..5 {\n"
     "    h, c = shared cell: Cell(e[.., t], h, c)\n"
     "    hs = hs ++ [h]\n"
     "  }\n"
     "  return einsum(\"b t c, v c -> b t v\", stack(hs, axis = 1), $embed.weight)\n"
     "}\n"
     "train {\n"
     "  batch = synthetic(x = i32[3, 5], y = i32[3, 5])\n"
     "  loss = cross_entropy(m(batch.x), batch.y)\n"
     "  optim = sgd(lr = 0.1, momentum = 0.9, clip = 0.5)\n"
     "  steps = 10\n"
     "}\n"},
    {"encoder and decoder with padding masks",
     "block Attend(x, memory, mask, causal) {\n"
     "  q = x |> q: linear(16) |> rearrange(\"b t (h d) -> b h t d\", h = 2)\n"
     "  k = memory |> k: linear(16) |> rearrange(\"b t (h d) -> b h t d\", h = 2)\n"
     "  v = memory |> v: linear(16) |> rearrange(\"b t (h d) -> b h t d\", h = 2)\n"
     "  s = einsum(\"b h t d, b h s d -> b h t s\", q, k) * 0.35 + mask\n"
     "  if causal { s = causal_mask(s) }\n"
     "  y = einsum(\"b h t s, b h s d -> b h t d\", softmax(s), v)\n"
     "  return rearrange(y, \"b h t d -> b t (h d)\") |> out: linear(16)\n"
     "}\n"
     "block Embed(ids: [B, T]) {\n" /* scaled, with positions, 0 at the padding */
     "  e = (ids |> wte: embedding(10, 16)) * 4 + sinusoid(T, 16)\n"
     "  return e * reshape(to_f32(ids != 0), [B, T, 1])\n"
     "}\n"
     "model m(src: i32[2, 7], tgt: i32[2, 5]) {\n"
     "  pad = reshape(to_f32(src == 0) * -1e9, [2, 1, 1, 7])\n"
     "  x = src |> shared tied: Embed()\n"
     "  x = x + (x |> ln1: layernorm() |> self: Attend(x, pad, false))\n"
     "  x = x + (x |> ln2: layernorm() |> up: linear(24) |> relu() |> down: linear(16))\n"
     "  y = tgt |> shared tied: Embed()\n"
     "  y = y + (y |> ln3: layernorm() |> masked: Attend(y, 0, true))\n"
     "  y = y + (y |> ln4: layernorm() |> cross: Attend(x, pad, false))\n"
     "  return einsum(\"b t c, v c -> b t v\", y |> ln5: layernorm(), $tied.wte.weight)\n"
     "}\n"
     "train {\n"
     "  batch = synthetic(src = i32[2, 7], tgt = i32[2, 5], y = i32[2, 5])\n"
     "  loss = cross_entropy(m(batch.src, batch.tgt), batch.y, label_smoothing = 0.1,\n"
     "                       ignore_index = 0)\n"
     "  optim = adam(lr = 1e-3, betas = [0.9, 0.98], eps = 1e-9)\n"
     "  steps = 10\n"
     "}\n"},
    {"segmentation with auxiliary and weighted losses",
     "model m(x: f32[2, 3, 8, 8]) {\n"
     "  a = x |> c1: conv(8, 3, pad = 1) |> bn1: bn() |> relu()\n"
     "  b = a |> c2: conv(8, 3, pad = 1) |> bn2: bn() |> relu()\n"
     "  return b |> head: conv(10, 1), a |> aux1: conv(10, 1), b |> aux2: conv(10, 3, pad = 1)\n"
     "}\n"
     "train {\n"
     "  batch = synthetic(x = f32[2, 3, 8, 8], y = i32[2, 8, 8], w = f32[2, 8, 8])\n"
     "  main, first, second = m(batch.x)\n"
     "  each = cross_entropy(main, batch.y, reduction = none, ignore_index = 3)\n"
     "  aux1 = cross_entropy(first, batch.y, weight = [1, 2, 0.5, 1, 3, 1, 1, 0, 1, 2],\n"
     "                       label_smoothing = 0.1)\n"
     "  aux2 = cross_entropy(second, batch.y, weight = sin(to_f32(iota(10))) + 2)\n"
     "  spread = mse(softmax(main, axis = 1), 0.1, reduction = sum)\n"
     "  loss = sum((batch.w + 1) * each) / 128 + 0.3 * (aux1 + aux2) + 0.01 * spread\n"
     "  metrics = accuracy(main, batch.y, ignore_index = 3)\n"
     "  optim = sgd(lr = 0.05, momentum = 0.9, weight_decay = 1e-3)\n"
     "  steps = 10\n"
     "}\n"},
};

enum { FIXED_MODELS = sizeof fixed_models / sizeof *fixed_models };

#endif
