/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/prologue.h"

#include "codegen/build/hash.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/forms/epilogue.h"
#include "codegen/jit/jit_short.h"
#include "ir/strided_view.h"
#include "ir/support/bug.h"

#include <string.h>

enum { INPUTS_MOST = 16, ROWS_TOGETHER = 8 };

/* How an input lies: as the image does, as one number a channel, as one number. */
typedef enum InputKind { INPUT_IMAGE, INPUT_CHANNELS, INPUT_NUMBER } InputKind;
typedef struct PrologueInput {
    ValueId value; /* of the body */
    InputKind kind;
    int buf;
    int64_t pitch; /* elements between rows of an image */
} PrologueInput;

/* The kernel, and how to make what it reads: an image, seen as rows of channels. */
typedef struct Prologue {
    Call reader;
    const Graph *body;
    ValueId made;
    int64_t columns;
    int n_inputs;
    PrologueInput input[INPUTS_MOST];
} Prologue;

/* --- code: rows of the image --- */

/* Parameters of the function that makes rows, in order. */
enum { P_BUFS, P_TO, P_FIRST, P_END, P_COLUMN, P_COLUMN_END, P_COUNT };

typedef struct MakeEmit {
    Jit *j;
    const Prologue *p;
    JitValue row, column, n;     /* n: of columns; NULL: a whole vector */
    JitValue known[INPUTS_MOST]; /* of these columns in any row; NULL: not loaded yet */
} MakeEmit;

static JitValue load_row(const MakeEmit *e, int buf, JitValue at)
{
    JitValue from = jit_buf(e->j, buf, jit_types(e->j)->p_f32);
    return e->n ? jit_vload_partial(e->j, from, at, e->n, 0) : jit_vload(e->j, from, at);
}

static JitValue load_input(const MakeEmit *e, const PrologueInput *in)
{
    Jit *j = e->j;
    if (in->kind == INPUT_IMAGE)
        return load_row(e, in->buf, jit_muladd_i64(j, e->row, in->pitch, e->column));
    if (in->kind == INPUT_CHANNELS)
        return jit_tmp(j, load_row(e, in->buf, e->column));
    return jit_tmp(
        j, jit_splat(j, jit_load(j, jit_buf(j, in->buf, jit_types(j)->p_f32), jit_i64(j, 0))));
}

static JitValue input_value(void *user, ValueId v, int axis)
{
    MakeEmit *e = user;
    (void)axis;
    for (int i = 0; i < e->p->n_inputs; i++) {
        const PrologueInput *in = &e->p->input[i];
        if (in->value != v)
            continue;
        if (in->kind == INPUT_IMAGE)
            return load_input(e, in);
        if (!e->known[i])
            e->known[i] = load_input(e, in);
        return e->known[i];
    }
    BUG("a prologue reads a value that is no input of its group");
}

/* A vector of columns of `rows` rows from `row` on. */
static void make_columns(MakeEmit *e, JitValue row, int64_t rows, JitValue column, JitValue n)
{
    Jit *j = e->j;
    const PointSource source = {.user = e, .value = input_value};
    e->column = column;
    e->n = n;
    memset(e->known, 0, sizeof e->known);
    JitValue made[ROWS_TOGETHER];
    for (int64_t r = 0; r < rows; r++) {
        e->row = jit_tmp(j, add(j, row, jit_i64(j, r)));
        point_emit_body(j, e->p->body, &e->p->made, 1, &source, &made[r]);
        JitValue behind = jit_sub(j, e->row, jit_param(j, P_FIRST));
        JitValue at = jit_tmp(j, jit_muladd_i64(j, behind, e->p->columns, column));
        if (n)
            jit_vstore_partial(j, jit_param(j, P_TO), at, n, made[r]);
        else
            jit_vstore(j, jit_param(j, P_TO), at, made[r]);
    }
}

/* Vectors that have the columns asked for.  The last one of a row begins early where that fills it.
 */
