/* The partial result of this block's chunk: a sum of losses, and what their labels count. */
DEVICE void store_partial(const Args a, double sum, COUNT count)
{
    char *partial = BUF(char, OUT_BUF) + (i64)blockIdx.x * PARTIAL_BYTES;
    *(double *)partial = sum;
    *(COUNT *)(partial + 8) = count;
}
