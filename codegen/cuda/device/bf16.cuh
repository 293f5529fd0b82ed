#ifndef BF16
#define BF16
/* bf16 is the upper half of an f32; all arithmetic is done in f32.  Rounding is to nearest, ties to
 * even; NaN stays NaN. */
typedef unsigned short u16;

DEVICE float from_bf16(u16 x)
{
    return from_bits((int)((u32)x << 16));
}

DEVICE u16 to_bf16(float x)
{
#ifdef __CUDACC__
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x)); /* one instruction */
    return r;
#else
    const u32 bits = (u32)to_bits(x);
    const u32 near = bits + 0x7fffu + (bits >> 16 & 1u);
    return (u16)((x != x ? bits | 0x400000u : near) >> 16);
#endif
}

/* In the halves of a word. */
DEVICE u32 two_bf16(float low, float high)
{
#ifdef __CUDACC__
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
#else
    return (u32)to_bf16(low) | (u32)to_bf16(high) << 16;
#endif
}

DEVICE float round_bf16(float x)
{
#ifdef __CUDACC__
    return from_bits((int)two_bf16(0.0f, x));
#else
    return from_bf16(to_bf16(x));
#endif
}
#endif
