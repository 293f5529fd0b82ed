/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable arrays on a pool: VEC(int) v = {0}; vec_push(pool, &v, 3); v.data[0], v.len. */
#ifndef SCRIMP_IR_SUPPORT_VEC_H
#define SCRIMP_IR_SUPPORT_VEC_H

#include "ir/support/pool.h"

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *data;                                                                                   \
        size_t len, cap;                                                                           \
    }

#define vec_reserve(pool, v, n)                                                                    \
    do {                                                                                           \
        if ((v)->cap < (n)) {                                                                      \
            size_t vec_cap_ = (v)->cap ? (v)->cap : 8;                                             \
            while (vec_cap_ < (n))                                                                 \
                vec_cap_ *= 2;                                                                     \
            (v)->data = pool_grow((pool), (v)->data, (v)->len * sizeof *(v)->data,                 \
                                  vec_cap_ * sizeof *(v)->data);                                   \
            (v)->cap = vec_cap_;                                                                   \
        }                                                                                          \
    } while (0)

#define vec_push(pool, v, ...)                                                                     \
    do {                                                                                           \
        vec_reserve((pool), (v), (v)->len + 1);                                                    \
        (v)->data[(v)->len++] = (__VA_ARGS__);                                                     \
    } while (0)

#endif
