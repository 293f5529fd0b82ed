# SPDX-License-Identifier: GPL-3.0-or-later
"""Losses with optimizers of their own, against loops of PyTorch as their users write them: adversarial.py [--numbers]

tests/e2e/adversarial.scrimp takes ten steps in scrimp and in PyTorch (in float64) in each of its orders; every weight
and running statistic must agree to TOLERANCE of the largest of its tensor, losses to LOSSES.  (Adam and RMSprop divide
by the size of the gradient: where that is small, so is its precision in f32.)  --numbers prints what tests/e2e/test_losses.c expects.

By hand:  SCRIMP=build/dev/scrimp python3 tests/peers/adversarial.py
As test:  ctest --preset peers -R peers_adversarial
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch

import safefile
import scrimp

STEPS = 10
N = 8
TOLERANCE = 5e-4
LOSSES = 5e-5
ORDERS = ["turn", "together", "critic", "before"]


def sinusoid(length, dim):
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10000 ** (2 * torch.arange(dim // 2, dtype=torch.float64) / dim)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(length, dim)


class Dense(torch.nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(out, wide, dtype=torch.float64))
        self.offset = 0.5 * sinusoid(out, wide)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight + self.offset)


class Net(torch.nn.Module):
    def __init__(self, sizes, act, bias):
        super().__init__()
        self.a = Dense(sizes[0], sizes[1])
        self.norm = torch.nn.BatchNorm1d(sizes[1]).double()
        self.b = Dense(sizes[1], sizes[2])
        self.bias = torch.nn.Parameter(torch.zeros(sizes[2], dtype=torch.float64)) if bias else None
        self.act = act

    def forward(self, x):
        y = self.b(self.act(self.norm(self.a(x))))
        return y if self.bias is None else y + self.bias


def wave(columns, phase):
    return (0.7 * torch.arange(N * columns, dtype=torch.float64) + phase).sin().reshape(N, columns)


def real(k):
    return wave(6, k) ** 2


def noise(k):
    return wave(4, 2 * k + 1)


def groups(net, lr):
    named = list(net.named_parameters())
    return [{"params": [p for n, p in named if not n.endswith("bias")], "lr": lr},
            {"params": [p for n, p in named if n.endswith("bias")], "lr": lr / 2}]


def bce(x, label):
    return torch.nn.functional.binary_cross_entropy_with_logits(x, torch.full_like(x, label))


def in_torch(order):
    """(losses of each step, {name: tensor} at the end, the losses of an evaluation then)"""
    net_d = Net([6, 10, 1], torch.nn.LeakyReLU(0.2), True)
    net_g = Net([4, 8, 6], torch.nn.ReLU(), False)
    if order == "critic":
        opt_d = torch.optim.RMSprop(groups(net_d, 0.002), lr=0.002)
        opt_g = torch.optim.Adam(groups(net_g, 0.01), lr=0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(opt_g, 1, 0, total_iters=STEPS)
    else:
        opt_d = torch.optim.Adam(groups(net_d, 0.02), lr=0.02, betas=(0.5, 0.999))
        opt_g = torch.optim.Adam(groups(net_g, 0.01), lr=0.01, betas=(0.5, 0.999))

    def loss_d(fake, k=0):
        if order == "critic":
            on_fake = net_d(fake.detach()).mean()
            return on_fake - net_d(real(k)).mean()
        on_real = bce(net_d(real(k)), 1.0)
        return on_real + bce(net_d(fake.detach()), 0.0)

    def loss_g(fake):
        return -net_d(fake).mean() if order == "critic" else bce(net_d(fake), 1.0)

    def step_d(loss):
        opt_d.zero_grad()
        loss.backward()
        if order != "critic":
            torch.nn.utils.clip_grad_norm_(net_d.parameters(), 0.3)
        opt_d.step()

    def step_g(loss):
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()

    def together(fake):
        d, g = loss_d(fake), loss_g(fake)
        of_d = torch.autograd.grad(d, net_d.parameters(), retain_graph=True)
        of_g = torch.autograd.grad(g, net_g.parameters())
        for net, grads in ((net_d, of_d), (net_g, of_g)):
            for p, grad in zip(net.parameters(), grads):
                p.grad = grad
        torch.nn.utils.clip_grad_norm_(net_d.parameters(), 0.3)
        opt_d.step()
        opt_g.step()
        return d, g

    losses = []
    for _ in range(STEPS):
        if order == "critic":
            for k in range(3):
                d = loss_d(net_g(noise(k)), k)
                step_d(d)
            g = loss_g(net_g(noise(3)))
            step_g(g)
            schedule.step()
        elif order == "before":
            fake = net_g(noise(0))
            g = loss_g(fake)
            step_g(g)
            d = loss_d(fake)
            step_d(d)
        else:
            fake = net_g(noise(0))
            if order == "together":
                d, g = together(fake)
            else:
                d = loss_d(fake)
                step_d(d)
                g = loss_g(fake)
                step_g(g)
        losses.append((d.item(), g.item()))
    state = {f"{name}.{n}": t.detach().numpy() for name, net in (("netD", net_d), ("netG", net_g))
             for n, t in net.state_dict().items() if "num_batches" not in n}
    net_d.eval()
    net_g.eval()
    last = 2 if order == "critic" else 0
    d = loss_d(net_g(noise(last)), last).item()
    g = loss_g(net_g(noise(3 if order == "critic" else 0))).item()
    return losses, state, (d, g)


def in_scrimp(folder, order):
    path, out, log = scrimp.SOURCE / "tests/e2e/adversarial.scrimp", folder / order, folder / f"{order}.log"
    scrimp.call("train", path, "-D", f"order={order}", "--out", out, "--log", log, "--quiet")
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    losses = [(row["d_loss"], row["g_loss"]) for row in rows if "d_loss" in row]
    told = json.loads(scrimp.call("eval", path, "-D", f"order={order}", "--checkpoint", out, "--json"))
    return losses, safefile.read(out / "model.safetensors"), (told["d_loss"], told["g_loss"])


def main():
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="scrimp-peers-") as folder:
        for order in ORDERS:
            losses, state, evaluated = in_torch(order)
            if "--numbers" in sys.argv:
                numbers = [*losses[0], *losses[4], *losses[9], *evaluated]
                print(f'        {{"{order}", {{{", ".join(f"{x:.7f}" for x in numbers)}}}}},')
                continue
            mine, weights, told = in_scrimp(pathlib.Path(folder), order)
            assert set(weights) == set(state), set(weights) ^ set(state)
            error = max(np.abs(weights[n] - t).max() / max(np.abs(t).max(), 0.01) for n, t in state.items())
            of_losses = np.abs(np.array(mine + [told]) - np.array(losses + [evaluated])).max()
            print(f"{order}: weights and statistics agree to {error:.2g}, losses to {of_losses:.2g}")
            worst = max(worst, error / TOLERANCE, of_losses / LOSSES)
    sys.exit(f"FAIL: {worst:.2g} times what is allowed" if worst > 1 else 0)


main()
