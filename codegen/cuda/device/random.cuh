/* Philox4x32-10 (Salmon et al. 2011), used as in ir/rng.c: the CPU's numbers, bit for bit. */
typedef struct Words {
    u32 word[4];
} Words;

DEVICE Words s_words(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1)
{
    Words out;
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
    out.word[0] = c0, out.word[1] = c1, out.word[2] = c2, out.word[3] = c3;
    return out;
}

/* The first word, and the second above it. */
DEVICE unsigned long long s_philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1)
{
    const Words w = s_words(c0, c1, c2, c3, k0, k1);
    return (unsigned long long)w.word[1] << 32 | w.word[0];
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
    const u32 low = (u32)index_low, high = (u32)index_high;
    const Words w = s_words(low >> 2 | high << 30, high >> 2, (u32)step_low, (u32)step_high,
                            (u32)key_low, (u32)key_high);
    const u32 even = low & 2 ? w.word[2] : w.word[0], odd = low & 2 ? w.word[3] : w.word[1];
    return (low & 1 ? odd : even) >= threshold ? x * scale : 0.0f;
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