static void make_rows(MakeEmit *e, JitValue row, int64_t rows)
{
    Jit *j = e->j;
    int64_t columns = e->p->columns, lanes = jit_lanes(j), whole = columns / lanes * lanes;
    JitValue first = divide(j, jit_param(j, P_COLUMN), jit_i64(j, lanes));
    JitValue end = jit_min_i64(j, jit_param(j, P_COLUMN_END), jit_i64(j, whole));
    JitLoop l = jit_for(j, jit_tmp(j, mul(j, first, jit_i64(j, lanes))), end, lanes, "c");
    make_columns(e, row, rows, jit_tmp(j, jit_index(&l)), NULL);
    jit_end_for(j, &l);
    if (whole == columns)
        return;
    JitIf rest = jit_if(j, jit_compare(j, JIT_GT, jit_param(j, P_COLUMN_END), jit_i64(j, whole)));
    if (whole)
        make_columns(e, row, rows, jit_i64(j, columns - lanes), NULL);
    else
        make_columns(e, row, rows, jit_i64(j, 0), jit_i64(j, columns));
    jit_end_if(j, &rest);
}

static void make_types(Jit *j, JitType *types)
{
    const JitTypes *t = jit_types(j);
    types[P_BUFS] = jit_pointer_to(j, t->p_char);
    types[P_TO] = t->p_f32;
    for (int i = P_FIRST; i < P_COUNT; i++)
        types[i] = t->i64;
}

/* Columns of rows [first, end) to `to`.  Some rows together read what is of a channel once. */
static JitFunction make_function(Jit *j, const Prologue *p)
{
    const JitTypes *t = jit_types(j);
    JitType types[P_COUNT];
    make_types(j, types);
    JitFunction f = jit_function_begin(j, "make", t->none, P_COUNT, types);
    jit_function_bufs(j, P_BUFS);
    MakeEmit e = {.j = j, .p = p};
    JitValue first = jit_param(j, P_FIRST), end = jit_param(j, P_END);
    JitVar at = jit_var(j, t->i64, "at");
    jit_set(j, at, first);
    JitValue stop = jit_tmp(j, jit_sub(j, end, jit_i64(j, ROWS_TOGETHER - 1)));
    JitLoop l = jit_for(j, first, stop, ROWS_TOGETHER, "rows");
    make_rows(&e, jit_tmp(j, jit_index(&l)), ROWS_TOGETHER);
    jit_set(j, at, add(j, jit_index(&l), jit_i64(j, ROWS_TOGETHER)));
    jit_end_for(j, &l);
    l = jit_for(j, jit_get(at), end, 1, "row");
    make_rows(&e, jit_tmp(j, jit_index(&l)), 1);
    jit_end_for(j, &l);
    jit_function_end(j);
    return f;
}

/* --- code: pieces --- */

enum { PIECE_WORDS = sizeof(ReadPiece) / sizeof(int64_t) };

static JitFunction reader_function(Jit *j, const Call *call)
{
    JitFunction f = jit_inner_kernel_begin(j, "reader");
    call->emit(j, call->desc);
    jit_kernel_end(j);
    return f;
}

/* A table of addresses of our own, which changes from piece to piece. */
static JitValue copy_table(Jit *j, int n)
{
    const JitTypes *t = jit_types(j);
    JitVar array = jit_array_var(j, t->p_char, n, "table");
    JitValue table = jit_tmp(j, jit_array_ptr(j, array, jit_pointer_to(j, t->p_char)));
    for (int i = 0; i < n; i++)
        jit_store(j, table, jit_i64(j, i), jit_load(j, jit_bufs(j), jit_i64(j, i)));
    return table;
}

typedef struct PrologueEmit {
    Jit *j;
    const Prologue *p;
    JitFunction read, make;
    JitValue table, pieces;
    JitValue column; /* as in ReadPieces; NULL: tasks read all columns */
} PrologueEmit;

static JitValue word(const PrologueEmit *e, JitValue piece, size_t offset)
{
    Jit *j = e->j;
    int64_t field = (int64_t)(offset / sizeof(int64_t));
    JitValue at = jit_muladd_i64(j, piece, PIECE_WORDS, jit_i64(j, field));
    return jit_tmp(j, jit_load(j, e->pieces, at));
}

static void set_number(Jit *j, JitValue table, int number, JitValue value)
{
    jit_store(j, jit_cast(j, table, jit_types(j)->p_i64), jit_i64(j, number), value);
}

static const PrologueInput *image_of(const Prologue *p)
{
    int i = 0;
    while (p->input[i].kind != INPUT_IMAGE)
        i++;
    return &p->input[i];
}

