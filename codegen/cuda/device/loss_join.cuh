/* Partial results in order: sum / count, 0 without labels, or the sum. */
DEVICE void loss_join(const Args a)
{
    double sum = 0;
    COUNT count = 0;
    i64 k;
    if (threadIdx.x != 0)
        return;
    for (k = 0; k < CHUNKS; k++) {
        const char *partial = BUF(const char, 0) + k * PARTIAL_BYTES;
        sum = sum + (double)*(const SUM *)partial;
        count = count + *(const COUNT *)(partial + 8);
    }
    *BUF(float, 1) = !MEAN ? (float)sum : count > 0 ? (float)(sum / (double)count) : 0.0f;
}
