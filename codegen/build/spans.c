/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/spans.h"

TaskSpans *task_spans_new(Pool *pool, int64_t n, int64_t tasks_each)
{
    if (n < 1 || n > TASK_SPANS_MOST)
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