/* That of a block of tasks (ReadPieces.column). */
static JitValue first_column(const PrologueEmit *e, JitValue block, int64_t otherwise)
{
    Jit *j = e->j;
    return e->column ? jit_tmp(j, jit_load(j, e->column, block)) : jit_i64(j, otherwise);
}

/* Element `from` of the image is the first of the strip. */
static void make_piece(const PrologueEmit *e, JitValue from, JitValue to, JitValue task,
                       JitValue end)
{
    Jit *j = e->j;
    const JitTypes *t = jit_types(j);
    JitValue columns = jit_i64(j, e->p->columns), work = jit_i64(j, SCRIMP_WORK_BYTES);
    JitValue strip = jit_tmp(j, jit_offset(j, jit_scratch(j, t->p_char), work));
    JitValue base = jit_offset(j, strip, mul(j, from, jit_i64(j, -4)));
    jit_store(j, e->table, jit_i64(j, e->p->reader.made - 1), base);
    const PrologueInput *image = image_of(e->p);
    JitValue next = mul(j, jit_sub(j, to, from), jit_i64(j, 4));
    JitValue ahead = jit_offset(j, jit_load(j, jit_bufs(j), jit_i64(j, image->buf)), next);
    jit_store(j, e->table, jit_i64(j, e->p->reader.made),
              image->pitch == e->p->columns ? ahead : base);
    JitValue each = jit_i64(j, e->column ? e->p->reader.pieces->of_columns : 1);
    JitValue last = divide(j, jit_sub(j, end, jit_i64(j, 1)), each);
    const JitValue args[P_COUNT] = {
        jit_bufs(j),
        jit_cast(j, strip, t->p_f32),
        jit_tmp(j, divide(j, from, columns)),
        jit_tmp(j, divide(j, to, columns)),
        first_column(e, jit_tmp(j, divide(j, task, each)), 0),
        first_column(e, jit_tmp(j, add(j, last, jit_i64(j, 1))), e->p->columns)};
    JitType types[P_COUNT];
    make_types(j, types);
    jit_call_apart(j, e->make, P_COUNT, types, args);
}

static void emit_piece(const PrologueEmit *e, JitValue piece)
{
    Jit *j = e->j;
    int steps = e->p->reader.pieces->steps;
    JitValue task = word(e, piece, offsetof(ReadPiece, task));
    JitValue end = word(e, piece, offsetof(ReadPiece, task_end));
    JitValue from = jit_tmp(j, jit_max_i64(j, task, jit_task_begin(j)));
    JitValue to = jit_tmp(j, jit_min_i64(j, end, jit_task_end(j)));
    JitIf any = jit_if(j, jit_compare(j, JIT_LT, from, to));
    make_piece(e, word(e, piece, offsetof(ReadPiece, from)),
               word(e, piece, offsetof(ReadPiece, to)), from, to);
    if (steps >= 0) {
        set_number(j, e->table, steps, word(e, piece, offsetof(ReadPiece, step)));
        set_number(j, e->table, steps + 1, word(e, piece, offsetof(ReadPiece, step_end)));
    }
    jit_inner_kernel_call(j, e->read, e->table, from, to, jit_scratch(j, jit_types(j)->p_char));
    jit_end_if(j, &any);
}

static void emit(Jit *j, const void *desc)
{
    const Prologue *p = desc;
    const ReadPieces *pieces = p->reader.pieces;
    PrologueEmit e = {
        .j = j, .p = p, .read = reader_function(j, &p->reader), .make = make_function(j, p)};
    e.table = copy_table(j, p->reader.n_bufs);
    e.pieces = jit_table(j, jit_types(j)->i64, pieces->of.data, pieces->of.len * PIECE_WORDS,
                         sizeof(int64_t));
    e.pieces = jit_tmp(j, e.pieces);
    if (pieces->column.len)
        e.column = jit_tmp(j, jit_table(j, jit_types(j)->i64, pieces->column.data,
                                        pieces->column.len, sizeof(int64_t)));
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, (int64_t)pieces->of.len), 1, "piece");
    emit_piece(&e, jit_tmp(j, jit_index(&l)));
    jit_end_for(j, &l);
}

/* --- lowering --- */

