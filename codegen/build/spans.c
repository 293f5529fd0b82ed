/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/spans.h"

/* More than any image has that is made for a kernel (ir/prologue.c). */
enum { SPANS_MOST = 1 << 20 };

TaskSpans *task_spans_new(Pool *pool, int64_t n, int64_t tasks_each)
{
    if (n < 1 || n > SPANS_MOST)
        return NULL;
    TaskSpans *s = POOL_NEW(pool, TaskSpans);
    *s = (TaskSpans){.n = n,
                     .task = POOL_ARRAY(pool, (size_t)n + 1, int64_t),
                     .from = POOL_ARRAY(pool, (size_t)n + 1, int64_t),
                     .to = POOL_ARRAY(pool, (size_t)n + 1, int64_t)};
    for (int64_t i = 0; i <= n; i++)
        s->task[i] = i * tasks_each;
    return s;
}

ReadPieces *read_pieces_of_spans(Pool *pool, const TaskSpans *reads, int64_t most)
{
    ReadPieces *pieces = POOL_NEW(pool, ReadPieces);
    pieces->steps = -1;
    for (int64_t i = 0, end; i < reads->n; i = end) {
        for (end = i + 1; end < reads->n && reads->to[end] - reads->from[i] <= most; end++)
            ;
        vec_push(pool, &pieces->of,
                 (ReadPiece){.task = reads->task[i],
                             .task_end = reads->task[end],
                             .from = reads->from[i],
                             .to = reads->to[end - 1]});
    }
    return pieces;
}
