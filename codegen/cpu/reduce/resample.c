/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codegen/forms/resample.h.  A task owns one output row, or a block of its channels.  It first adds
 * up the input rows in scratch memory, as long vectors over columns and channels, then the columns;
 * or both at once from the input. */
#include "codegen/forms/resample.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"

#include "codegen/cpu/rules.h"
#include "ir/support/pool.h"

enum {
    GROUP = 8,           /* vectors that are summed side by side */
    BLOCK_FLOATS = 16384 /* of scratch: stays in the first two caches */
};

KERNEL_DESC_BEGIN
typedef struct ResampleTasks {
    ResampleDesc desc;
    int64_t block; /* channels of a task */
} ResampleTasks;
KERNEL_DESC(ResampleTasks)

/* --- kernel --- */

typedef struct Axis {
    JitValue shift, end, weight; /* tables */
    int64_t block;               /* taps that are added up before they join the sum; 0: all */
    bool copies;
} Axis;

typedef struct Kernel {
    const ResampleDesc *d;
    int64_t block; /* channels of a task */
    Axis rows, columns;
    JitValue x, y, scratch;
    JitValue image, from, to; /* of the task: its channels */
    JitValue oh, ow;
    JitValue line_x, line_scratch; /* what the vertical pass adds to x's row and to scratch */
    bool spill;                    /* whole vectors may be written over the next pixels */
} Kernel;

static Axis axis_of(Jit *j, Pool *pool, const ResampleDesc *d, int axis)
{
    const JitTypes *t = jit_types(j);
    Taps taps = resample_taps(pool, d, axis);
    size_t n = (size_t)taps.n, total = (size_t)taps.end[n];
    return (Axis){.shift = jit_table(j, t->i64, taps.shift, n, sizeof *taps.shift),
                  .end = jit_table(j, t->i64, taps.end, n + 1, sizeof *taps.end),
                  .weight = jit_table(j, t->i32, taps.weight, total, sizeof *taps.weight),
                  .block = taps.block,
                  .copies = taps.copies};
}

/* The only element that an output of a copying axis reads. */
static JitValue copied(Jit *j, const Axis *a, JitValue i)
{
    JitValue shift = jit_load(j, a->shift, i);
    return add(j, shift, jit_load(j, a->end, i));
}

/* --- groups of vectors --- */

typedef void GroupBody(Jit *j, Kernel *s, const Lanes *v, int n);

static void whole_group(Jit *j, Kernel *s, JitValue from, int n, GroupBody *body)
{
    Lanes v[GROUP];
    for (int i = 0; i < n; i++)
        v[i] = (Lanes){add(j, from, jit_i64(j, i * jit_lanes(j))), NULL, i};
    body(j, s, v, n);
}

static JitValue groups_of(Jit *j, Kernel *s, JitValue from, JitValue to, int n, GroupBody *body)
{
    int64_t width = n * jit_lanes(j);
    JitLoop l = jit_for(j, from, jit_sub(j, to, jit_i64(j, width - 1)), width, "v");
    whole_group(j, s, jit_index(&l), n, body);
    jit_end_for(j, &l);
    return jit_index(&l);
}

/* A line of few vectors: all at once, the last one overlapping its neighbour. */
static void short_line(Jit *j, Kernel *s, JitValue from, int64_t length, GroupBody *body)
{
    Lanes v[GROUP];
    int64_t lanes = jit_lanes(j);
    int n = (int)divide_up(length, lanes);
    for (int i = 0; i < n; i++) {
        int64_t at = i < n - 1 || n == 1 ? i * lanes : length - lanes;
        JitValue rest = length < lanes && !s->spill ? jit_i64(j, length) : NULL;
        v[i] = (Lanes){add(j, from, jit_i64(j, at)), rest, i};
    }
    body(j, s, v, n);
}

/* Elements [from, to).  length: their number if it is known, else -1. */
static void each_group(Jit *j, Kernel *s, JitValue from, JitValue to, int64_t length,
                       GroupBody *body)
{
    int64_t lanes = jit_lanes(j);
    if (length >= 0 && length <= GROUP * lanes) {
        short_line(j, s, from, length, body);
        return;
    }
    JitValue at = groups_of(j, s, from, to, GROUP, body);
    at = groups_of(j, s, at, to, 1, body);
    if (length >= 0 && length % lanes == 0)
        return;
    JitIf tail = jit_if(j, jit_compare(j, JIT_LT, at, to));
    Lanes v = {at, sub(j, to, at), 0};
    if (length >= 0)
        v = (Lanes){sub(j, to, jit_i64(j, lanes)), NULL, 0};
    body(j, s, &v, 1);
    jit_end_if(j, &tail);
}

/* --- sums --- */

static void start_sums(Jit *j, JitVar *sum, int n)
{
    for (int i = 0; i < n; i++) {
        sum[i] = jit_var(j, jit_types(j)->vf, "sum");
        jit_set(j, sum[i], jit_vf(j, 0));
    }
}

