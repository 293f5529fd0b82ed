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

void write_loop_model(int steps)
{
    FILE *f = fopen(in_tmp("loop.scrimp"), "w");
    if (!f)
        abort();
    fprintf(f,
            "block Cell(h, x) { return tanh(x + (h |> hh: linear(6))) }\n"
            "block Net(x) { return scan(Cell, zeros([4, 6]), x) }\n"
            "model net(x: f32[4, %d, 6]) { return x |> transpose(0, 1) |> rnn: Net() }\n"
            "train {\n"
            "  batch = synthetic(x = f32[4, %d, 6], y = f32[4, 6])\n"
            "  loss  = mse(net(batch.x), batch.y)\n"
            "  optim = sgd(lr = 0.1)\n"
            "  steps = 5\n"
            "}\n",
            steps, steps);
    fclose(f);
}
