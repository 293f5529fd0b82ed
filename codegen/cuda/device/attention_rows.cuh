/* Rows of attention that a library computes.  It has one number for each, the logarithm of the sum of
 * exponentials of the scores: a largest score with a sum of one says the same. */

DEVICE void attention_ones(const Args a)
{
    const i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < ROWS)
        BUF(float, 0)[i] = 1.0f;
}

/* PART rows of every call of the library, each of which has them at a multiple of PITCH. */
DEVICE void attention_logs(const Args a)
{
    const i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < ROWS)
        BUF(float, 2)[i / PART * PITCH + i % PART] = BUF(const float, 0)[i] + s_log(BUF(const float, 1)[i]);
}