/* The taps of one output of an axis as a loop. */
typedef struct TapLoop {
    JitLoop block, tap;
    JitValue at, weight; /* the element and its weight, a vector */
    JitVar *sum;         /* what the body adds to */
    JitVar part[GROUP];
} TapLoop;

static void begin_taps(Jit *j, TapLoop *l, const Axis *a, JitValue i, JitVar *sum, int n)
{
    JitValue shift = jit_load(j, a->shift, i), begin = jit_load(j, a->end, i);
    JitValue end = jit_load(j, a->end, add(j, i, jit_i64(j, 1)));
    l->sum = sum;
    if (a->block > 0) {
        l->block = jit_for(j, begin, end, a->block, "taps");
        begin = jit_index(&l->block);
        end = jit_min_i64(j, jit_add(j, begin, jit_i64(j, a->block)), end);
        l->sum = l->part;
        start_sums(j, l->part, n);
    }
    l->tap = jit_for(j, begin, end, 1, "tap");
    JitValue bits = jit_load(j, a->weight, jit_index(&l->tap));
    l->at = add(j, shift, jit_index(&l->tap));
    l->weight = splat(j, jit_tmp(j, jit_bitcast(j, bits, jit_types(j)->f32)));
}

static void end_taps(Jit *j, TapLoop *l, const Axis *a, JitVar *sum, int n)
{
    jit_end_for(j, &l->tap);
    if (a->block == 0)
        return;
    for (int i = 0; i < n; i++)
        jit_set(j, sum[i], jit_add(j, jit_get(sum[i]), jit_get(l->part[i])));
    jit_end_for(j, &l->block);
}

static void add_terms(Jit *j, JitVar *sum, const Lanes *v, int n, JitValue p, JitValue offset,
                      JitValue weight)
{
    for (int i = 0; i < n; i++) {
        JitValue x = load_lanes(j, p, offset, v[i], 0);
        jit_set(j, sum[i], jit_vfma(j, weight, x, jit_get(sum[i])));
    }
}

static void store_sums(Jit *j, JitVar *sum, const Lanes *v, int n, JitValue p, JitValue offset)
{
    for (int i = 0; i < n; i++)
        store_lanes(j, p, offset, v[i], jit_get(sum[i]));
}

/* --- rows into scratch --- */

/* Offset of an input row. */
static JitValue input_row(Jit *j, const Kernel *s, JitValue h)
{
    const ResampleDesc *d = s->d;
    JitValue row = jit_tmp(j, jit_muladd_i64(j, s->image, d->in[0], h));
    return mul(j, row, jit_i64(j, d->in[1] * d->channels));
}

static void sum_rows(Jit *j, Kernel *s, const Lanes *v, int n)
{
    JitVar sum[GROUP];
    TapLoop row;
    start_sums(j, sum, n);
    begin_taps(j, &row, &s->rows, s->oh, sum, n);
    JitValue offset = add(j, input_row(j, s, row.at), s->line_x);
    add_terms(j, row.sum, v, n, s->x, offset, row.weight);
    end_taps(j, &row, &s->rows, sum, n);
    store_sums(j, sum, v, n, s->scratch, s->line_scratch);
}

static void fill_scratch(Jit *j, Kernel *s)
{
    const ResampleDesc *d = s->d;
    bool spill = s->spill;
    s->spill = false;
    if (s->block == d->channels) {
        int64_t length = d->in[1] * d->channels;
        s->line_x = s->line_scratch = jit_i64(j, 0);
        each_group(j, s, jit_i64(j, 0), jit_i64(j, length), length, sum_rows);
    } else {
        JitLoop w = jit_for(j, jit_i64(j, 0), jit_i64(j, d->in[1]), 1, "w");
        s->line_x = mul(j, jit_index(&w), jit_i64(j, d->channels));
        JitValue at = jit_mul(j, jit_index(&w), jit_i64(j, s->block));
        s->line_scratch = sub(j, at, s->from);
        each_group(j, s, s->from, s->to, -1, sum_rows);
        jit_end_for(j, &w);
    }
    s->spill = spill;
}

/* --- columns --- */

/* Adds the columns of one row that begins at `offset` of p; pixels lie `pixel` elements apart. */
static void add_columns(Jit *j, Kernel *s, JitVar *sum, const Lanes *v, int n, JitValue p,
                        JitValue offset, int64_t pixel, JitValue row_weight)
{
    TapLoop column;
    begin_taps(j, &column, &s->columns, s->ow, sum, n);
    JitValue at = jit_tmp(j, jit_muladd_i64(j, column.at, pixel, offset));
    JitValue weight = column.weight;
    if (row_weight)
        weight = mul(j, weight, row_weight);
    add_terms(j, column.sum, v, n, p, at, weight);
    end_taps(j, &column, &s->columns, sum, n);
}

static void sum_scratch(Jit *j, Kernel *s, JitVar *sum, const Lanes *v, int n)
{
    JitValue base = sub(j, jit_i64(j, 0), s->from);
    add_columns(j, s, sum, v, n, s->scratch, base, s->block, NULL);
}

