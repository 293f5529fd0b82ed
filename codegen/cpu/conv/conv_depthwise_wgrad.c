/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight gradient of a depthwise convolution: dw[r, s, c] = sum over pixels of x[.., c] * dy[..,
 * c].
 *
 * The sums of all taps of a vector of channels stay in registers while a band of rows of dy is gone
 * through: a vector of x is used under every tap that it lies under.  The rows of dy are cut into
 * DEPTHWISE_CHUNKS chunks, whatever the number of threads, with partial sums in the workspace as
 * [chunk][r][s][i][channels, padded]; a second call joins them in order. */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "ir/workspace.h"

enum {
    BAND_BYTES = 16 * 1024, /* of lines that a vector of channels touches, as does the next */
    LINE_BYTES = 64,
    TAPS_MOST = 32, /* sums in registers */
    PIXELS_MOST = 8 /* of a tile: vectors of dy in registers */
};

/* Parameters of a band's function, in order; ahead: what the next band is the first to read. */
enum { P_BUFS, P_PARTIAL, P_FROM, P_TO, P_X_AHEAD, P_DY_AHEAD, P_COUNT };

typedef struct WgradEmit {
    Jit *j;
    const ConvDepth *d;
    ConvAxis x;
    int64_t r0, rows, s0, taps; /* the kernel places whose sums are in registers */
    JitVar sum[TAPS_MOST];
    JitVar within[TAPS_MOST]; /* by row of taps: it lies within the image */
    JitValue c, n_valid;      /* channels; n_valid NULL: a whole vector */
    JitValue from, dy;        /* x under the first tap of the group's first row, column 0; dy */
    JitValue ahead;           /* pixels of dy in front of this row and vector of channels */
} WgradEmit;

static int64_t padded(int64_t channels)
{
    return (channels + DEPTHWISE_PAD - 1) / DEPTHWISE_PAD * DEPTHWISE_PAD;
}

int64_t conv_depthwise_chunk_floats(const ConvGeometry *q)
{
    return q->r * q->s * conv_group_in(q) * padded(q->c);
}

/* Sums that stay in registers beside x and some pixels of dy. */
static int64_t sums_most(const Jit *j)
{
    return jit_target(j)->vector_registers >= 32 ? 26 : 10;
}

static int64_t n_sums(const WgradEmit *e)
{
    return e->rows * e->taps * conv_group_in(&e->d->q);
}

static int64_t pixels_most(const WgradEmit *e)
{
    int64_t left = jit_target(e->j)->vector_registers - n_sums(e) - 2;
    return left < 1 ? 1 : left < PIXELS_MOST ? left : PIXELS_MOST;
}

static JitValue load(const WgradEmit *e, JitValue p, JitValue at)
{
    return e->n_valid ? jit_vload_partial(e->j, p, at, e->n_valid, 0) : jit_vload(e->j, p, at);
}

/* --- a tile of dy's pixels --- */

/* Tap of the group's kernel columns under which source column `place` lies for pixel i of the tile;
 * -1: none. */
static int64_t tap_over(const WgradEmit *e, int64_t place, int64_t i)
{
    int64_t dilation = e->d->q.dilation[1], far = place - i * e->x.source_step;
    int64_t s = far / dilation - e->s0;
    return far >= 0 && far % dilation == 0 && s >= 0 && s < e->taps ? s : -1;
}

/* Spelled out: GCC moves some of the products to where they can no longer be fused. */
static void add_product(const WgradEmit *e, JitVar sum, JitValue x, JitValue dy)
{
    jit_set(e->j, sum, jit_vfma(e->j, x, dy, jit_get(sum)));
}

/* Source column `place` from the tile's first tap on, in tap row r of the group. */
static void add_column(const WgradEmit *e, JitValue p, const JitValue *dy, int64_t pixels,
                       int64_t r, int64_t place)
{
    const ConvGeometry *q = &e->d->q;
    int64_t width = conv_group_in(q), at = (r * q->dilation[0] * q->w + place) * q->c;
    bool used = false;
    for (int64_t i = 0; i < pixels; i++)
        used |= tap_over(e, place, i) >= 0;
    if (!used)
        return;
    JitValue v = load(e, p, jit_i64(e->j, at));
    for (int64_t c = 0; c < width; c++) {
        JitValue x = conv_depthwise_spread(e->j, q, v, c);
        for (int64_t i = 0; i < pixels; i++) {
            int64_t s = tap_over(e, place, i);
            if (s >= 0)
                add_product(e, e->sum[(r * e->taps + s) * width + c], x, dy[i]);
        }
    }
}

