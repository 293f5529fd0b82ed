/* A block a line at a time: bitonic merges (Batcher 1968) of PADDED words, in shared memory or, of
 * long lines, in the workspace.  Words behind the end of the line are larger than all others. */
DEVICE void sort_words(i64 *words)
{
    int size, apart, i;
    for (size = 2; size <= PADDED; size *= 2)
        for (apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (i = (int)threadIdx.x; i < PADDED / 2; i += THREADS) {
                const int low = i / apart * 2 * apart + i % apart, high = low + apart;
                const i64 x = words[low], y = words[high];
                if ((x > y) == ((low & size) == 0)) {
                    words[low] = y;
                    words[high] = x;
                }
            }
        }
    __syncthreads();
}

DEVICE void sort_line(const Args a)
{
#if SLOTS
    i64 *words = BUF(i64, 2) + (i64)blockIdx.x * WORDS;
#else
    SHARED i64 words[WORDS];
#endif
    i64 line, k;
    for (line = blockIdx.x; line < LINES; line += SLOTS ? SLOTS : LINES) {
        const ELEMENT *x = BUF(const ELEMENT, 0) + line * LENGTH;
        for (k = threadIdx.x; k < PADDED; k += THREADS)
            words[k] = k < LENGTH ? sort_word(x, k) : 0x7fffffffffffffffLL;
        sort_words(words);
        for (k = threadIdx.x; k < COUNT; k += THREADS)
            BUF(int, 1)[line * COUNT + k] = (int)(words[k] & 0xffffffff);
        __syncthreads();
    }
}
