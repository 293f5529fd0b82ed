/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The calls of convolutions in Winograd's form. */
#include "codegen/cpu/conv/winograd.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "ir/workspace.h"

static void finish(const MatrixNode *m, CallDraft *call, const char *what, const ConvGeometry *q)
{
    call->label = conv_label(m->l->pool, what, q);
    call->contract = true;
    lower_call(m->l, *call);
}

static int add_workspace(const MatrixNode *m, CallDraft *call, int64_t floats)
{
    if (floats * 4 > node_workspace_bytes(m->graph, m->node))
        BUG("Winograd's form uses %lld bytes of workspace, planned are %lld", (long long)floats * 4,
            (long long)node_workspace_bytes(m->graph, m->node));
    call->buf[call->n_bufs] = (CallBuf){VALUE_NONE, 0};
    return call->n_bufs++;
}

/* Of the products alone. */
static double products(const WinogradShape *s)
{
    return 2.0 * s->points * (double)s->count * (double)s->rows * (double)s->columns;
}

/* --- forward, data gradient --- */

static void describe(Winograd *w, const ConvGeometry *q, const WinogradShape *s, ConvPart part)
{
    *w = (Winograd){.rows = s->rows,
                    .columns = s->columns,
                    .chain = winograd_chain(s->rows),
                    .chains = divide_up(s->rows, winograd_chain(s->rows)),
                    .tiles = {s->tiles[0], s->tiles[1]},
                    .count = s->count,
                    .transposed = part == CONV_DGRAD,
                    .block = winograd_block(s),
                    .keeps_patches = winograd_keeps_patches(s),
                    .m = s->m,
                    .points = s->points};
    for (int i = 0; i < 2; i++)
        w->axis[i] = part == CONV_DGRAD ? conv_gradient_axis(q, i, 0) : conv_forward_axis(q, i);
}

static void lower_work(const MatrixNode *m, CallDraft call, const Winograd *w,
                       const ConvGeometry *q)
{
    StrBuf key = strbuf_new(m->l->pool);
    desc_key(&key, "winograd_work", w, DESC_BYTES_BEFORE(Winograd, epilogue));
    call.key = key.text;
    call.desc = w;
    call.emit = winograd_work_emit;
    call.n_tasks = winograd_work_tasks(w);
    call.bytes = (double)type_bytes(matrix_operand_type(m, !w->keeps_patches)) +
                 (double)node_workspace_bytes(m->graph, m->node);
    finish(m, &call, w->keeps_patches ? "winograd patches" : "winograd weights", q);
}

static void lower_pixels(const MatrixNode *m, const ConvGeometry *q, const WinogradShape *s,
                         ConvPart part, const char *what)
{
    Winograd *w = POOL_NEW(m->l->pool, Winograd);
    describe(w, q, s, part);
    winograd_plan(w, m->l->target);
    CallDraft call = matrix_call(m);
    w->source_buf = matrix_add_operand(m, &call, 0);
    w->weight_buf = matrix_add_operand(m, &call, 1);
    w->work_buf = add_workspace(m, &call, winograd_work_floats(w, m->l->target->vector_floats));
    w->epilogue = matrix_epilogue(m, &call, 2);
    lower_work(m, call, w, q);
    call.key = MATRIX_KEY(m->l->pool, "winograd", Winograd, w);
    call.desc = w;
    call.emit = winograd_emit;
    call.n_tasks = winograd_tasks(w);
    call.flops = products(s);
    call.bytes = matrix_bytes(m);
    finish(m, &call, what, q);
}

/* --- weight gradient --- */

/* Its work was counted with the first call. */
static void lower_join(const MatrixNode *m, CallDraft *call, const WinogradWgrad *w)
{
    ConvJoin *join = POOL_NEW(m->l->pool, ConvJoin);
    winograd_wgrad_join(join, w);
    call->key = MATRIX_KEY(m->l->pool, "conv_join", ConvJoin, join);
    call->desc = join;
    call->emit = conv_join_emit;
    call->n_tasks = conv_join_tasks(join);
    call->flops = 0;
    call->bytes = (double)node_workspace_bytes(m->graph, m->node);
    finish(m, call, "winograd dw join", &w->q);
}

static void lower_wgrad(const MatrixNode *m, const ConvGeometry *q, const WinogradShape *s)
{
    WinogradWgrad *w = POOL_NEW(m->l->pool, WinogradWgrad);
    *w = (WinogradWgrad){.q = *q,
                         .tiles = {s->tiles[0], s->tiles[1]},
                         .count = s->count,
                         .chunks = winograd_chunks(s),
                         .m = s->m,
                         .points = s->points};
    winograd_wgrad_plan(w, m->l->target);
    CallDraft call = matrix_call(m);
    w->x_buf = matrix_add_operand(m, &call, 0);
    w->dy_buf = matrix_add_operand(m, &call, 1);
    if (w->chunks > 1)
        w->partial_buf = add_workspace(m, &call, w->chunks * type_elements(matrix_result_type(m)));
    w->epilogue = matrix_epilogue(m, &call, -1);
    call.key = MATRIX_KEY(m->l->pool, "winograd_wgrad", WinogradWgrad, w);
    call.desc = w;
    call.emit = winograd_wgrad_emit;
    call.n_tasks = winograd_wgrad_tasks(w);
    call.flops = products(s);
    call.bytes = matrix_bytes(m);
    finish(m, &call, "winograd dw", q);
    if (w->chunks > 1)
        lower_join(m, &call, w);
}

void conv_winograd_lower(const MatrixNode *m, ConvPart part)
{
    ConvGeometry q = conv_geometry(m, part);
    WinogradShape s = winograd_shape(m->graph, m->node, winograd_of(m->node));
    if (part == CONV_WGRAD)
        lower_wgrad(m, &q, &s);
    else
        lower_pixels(m, &q, &s, part, part == CONV_DGRAD ? "winograd dx" : "winograd");
}
