/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Binary heaps over arrays: the item that goes before all others is heap[0].
 *
 * HEAP_DEFINE(NAME, CONTEXT, ITEM, BEFORE, PLACED) defines functions NAME_... for heaps of ITEM.
 * BEFORE(const CONTEXT *c, ITEM a, ITEM b): a goes before b; a strict total order, so that what is
 * popped does not depend on how the heap was built.  PLACED(CONTEXT *c, ITEM a, size_t i): a is at
 * heap[i] from here on; HEAP_UNTOLD where nobody wants to know.  O(log n) each, make O(n). */
#ifndef SCRIMP_IR_SUPPORT_HEAP_H
#define SCRIMP_IR_SUPPORT_HEAP_H

#include <stddef.h>

#define HEAP_UNTOLD(c, item, i) ((void)0)

#define HEAP_DEFINE(NAME, CONTEXT, ITEM, BEFORE, PLACED)                                           \
    static inline void NAME##_put(CONTEXT *c, ITEM *heap, size_t i, ITEM item)                     \
    {                                                                                              \
        (void)c;                                                                                   \
        heap[i] = item;                                                                            \
        PLACED(c, item, i);                                                                        \
    }                                                                                              \
    static inline void NAME##_down(CONTEXT *c, ITEM *heap, size_t n, size_t i)                     \
    {                                                                                              \
        ITEM item = heap[i];                                                                       \
        for (size_t child; (child = 2 * i + 1) < n; i = child) {                                   \
            child += child + 1 < n && BEFORE(c, heap[child + 1], heap[child]);                     \
            if (!BEFORE(c, heap[child], item))                                                     \
                break;                                                                             \
            NAME##_put(c, heap, i, heap[child]);                                                   \
        }                                                                                          \
        NAME##_put(c, heap, i, item);                                                              \
    }                                                                                              \
    static inline size_t NAME##_up(CONTEXT *c, ITEM *heap, size_t i)                               \
    {                                                                                              \
        ITEM item = heap[i];                                                                       \
        for (; i > 0 && BEFORE(c, item, heap[(i - 1) / 2]); i = (i - 1) / 2)                       \
            NAME##_put(c, heap, i, heap[(i - 1) / 2]);                                             \
        NAME##_put(c, heap, i, item);                                                              \
        return i;                                                                                  \
    }                                                                                              \
    /* heap[i] to where it belongs, after what decides that has changed. */                        \
    static inline void NAME##_fix(CONTEXT *c, ITEM *heap, size_t n, size_t i)                      \
    {                                                                                              \
        NAME##_down(c, heap, n, NAME##_up(c, heap, i));                                            \
    }                                                                                              \
    /* Takes heap[0] out of n > 0 items. */                                                        \
    static inline ITEM NAME##_pop(CONTEXT *c, ITEM *heap, size_t n)                                \
    {                                                                                              \
        ITEM top = heap[0];                                                                        \
        heap[0] = heap[n - 1];                                                                     \
        if (n > 1)                                                                                 \
            NAME##_down(c, heap, n - 1, 0);                                                        \
        return top;                                                                                \
    }                                                                                              \
    static inline void NAME##_make(CONTEXT *c, ITEM *heap, size_t n)                               \
    {                                                                                              \
        for (size_t i = n / 2; i-- > 0;)                                                           \
            NAME##_down(c, heap, n, i);                                                            \
    }

#endif
