# SPDX-License-Identifier: GPL-3.0-or-later
"""A training step of bench.py's GPT-2 in JAX on a CUDA device: peer_jax.py CASE PRECISION keep|checkpoint

Prints JSON: the median of STEPS steps behind WARM_UP ones, and the most bytes that JAX's allocator held.  The same
network, optimizer, loss and batch as the example's; random data lies on the device before the first step.  checkpoint:
each layer is computed again for its gradient (jax.checkpoint).
"""
import argparse
import functools
import json
import os
import statistics
import sys
import time

STEPS, WARM_UP = 9, 3
CONTEXT, LAYERS, HEADS, WIDTH, VOCABULARY = 1024, 12, 12, 768, 50257
RATE, BETA1, BETA2, EPSILON, DECAY, CLIP = 6e-4, 0.9, 0.95, 1e-8, 0.1, 1.0
BATCHES = {"gpt2-64": 64, "gpt2-8": 8}


def parameters(jax):
    """Weights of the layers are stacked, so that one layer is traced for all of them."""
    jnp, normal = jax.numpy, jax.random.normal
    keys = iter(jax.random.split(jax.random.key(0), 8))

    def dense(inputs, outputs):
        return {"w": 0.02 * normal(next(keys), (LAYERS, inputs, outputs)), "b": jnp.zeros((LAYERS, outputs))}

    def norm(*layers):
        return {"w": jnp.ones((*layers, WIDTH)), "b": jnp.zeros((*layers, WIDTH))}

    layers = {"ln_1": norm(LAYERS), "ln_2": norm(LAYERS), "c_attn": dense(WIDTH, 3 * WIDTH),
              "c_proj": dense(WIDTH, WIDTH), "fc": dense(WIDTH, 4 * WIDTH), "proj": dense(4 * WIDTH, WIDTH)}
    return {"wte": 0.02 * normal(next(keys), (VOCABULARY, WIDTH)), "wpe": 0.02 * normal(next(keys), (CONTEXT, WIDTH)),
            "layers": layers, "ln_f": norm()}


def make_loss(jax, precision, checkpoint):
    jnp = jax.numpy
    kind = jnp.bfloat16 if precision == "bf16" else jnp.float32

    def norm(p, x):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return (y * p["w"] + p["b"]).astype(kind)

    def dense(p, x):
        return x @ p["w"].astype(kind) + p["b"].astype(kind)

    def layer(x, p):
        n, t, _ = x.shape
        qkv = dense(p["c_attn"], norm(p["ln_1"], x)).reshape(n, t, 3, HEADS, WIDTH // HEADS)
        y = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=True)
        x = x + dense(p["c_proj"], y.reshape(n, t, WIDTH))
        y = jax.nn.gelu(dense(p["fc"], norm(p["ln_2"], x)), approximate=True)
        return x + dense(p["proj"], y), None

    def loss(p, ids, labels):
        x = (p["wte"][ids] + p["wpe"][:ids.shape[1]]).astype(kind)
        x, _ = jax.lax.scan(jax.checkpoint(layer) if checkpoint else layer, x, p["layers"])
        scores = (norm(p["ln_f"], x) @ p["wte"].T.astype(kind)).astype(jnp.float32)
        picked = jnp.take_along_axis(scores, labels[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(scores, -1) - picked).mean()

    return loss


def make_step(jax, loss):
    """AdamW that decays matrices, behind a clip of the gradients' norm."""
    jnp, tree = jax.numpy, jax.tree_util

    def update(path, p, m, v, g, step, scale):
        matrix = p.ndim == (3 if path[0].key == "layers" else 2)
        m, v = BETA1 * m + (1 - BETA1) * g * scale, BETA2 * v + (1 - BETA2) * (g * scale) ** 2
        change = m / (1 - BETA1 ** step) / (jnp.sqrt(v / (1 - BETA2 ** step)) + EPSILON)
        return p - RATE * (change + (DECAY if matrix else 0) * p), m, v

    @functools.partial(jax.jit, donate_argnums=(0,))
    def run(state, ids, labels):
        p, m, v, step = state
        value, g = jax.value_and_grad(loss)(p, ids, labels)
        length = jnp.sqrt(sum(jnp.vdot(x, x) for x in tree.tree_leaves(g)))
        scale = jnp.minimum(1, CLIP / (length + 1e-6))
        new = tree.tree_map_with_path(lambda *x: update(*x, step + 1, scale), p, m, v, g)
        p, m, v = (tree.tree_map(lambda x, i=i: x[i], new, is_leaf=lambda x: isinstance(x, tuple)) for i in range(3))
        return (p, m, v, step + 1), value

    return run


def measure(jax, arguments):
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if arguments.precision == "tf32" else "float32")
    p = parameters(jax)
    zeros = lambda: jax.tree_util.tree_map(jax.numpy.zeros_like, p)
    state = (p, zeros(), zeros(), jax.numpy.zeros((), "int32"))
    run = make_step(jax, make_loss(jax, arguments.precision, arguments.mode == "checkpoint"))
    shape = (2, BATCHES[arguments.case], CONTEXT)
    ids, labels = jax.block_until_ready(jax.random.randint(jax.random.key(1), shape, 0, VOCABULARY))
    del p
    seconds = []
    for _ in range(WARM_UP + STEPS):
        start = time.perf_counter()
        state, value = jax.block_until_ready(run(state, ids, labels))
        seconds.append(time.perf_counter() - start)
    peak = jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    return {"seconds_per_step": statistics.median(seconds[WARM_UP:]), "arena_bytes": peak, "loss": float(value)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=BATCHES)
    parser.add_argument("precision", choices=["f32", "tf32", "bf16"])
    parser.add_argument("mode", choices=["keep", "checkpoint"])
    arguments = parser.parse_args()
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # else the peak is what was set aside
    try:
        import jax
        if jax.devices()[0].platform != "gpu":
            raise RuntimeError("JAX sees no device")
        print(json.dumps(measure(jax, arguments)))
    except ImportError:
        print(json.dumps({"error": "JAX is not installed"}))
    except Exception as fault:  # of any version: the row says why
        text = str(fault).strip().splitlines() or [type(fault).__name__]
        print(json.dumps({"error": "out of memory" if "RESOURCE_EXHAUSTED" in str(fault) else text[0][:200]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