/* Of the pixels that the next band is the first to read, a share: in the order of memory, while a
 * vector of channels after another touches all pixels of this band, which the hardware does not
 * foresee. */
static void ask_ahead(const WgradEmit *e, JitValue first, int64_t pixels)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->d->q;
    int64_t x_floats = q->stride[0] * q->stride[1] * jit_lanes(j);
    JitValue at = jit_tmp(j, jit_add(j, e->ahead, first));
    JitValue x = jit_mul(j, at, jit_i64(j, x_floats));
    JitValue dy = jit_mul(j, at, jit_i64(j, jit_lanes(j)));
    x = jit_offset(j, jit_param(j, P_X_AHEAD), x);
    dy = jit_offset(j, jit_param(j, P_DY_AHEAD), dy);
    jit_prefetch(j, jit_tmp(j, x), jit_i64(j, pixels * x_floats));
    jit_prefetch(j, jit_tmp(j, dy), jit_i64(j, pixels * jit_lanes(j)));
}

/* Pixels [first, first + pixels) of a row of dy. */
static void emit_tile(const WgradEmit *e, JitValue first, int64_t pixels, DepthSpan span)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->d->q;
    JitValue column = jit_muladd_i64(j, first, e->x.source_step, jit_i64(j, e->x.origin));
    JitValue x = jit_tmp(j, jit_offset(j, e->from, jit_mul(j, column, jit_i64(j, q->c))));
    JitValue y = jit_tmp(j, jit_offset(j, e->dy, jit_mul(j, first, jit_i64(j, q->c))));
    JitValue dy[PIXELS_MOST];
    if (e->r0 == 0 && e->s0 == 0)
        ask_ahead(e, first, pixels);
    for (int64_t i = 0; i < pixels; i++)
        dy[i] = load(e, y, jit_i64(j, i * q->c));
    for (int64_t r = 0; r < e->rows; r++) {
        JitIf s = jit_if(j, jit_compare(j, JIT_NE, jit_get(e->within[r]), jit_i32(j, 0)));
        for (int64_t place = span.low; place < span.high; place++)
            add_column(e, x, dy, pixels, r, place);
        jit_end_if(j, &s);
    }
}

static int64_t tile_pixels(const TileSplit *split, int64_t i, int64_t *first)
{
    *first = i * split->base + (i < split->extra ? i : split->extra);
    return split->base + (i < split->extra);
}

/* Tiles of a row of dy; equal ones are a loop. */
static void emit_tiles(const WgradEmit *e)
{
    Jit *j = e->j;
    TileSplit split = tile_split(e->x.count, pixels_most(e));
    for (int64_t i = 0, next; i < split.tiles; i = next) {
        int64_t first, other, pixels = tile_pixels(&split, i, &first);
        DepthSpan span = conv_depthwise_span(&e->x, first, pixels);
        for (next = i + 1; next < split.tiles; next++) {
            int64_t n = tile_pixels(&split, next, &other);
            DepthSpan s = conv_depthwise_span(&e->x, other, n);
            if (n != pixels || s.low != span.low || s.high != span.high)
                break;
        }
        JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, next - i), 1, "tile");
        JitValue from = jit_muladd_i64(j, jit_index(&l), pixels, jit_i64(j, first));
        emit_tile(e, jit_tmp(j, from), pixels, span);
        jit_end_for(j, &l);
    }
}

/* --- rows of dy --- */

/* Row `row` of dy, images after one another. */
static void emit_row(WgradEmit *e, JitValue row)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->d->q;
    const JitTypes *t = jit_types(j);
    JitValue image = jit_div(j, row, jit_i64(j, q->oh)), y = jit_mod(j, row, jit_i64(j, q->oh));
    y = jit_muladd_i64(j, y, q->stride[0], jit_i64(j, e->r0 * q->dilation[0] - q->pad[0]));
    y = jit_tmp(j, y);
    for (int64_t r = 0; r < e->rows; r++) {
        JitValue at = jit_tmp(j, jit_add(j, y, jit_i64(j, r * q->dilation[0])));
        JitValue low = jit_cast(j, jit_compare(j, JIT_GE, at, jit_i64(j, 0)), t->i32);
        JitValue high = jit_cast(j, jit_compare(j, JIT_LT, at, jit_i64(j, q->h)), t->i32);
        jit_set(j, e->within[r], jit_and(j, low, high));
    }
    JitValue from = jit_mul(j, jit_muladd_i64(j, image, q->h, y), jit_i64(j, q->w * q->c));
    e->from = jit_tmp(j, jit_offset(j, jit_buf(j, e->d->a_buf, t->p_f32), jit_add(j, from, e->c)));
    JitValue to = jit_muladd_i64(j, row, q->ow * q->c, e->c);
    e->dy = jit_tmp(j, jit_offset(j, jit_buf(j, e->d->b_buf, t->p_f32), to));
    emit_tiles(e);
}

