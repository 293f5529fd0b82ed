#include "real.cuh"
/* A word of element `number` of a line: an integer that compares as the element does, NaN above all
 * and both zeros equal, and behind it the number, so that no two words are equal. */
#if INTEGER
#define ELEMENT int
#else
#define ELEMENT REAL(0)
#endif

DEVICE int sort_key(ELEMENT x)
{
#if INTEGER
    return x;
#else
    const float v = VALUE(0, x);
    const int bits = to_bits(v);
    return v != v ? 0x7fffffff : v == 0.0f ? 0 : bits ^ (bits < 0 ? 0x7fffffff : 0);
#endif
}

DEVICE i64 sort_word(const ELEMENT *line, i64 number)
{
    const int key = sort_key(line[number]);
    return (i64)(DESCENDING ? ~key : key) * ((i64)1 << 32) | number;
}
