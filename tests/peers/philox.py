# SPDX-License-Identifier: GPL-3.0-or-later
"""The normal numbers that scrimp draws, from its definition (ir/random.h): Philox4x32-10 of Salmon et al. 2011, keyed by
seed and call, counted by element and step, and the transformation of Box and Muller."""
import numpy as np

LOW = np.uint64(0xFFFFFFFF)


def words(seed, step, key, count):
    """Four arrays of 32-bit words, one element for each index below count."""
    mixed = (seed + key * 0x9E3779B97F4A7C15) % 2**64
    k0, k1 = mixed % 2**32, mixed >> 32
    c0, c1 = np.arange(count, dtype=np.uint64), np.zeros(count, np.uint64)
    c2, c3 = np.full(count, step, np.uint64), np.zeros(count, np.uint64)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1 = b >> np.uint64(32) ^ c1 ^ np.uint64(k0), b & LOW
        c2, c3 = a >> np.uint64(32) ^ c3 ^ np.uint64(k1), a & LOW
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def call_key(path, number):
    """Of the call that is number `number` among those of its path: FNV-1a of both."""
    h = 0xCBF29CE484222325
    for byte in f"{path}#{number}".encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h >> 1


def normal(shape, path, number, step, seed=0):
    w0, w1, *_ = words(seed, step, call_key(path, number), int(np.prod(shape)))
    u = ((w0 >> np.uint64(1) | np.uint64(1)) * 2.0**-31).astype(np.float32).astype(np.float64)
    signed = w1.astype(np.uint32).view(np.int32)
    v = (2.0 * np.floor(signed / 256.0) + 1) * 2.0**-25
    return (np.sqrt(-2 * np.log(u)) * np.sin(np.pi * v)).reshape(shape)