/* Adds rows [P_FROM, P_TO) of dy to the partial sums of one vector of channels at `slot`. */
static void emit_vector(WgradEmit *e, JitValue slot)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->d->q;
    JitValue partial = jit_param(j, P_PARTIAL), at[TAPS_MOST];
    int64_t width = conv_group_in(q);
    for (int64_t i = 0; i < n_sums(e); i++) {
        int64_t tap = (e->r0 + i / width / e->taps) * q->s + e->s0 + i / width % e->taps;
        at[i] = jit_add(j, slot, jit_i64(j, (tap * width + i % width) * padded(q->c)));
        jit_set(j, e->sum[i], jit_vload(j, partial, at[i]));
    }
    JitValue from = jit_param(j, P_FROM), to = jit_param(j, P_TO);
    JitValue vector = jit_div(j, e->c, jit_i64(j, jit_lanes(j)));
    JitValue rows = jit_tmp(j, jit_sub(j, jit_mul(j, vector, jit_sub(j, to, from)), from));
    JitLoop row = jit_for(j, from, to, 1, "row");
    e->ahead = jit_mul(j, jit_add(j, rows, jit_index(&row)), jit_i64(j, q->ow));
    e->ahead = jit_tmp(j, e->ahead);
    emit_row(e, jit_tmp(j, jit_index(&row)));
    jit_end_for(j, &row);
    for (int64_t i = 0; i < n_sums(e); i++)
        jit_vstore(j, partial, at[i], jit_get(e->sum[i]));
}

/* The last vector begins early where that fills it: its lanes before the channel that its place
 * belongs to are not used. */
static bool begins_early(const ConvGeometry *q, int lanes)
{
    return q->c % lanes && q->c > lanes;
}

static void emit_channels(WgradEmit *e)
{
    Jit *j = e->j;
    int64_t channels = e->d->q.c, whole = channels / jit_lanes(j) * jit_lanes(j);
    if (whole) {
        JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, whole), jit_lanes(j), "c");
        e->c = jit_tmp(j, jit_index(&c));
        emit_vector(e, e->c);
        jit_end_for(j, &c);
    }
    if (whole == channels)
        return;
    bool early = begins_early(&e->d->q, jit_lanes(j));
    e->c = jit_i64(j, early ? channels - jit_lanes(j) : whole);
    e->n_valid = early ? NULL : jit_i64(j, channels - whole);
    emit_vector(e, jit_i64(j, whole));
    e->n_valid = NULL;
}

/* A function of rows of dy for `rows` x `taps` kernel places from (r0, s0) on. */
static JitFunction band_function(const ConvDepth *d, Jit *j, const WgradEmit *group)
{
    const JitTypes *t = jit_types(j);
    char name[64];
    snprintf(name, sizeof name, "depthwise_wgrad_%lld_%lld", (long long)group->r0,
             (long long)group->s0);
    const JitType types[P_COUNT] = {[P_BUFS] = jit_pointer_to(j, t->p_char),
                                    [P_PARTIAL] = t->p_f32,
                                    [P_FROM] = t->i64,
                                    [P_TO] = t->i64,
                                    [P_X_AHEAD] = jit_real_pointer(j, d->a_buf),
                                    [P_DY_AHEAD] = jit_real_pointer(j, d->b_buf)};
    JitFunction f = jit_function_begin(j, name, t->none, P_COUNT, types);
    jit_function_bufs(j, P_BUFS);
    WgradEmit e = *group;
    e.x = conv_forward_axis(&d->q, 1);
    for (int64_t i = 0; i < n_sums(&e); i++)
        e.sum[i] = jit_var(j, t->vf, "sum");
    for (int64_t r = 0; r < e.rows; r++)
        e.within[r] = jit_var(j, t->i32, "within");
    emit_channels(&e);
    jit_function_end(j);
    return f;
}

/* --- tasks --- */

/* The rows of x behind those that row `last` of dy reads. */
static JitValue x_behind(const ConvDepth *d, Jit *j, JitValue last)
{
    const ConvGeometry *q = &d->q;
    JitValue oh = jit_i64(j, q->oh);
    JitValue y = jit_muladd_i64(j, jit_mod(j, last, oh), q->stride[0],
                                jit_i64(j, (q->r - 1) * q->dilation[0] - q->pad[0] + 1));
    y = jit_muladd_i64(j, jit_div(j, last, oh), q->h, y);
    JitValue at = jit_mul(j, y, jit_i64(j, q->w * q->c));
    int buf = d->a_buf + (d->a_made != 0);
    return jit_tmp(j, jit_offset(j, jit_buf(j, buf, jit_types(j)->p_f32), at));
}

