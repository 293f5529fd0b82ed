/* Philox4x32-10 (Salmon et al. 2011), used as in ir/rng.c: the CPU's numbers, bit for bit.  The
 * first word of the output, and the second above it. */
DEVICE unsigned long long s_philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1)
{
    int round;
    for (round = 0; round < 10; round++) {
        unsigned long long p0 = (unsigned long long)c0 * 0xD2511F53u;
        unsigned long long p1 = (unsigned long long)c2 * 0xCD9E8D57u;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (unsigned long long)c1 << 32 | c0;
}

/* High word of the sum of two 64-bit numbers. */
DEVICE int s_key_high(int low, int high, int add_low, int add_high)
{
    u32 sum = (u32)low + (u32)add_low;
    return (int)((u32)high + (u32)add_high + (sum < (u32)low));
}

DEVICE float s_dropout(float x, int key_low, int key_high, int step_low, int step_high,
                       int index_low, int index_high, u32 threshold, float scale)
{
    u32 bits = (u32)s_philox((u32)index_low, (u32)index_high, (u32)step_low, (u32)step_high,
                             (u32)key_low, (u32)key_high);
    return bits >= threshold ? x * scale : 0.0f;
}

/* The numbers of ir/random.h, of two random words. */
DEVICE float s_uniform(unsigned long long words)
{
    return (float)(int)((u32)words >> 8) * 0x1p-24f;
}

DEVICE float s_normal(unsigned long long words)
{
    float u = (float)(int)((u32)words >> 1 | 1u) * 0x1p-31f;
    float angle = (float)((int)(u32)(words >> 32) >> 7 | 1) * 0x1.921fb6p-24f;
    return sqrtf(s_log(u) * -2.0f) * s_sin(angle);
}

DEVICE int s_integer(unsigned long long words, u32 below)
{
    return (int)((unsigned long long)(u32)words * below >> 32);
}
