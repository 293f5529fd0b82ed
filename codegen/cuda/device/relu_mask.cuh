#include "real.cuh"
/* Which elements are positive: bit k of word w is element 32 w + k.  A block of 256 threads makes as
 * many words: all read neighbours and leave a byte each, then a thread joins the bytes of a word. */
#define WORD    32
#define THREADS 256
#define QUADS   (WORD / 4 + 1) /* of bytes, for a word; odd: words lie in different banks */

DEVICE u32 four_bits(u32 bytes)
{
    return (bytes | bytes >> 7 | bytes >> 14 | bytes >> 21) & 15u;
}

DEVICE void relu_mask(const Args a)
{
    SHARED u32 positive[THREADS][QUADS];
    const REAL(0) *x = BUF(const REAL(0), 0);
    const i64 first = (i64)blockIdx.x * (WORD * THREADS);
    const int t = threadIdx.x;
    u32 bits = 0;
    for (int i = t; i < WORD * THREADS; i += THREADS) {
        const i64 at = first + i;
        u8 *bytes = (u8 *)positive[i / WORD];
        bytes[i % WORD] = at < ELEMENTS && VALUE(0, x[at / ROW * PITCH + at % ROW]) > 0.0f;
    }
    __syncthreads();
    if (first + t * WORD >= ELEMENTS)
        return;
    for (int k = 0; k < WORD / 4; k++)
        bits |= four_bits(positive[t][k]) << (4 * k);
    BUF(u32, 1)[first / WORD + t] = bits;
}