/* All kernel places of rows [from, to) of dy, in groups whose sums fit into registers. */
static void emit_band(const ConvDepth *d, Jit *j, JitValue partial, JitValue from, JitValue to)
{
    const ConvGeometry *q = &d->q;
    int64_t most = sums_most(j) / conv_group_in(q);
    JitValue x = x_behind(d, j, jit_sub(j, to, jit_i64(j, 1)));
    JitValue dy = jit_mul(j, to, jit_i64(j, q->ow * q->c));
    dy = jit_tmp(j, jit_offset(j, jit_buf(j, d->b_buf, jit_types(j)->p_f32), dy));
    TileSplit s = tile_split(q->s, most), r = tile_split(q->r, most / (s.base + (s.extra > 0)));
    for (int64_t i = 0, r0 = 0; i < r.tiles; i++) {
        int64_t rows = r.base + (i < r.extra), s0 = 0;
        for (int64_t k = 0; k < s.tiles; k++) {
            WgradEmit e = {.j = j, .d = d, .r0 = r0, .rows = rows, .s0 = s0};
            e.taps = s.base + (k < s.extra);
            const JitValue args[P_COUNT] = {jit_bufs(j), partial, from, to, x, dy};
            jit_call_void(j, band_function(d, j, &e), P_COUNT, args);
            s0 += e.taps;
        }
        r0 += rows;
    }
}

static int64_t band_rows(const ConvGeometry *q)
{
    int64_t row = LINE_BYTES * (q->ow + q->stride[0] * q->w);
    return row && row < BAND_BYTES ? BAND_BYTES / row : 1;
}

void conv_depthwise_wgrad_emit(Jit *j, const void *desc)
{
    const ConvDepth *d = desc;
    int64_t chunks = conv_narrow_chunks(&d->q), rows = d->q.images * d->q.oh,
            band = band_rows(&d->q);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue chunk = jit_tmp(j, jit_index(&task)), all = jit_i64(j, rows), n = jit_i64(j, chunks);
    JitValue from = jit_tmp(j, jit_div(j, jit_mul(j, chunk, all), n));
    JitValue next = jit_add(j, chunk, jit_i64(j, 1));
    JitValue to = jit_tmp(j, jit_div(j, jit_mul(j, next, all), n)), begins = from;
    if (d->a_made) {
        from = jit_tmp(j, jit_max_i64(j, from, jit_number(j, d->steps)));
        to = jit_tmp(j, jit_min_i64(j, to, jit_number(j, d->steps + 1)));
    }
    JitValue partial = jit_buf(j, d->partial_buf, jit_types(j)->p_f32);
    JitValue at = jit_mul(j, chunk, jit_i64(j, conv_depthwise_chunk_floats(&d->q)));
    partial = jit_tmp(j, jit_offset(j, partial, at));
    JitIf first = jit_if(j, jit_compare(j, JIT_EQ, from, begins));
    pack_zero(j, partial, jit_i64(j, conv_depthwise_chunk_floats(&d->q)));
    jit_end_if(j, &first);
    JitLoop b = jit_for(j, from, to, band, "band");
    JitValue begin = jit_tmp(j, jit_index(&b));
    JitValue end = jit_tmp(j, jit_min_i64(j, jit_add(j, begin, jit_i64(j, band)), to));
    emit_band(d, j, partial, begin, end);
    jit_end_for(j, &b);
    jit_end_for(j, &task);
}

ReadPieces *conv_depthwise_wgrad_pieces(Pool *pool, const ConvDepth *d)
{
    int64_t chunks = conv_narrow_chunks(&d->q);
    return conv_sum_pieces(pool, &d->q, d->steps, chunks, 1, 1);
}

/* --- joining --- */

void conv_depthwise_join(ConvJoin *out, const ConvDepth *d, int lanes)
{
    const ConvGeometry *q = &d->q;
    *out = (ConvJoin){.chunks = conv_narrow_chunks(&d->q),
                      .rows = q->r * q->s * conv_group_in(q),
                      .columns = q->c,
                      .row_floats = padded(q->c),
                      .rest_skip = begins_early(q, lanes) ? lanes - q->c % lanes : 0,
                      .partial_buf = d->partial_buf,
                      .out_buf = d->out_buf,
                      .epilogue = d->epilogue};
}
