/* WIDE neighbours of a buffer, read and written 16 bytes at a time. */
#define WIDE_TYPE(type, bytes)                                                                     \
    typedef struct ALIGNED(bytes) Wide_##type {                                                    \
        type x[WIDE];                                                                              \
    } Wide_##type;
#define WIDE_AT(type, k, first) (*(Wide_##type *)(BUF(type, k) + (first)))
#define IS_ALIGNED(k)           ((a.word[k] & 15) == 0)
