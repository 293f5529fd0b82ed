# SPDX-License-Identifier: GPL-3.0-or-later
"""A training step of bench.py's cases in PyTorch on a CUDA device: peer_torch.py CASE PRECISION eager|compile

Prints JSON: the median of STEPS steps behind WARM_UP ones, and the most bytes that PyTorch's allocator held.  The same
network, optimizer, loss and batch as the example's; random data lies on the device before the first step.
"""
import argparse
import json
import statistics
import sys
import time

STEPS, WARM_UP = 9, 3


def gpt2(torch, n, t, context=1024, layers=12, heads=12, width=768, vocabulary=50257):
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

        def forward(self, x):
            q, k, v = (y.view(n, t, heads, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.c_proj(y.transpose(1, 2).reshape(n, t, width))
            return x + self.mlp(self.ln_2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.h = nn.Sequential(*(Layer() for _ in range(layers)))
            self.ln_f = nn.LayerNorm(width)

        def forward(self, ids):
            x = self.wte(ids) + self.wpe.weight[:t]
            return self.ln_f(self.h(x)) @ self.wte.weight.T

    model = Model().cuda()
    ids = torch.randint(0, vocabulary, (2, n, t), device="cuda")
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1]},
              {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    loss = lambda: F.cross_entropy(model(ids[0]).flatten(0, 1).float(), ids[1].flatten())
    return model, loss, optimizer, 1.0


def resnet50(torch, n):
    import torchvision

    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    image = torch.randn(n, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    label = torch.randint(0, 1000, (n,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    return model, lambda: torch.nn.functional.cross_entropy(model(image).float(), label), optimizer, None


CASES = {"gpt2-64": lambda torch: gpt2(torch, 64, 1024), "gpt2-8": lambda torch: gpt2(torch, 8, 1024),
         "resnet50-256": lambda torch: resnet50(torch, 256), "resnet50-32": lambda torch: resnet50(torch, 32)}


def make_step(torch, arguments):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    model, loss, optimizer, clip = CASES[arguments.case](torch)
    if arguments.mode == "compile" and arguments.activations != 1:
        import torch._functorch.config as functorch
        if not hasattr(functorch, "activation_memory_budget"):
            raise ImportError("this PyTorch has no activation_memory_budget")
        functorch.activation_memory_budget = arguments.activations
    if arguments.mode == "compile":
        loss = torch.compile(loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=arguments.precision == "bf16"):
            value = loss()
        value.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return step


def measure(torch, step):
    seconds = []
    for i in range(WARM_UP + STEPS):
        if i == WARM_UP:
            torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return {"seconds_per_step": statistics.median(seconds[WARM_UP:]), "arena_bytes": torch.cuda.max_memory_allocated()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("precision", choices=["f32", "tf32", "bf16"])
    parser.add_argument("mode", choices=["eager", "compile"])
    parser.add_argument("--activations", type=float, default=1.0, help="torch.compile's activation_memory_budget")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print(json.dumps({"error": "PyTorch is not installed"}))
        return 0
    if not torch.cuda.is_available():
        print(json.dumps({"error": "PyTorch sees no device"}))
        return 0
    try:
        print(json.dumps(measure(torch, make_step(torch, arguments))))
    except torch.cuda.OutOfMemoryError:
        print(json.dumps({"error": "out of memory"}))
    except ImportError as missing:
        print(json.dumps({"error": str(missing)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