static InputKind kind_of(const Type *t, const Type *image)
{
    int64_t columns = image->dim[image->rank - 1], last = t->rank ? t->dim[t->rank - 1] : 1;
    if (type_same_shape(t, image))
        return INPUT_IMAGE;
    if (type_elements(t) == 1)
        return INPUT_NUMBER;
    if (t->dtype != DTYPE_F32 || last != columns || type_elements(t) != columns)
        BUG("an input of a prologue is no image, and nothing of its channels");
    return INPUT_CHANNELS;
}

static bool read_by_points(const Graph *body, ValueId v)
{
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        for (int k = 0; op_table[n->op].op_class == OP_CLASS_POINT && k < n->n_in; k++)
            if (n->in[k] == v)
                return true;
    }
    return false;
}

/* Inputs of the group that element-wise operations read become buffers behind those of the call. */
static void add_inputs(Lowering *l, const Node *fused, Prologue *p, Call *call)
{
    const Graph *body = fused->body;
    const Type *image = value_type(body, p->made);
    CallBuf *buf = POOL_ARRAY(l->pool, (size_t)(call->n_bufs + INPUTS_MOST), CallBuf);
    memcpy(buf, call->buf, (size_t)call->n_bufs * sizeof *buf);
    for (int i = 0; i < fused->n_in; i++) {
        ValueId v = body_input(body, i);
        if (!read_by_points(body, v))
            continue;
        if (p->n_inputs == INPUTS_MOST || call->n_bufs == CALL_MAX_BUFS)
            BUG("a prologue with too many inputs");
        int64_t pitch = epilogue_pitch(l->graph, fused->in[i]);
        p->input[p->n_inputs++] = (PrologueInput){v, kind_of(value_type(body, v), image),
                                                  call->n_bufs, pitch ? pitch : p->columns};
        buf[call->n_bufs++] = point_buf(l->graph, fused->in[i]);
    }
    call->buf = buf;
}

static void check_pieces(const Prologue *p)
{
    const ReadPieces *pieces = p->reader.pieces;
    if (!pieces)
        BUG("%s does not say what it reads of an image that is made for it", p->reader.label);
    for (size_t i = 0; i < pieces->of.len; i++) {
        const ReadPiece *r = &pieces->of.data[i];
        if (r->from > r->to || r->to - r->from > PROLOGUE_ELEMENTS || r->from % p->columns ||
            r->to % p->columns)
            BUG("%s reads elements %lld to %lld of rows of %lld at once", p->reader.label,
                (long long)r->from, (long long)r->to, (long long)p->columns);
    }
}

static const char *key_of(Lowering *l, const Prologue *p)
{
    const ReadPieces *pieces = p->reader.pieces;
    StrBuf key = strbuf_new(l->pool);
    strbuf_printf(&key, "prologue %d %d %lld", p->reader.made, pieces->steps,
                  (long long)p->columns);
    body_key(&key, p->body);
    for (int i = 0; i < p->n_inputs; i++)
        strbuf_printf(&key, ";%u@%d:%d/%lld", p->input[i].value, p->input[i].buf, p->input[i].kind,
                      (long long)p->input[i].pitch);
    size_t bytes = pieces->of.len * sizeof *pieces->of.data;
    strbuf_printf(&key, " pieces %s", content_key(l->pool, (const char *)pieces->of.data, bytes));
    desc_key(&key, " columns", pieces->column.data, pieces->column.len * sizeof(int64_t));
    strbuf_printf(&key, " (%s)", p->reader.key);
    return key.text;
}

static void add_prologue(Lowering *l, const Node *fused, ValueId made, Call *call)
{
    Prologue *p = POOL_NEW(l->pool, Prologue);
    const Type *image = value_type(fused->body, made);
    *p = (Prologue){
        .reader = *call, .body = fused->body, .made = made, .columns = image->dim[image->rank - 1]};
    check_pieces(p);
    add_inputs(l, fused, p, call);
    call->key = key_of(l, p);
    call->label = pool_printf(l->pool, "norm, %s", call->label);
    call->emit = emit;
    call->desc = p;
    call->reads = (CallSpans){0};
    call->made = 0;
    call->pieces = NULL;
}

void prologue_lower(Lowering *l, const Node *fused, size_t first)
{
    ValueId made = group_prologue(fused->body);
    for (size_t i = first; made != VALUE_NONE && i < l->calls.len; i++)
        if (l->calls.data[i].made)
            add_prologue(l, fused, made, &l->calls.data[i]);
}