static void sum_both(Jit *j, Kernel *s, JitVar *sum, const Lanes *v, int n)
{
    TapLoop row;
    begin_taps(j, &row, &s->rows, s->oh, sum, n);
    JitValue offset = input_row(j, s, row.at);
    add_columns(j, s, row.sum, v, n, s->x, offset, s->d->channels, row.weight);
    end_taps(j, &row, &s->rows, sum, n);
}

static void copy_pixel(Jit *j, Kernel *s, JitVar *sum, const Lanes *v, int n)
{
    JitValue row = input_row(j, s, copied(j, &s->rows, s->oh));
    JitValue w = copied(j, &s->columns, s->ow);
    JitValue at = jit_tmp(j, jit_muladd_i64(j, w, s->d->channels, row));
    for (int i = 0; i < n; i++)
        jit_set(j, sum[i], load_lanes(j, s->x, at, v[i], 0));
}

static void write_pixel(Jit *j, Kernel *s, const Lanes *v, int n)
{
    const ResampleDesc *d = s->d;
    JitVar sum[GROUP];
    start_sums(j, sum, n);
    if (d->direct && s->rows.copies && s->columns.copies)
        copy_pixel(j, s, sum, v, n);
    else if (d->direct)
        sum_both(j, s, sum, v, n);
    else
        sum_scratch(j, s, sum, v, n);
    JitValue row = jit_muladd_i64(j, s->image, d->out[0], s->oh);
    JitValue place = jit_tmp(j, jit_muladd_i64(j, row, d->out[1], s->ow));
    store_sums(j, sum, v, n, s->y, mul(j, place, jit_i64(j, d->channels)));
}

static void write_pixels(Jit *j, Kernel *s, int64_t from, int64_t to, bool spill)
{
    const ResampleDesc *d = s->d;
    int64_t length = s->block == d->channels ? d->channels : -1;
    if (from == to)
        return;
    JitLoop ow = jit_for(j, jit_i64(j, from), jit_i64(j, to), 1, "ow");
    s->ow = jit_index(&ow);
    s->spill = spill;
    each_group(j, s, s->from, s->to, length, write_pixel);
    s->spill = false;
    jit_end_for(j, &ow);
}

/* Pixels of less than a vector are written as whole vectors, the next pixel over what is too much;
 * scratch may be read past what was written there. */
static void write_row(Jit *j, Kernel *s)
{
    const ResampleDesc *d = s->d;
    int64_t lanes = jit_lanes(j), c = d->channels, all = d->out[1], whole = 0;
    if (!d->direct && c < lanes && all * c >= lanes)
        whole = (all * c - lanes) / c + 1;
    write_pixels(j, s, 0, whole, true);
    write_pixels(j, s, whole, all, false);
}

/* --- tasks --- */

static int64_t blocks(const ResampleDesc *d, int64_t block)
{
    return divide_up(d->channels, block);
}

static void set_task(Jit *j, Kernel *s, JitValue task)
{
    const ResampleDesc *d = s->d;
    JitValue rows = jit_i64(j, d->out[0]), n = jit_i64(j, blocks(d, s->block));
    JitValue rest = divide(j, task, rows);
    s->oh = jit_tmp(j, jit_mod(j, task, rows));
    s->image = divide(j, rest, n);
    s->from = mul(j, jit_mod(j, rest, n), jit_i64(j, s->block));
    s->to = add(j, s->from, jit_i64(j, s->block));
    s->to = jit_tmp(j, jit_min_i64(j, s->to, jit_i64(j, d->channels)));
}

static void emit_resample(Jit *j, const void *desc)
{
    const ResampleTasks *tasks = desc;
    const ResampleDesc *d = &tasks->desc;
    JitType p = jit_types(j)->p_f32;
    Pool *pool = pool_new();
    Kernel s = {.d = d, .block = tasks->block, .x = jit_buf(j, 0, p), .y = jit_buf(j, 1, p)};
    s.scratch = jit_scratch(j, p);
    s.rows = axis_of(j, pool, d, 0);
    s.columns = axis_of(j, pool, d, 1);
    pool_free(pool);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    set_task(j, &s, jit_index(&task));
    if (!d->direct)
        fill_scratch(j, &s);
    write_row(j, &s);
    jit_end_for(j, &task);
}

/* --- lowering --- */

/* Lines in scratch fit the caches. */
static int64_t channels_of_task(const ResampleDesc *d)
{
    int64_t fits = BLOCK_FLOATS / d->in[1] / RESAMPLE_CHANNELS * RESAMPLE_CHANNELS;
    int64_t least = d->channels < RESAMPLE_CHANNELS ? d->channels : RESAMPLE_CHANNELS;
    if (d->direct || d->channels <= fits)
        return d->channels;
    return fits > least ? fits : least;
}

void cpu_resample(Lowering *l, const Node *n)
{
    ResampleTasks t = {.desc = resample_describe(l, n)};
    const ResampleDesc *d = &t.desc;
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    t.block = channels_of_task(d);
    lower_pod_call(l, op_name(n->op), emit_resample, &t, DESC_BYTES(ResampleTasks),
                   d->images * blocks(d, t.block) * d->out[0], bufs, 2);
}
