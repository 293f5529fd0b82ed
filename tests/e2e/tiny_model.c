/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tiny_model.h"

#include "e2e.h"

#include <stdio.h>

void write_tiny_model(int steps, int eval_every)
{
    char path[400];
    snprintf(path, sizeof path, "%s/tiny.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fprintf(
        f,
        "model tiny(x: f32[8, 3, 8, 8]) {\n"
        "  x = x |> c1: conv(8, 3, pad = 1, bias = false) |> b1: bn() |> relu() |> maxpool(2)\n"
        "  x = x |> c2: conv(8, 3, pad = 1, bias = false) |> b2: bn() |> gelu()\n"
        "  return x |> flatten() |> dropout(0.25) |> fc1: linear(24) |> tanh() |> fc2: linear(10)\n"
        "}\n"
        "train {\n"
        "  batch      = synthetic(x = f32[8, 3, 8, 8], label = i32[8])\n"
        "  loss       = cross_entropy(tiny(batch.x), batch.label, label_smoothing = 0.1)\n"
        "  optim      = adamw(lr = cosine(1e-2, warmup = 5), weight_decay = 0.1, clip = 1.0)\n"
        "  steps      = %d\n"
        "  accumulate = 2\n"
        "  eval_every = %d\n"
        "}\n",
        steps, eval_every);
    fclose(f);
}
