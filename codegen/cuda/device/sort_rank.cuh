/* A thread an element: its place is the number of smaller ones. */
DEVICE void sort_rank(const Args a)
{
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x, line = at / LENGTH;
    const ELEMENT *x = BUF(const ELEMENT, 0) + line * LENGTH;
    i64 word, k;
    int place = 0;
    if (line >= LINES)
        return;
    word = sort_word(x, at % LENGTH);
    for (k = 0; k < LENGTH; k++)
        place += sort_word(x, k) < word;
    if (place < COUNT)
        BUF(int, 1)[line * COUNT + place] = (int)(at % LENGTH);
}
