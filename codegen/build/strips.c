/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which calls run in turns. */
#include "codegen/build/strips.h"

#include "ir/strided_view.h"

#include <string.h>

/* How far behind a call the one may stand that follows it: between them are updates of what else
 * the layer has. */
enum { LOOK_AHEAD = 8 };

/* Bytes [from, to) of the arena. */
typedef struct Place {
    int64_t from, to;
    bool written;
} Place;

static bool is_result(const Node *n, ValueId v)
{
    bool found = false;
    for (int i = 0; i < n->n_out; i++)
        found = found || n->out[i] == v;
    return found;
}

/* What a call may touch of a buffer: all of the storage that it is in.  False: it is a number. */
static bool place_of(const StepProgram *p, const Call *c, int buf, Place *out)
{
    ValueId v = c->buf[buf].value;
    if (v == CALL_NUMBER)
        return false;
    const Node *n = graph_node(p->graph, c->node);
    int64_t from = p->plan->workspace_offset[c->node], bytes = node_workspace_bytes(p->graph, n);
    if (v != VALUE_NONE) {
        ValueId root = value_root(p->graph, v);
        from = p->plan->offset[root];
        bytes = memplan_value_bytes(p->graph, root);
    }
    *out = (Place){from, from + bytes, v == VALUE_NONE || is_result(n, v)};
    return true;
}

/* Which buffers of two calls may lie at one place though one of them is written. */
typedef struct Link {
    int from, to;
} Link;
static const Link NO_LINK = {-1, -1};

/* One of them writes what the other one touches, but for the link. */
static bool conflict(const StepProgram *p, const Call *a, const Call *b, Link link)
{
    Place x, y;
    if (a->loops || b->loops)
        return true;
    for (int i = 0; i < a->n_bufs; i++)
        for (int k = 0; k < b->n_bufs && place_of(p, a, i, &x); k++)
            if (place_of(p, b, k, &y) && (x.written || y.written) && x.from < y.to &&
                y.from < x.to && !(i == link.from && k == link.to))
                return true;
    return false;
}

/* Both are all of one tensor. */
static bool same_tensor(const StepProgram *p, const Call *a, int i, const Call *b, int k)
{
    ValueId x = a->buf[i].value, y = b->buf[k].value;
    if (x >= CALL_NUMBER || y >= CALL_NUMBER)
        return false;
    const Type *s = value_type(p->graph, x), *t = value_type(p->graph, y);
    return s->dtype == t->dtype && type_elements(s) == type_elements(t) &&
           value_is_dense(p->graph, x) && value_is_dense(p->graph, y) &&
           step_buffer_offset(p, a, i) == step_buffer_offset(p, b, k);
}

static int64_t longest(const TaskSpans *s)
{
    int64_t most = 0;
    for (int64_t i = 0; i < s->n; i++)
        most = s->to[i] - s->from[i] > most ? s->to[i] - s->from[i] : most;
    return most;
}

/* A buffer of as many elements as the result, or the tensor: a strip of it is wanted once. */
static bool is_large(const StepProgram *p, const Call *c, int buf, int64_t tensor)
{
    ValueId v = c->buf[buf].value;
    if (v == VALUE_NONE)
        return false;
    const Type *t = value_type(p->graph, v);
    const Type *result = value_type(p->graph, graph_node(p->graph, c->node)->out[0]);
    return type_bytes(t) >= tensor || type_elements(t) == type_elements(result);
}

/* Bytes that a call reads once more with every strip: weights, as they are or packed. */
static int64_t read_again(const StepProgram *p, const Call *c, int64_t tensor)
{
    int64_t bytes = 0;
    Place x;
    for (int i = 0; i < c->n_bufs; i++)
        if (place_of(p, c, i, &x) && !is_large(p, c, i, tensor))
            bytes += x.to - x.from;
    return bytes;
}

/* The tensor leaves a core's cache before all of it is written, and a strip of it does not, nor
 * what else the second call wants there. */
static bool is_worth(const StepProgram *p, const Call *a, const Call *b)
{
    const Type *t = value_type(p->graph, a->buf[a->writes.buf[0]].value);
    int64_t tensor = type_bytes(t), cache = p->strips.cache;
    int64_t strip = longest(a->writes.spans) + longest(b->reads.spans);
    return tensor >= cache &&
           strip * (int64_t)dtype_bytes(t->dtype) + read_again(p, b, tensor) <= cache;
}

/* How b follows a, or NO_LINK. */
static Link link_of(const StepProgram *p, const Call *a, const Call *b)
{
    for (int k = 0; a->writes.spans && b->reads.spans && k < b->reads.n; k++) {
        Link link = {a->writes.buf[0], b->reads.buf[k]};
        if (same_tensor(p, a, link.from, b, link.to) && is_worth(p, a, b) &&
            !conflict(p, a, b, link))
            return link;
    }
    return NO_LINK;
}

/* A call whose own spans are the same for what it reads and writes may be followed in turn. */
static bool passes_on(const Call *c)
{
    const TaskSpans *w = c->writes.spans, *r = c->reads.spans;
    return w && r && w->n == r->n &&
           memcmp(w->task, r->task, ((size_t)w->n + 1) * sizeof *w->task) == 0;
}

/* --- order --- */

static void move_call(Call *calls, int from, int to)
{
    Call moved = calls[from];
    for (; from > to; from--)
        calls[from] = calls[from - 1];
    calls[to] = moved;
}

/* Brings call m right behind a chain of calls.  What stands between them and m needs goes before
 * the chain; the rest stays, behind m.  False, and nothing is moved: it cannot. */
static bool bring(const StepProgram *p, Call *calls, StripChain *chain, int m)
{
    bool needed[LOOK_AHEAD + 1] = {false};
    int end = chain->first + chain->n;
    needed[m - end] = true;
    for (int x = m - 1; x >= end; x--)
        for (int y = x + 1; y <= m; y++)
            needed[x - end] |= needed[y - end] && conflict(p, &calls[x], &calls[y], NO_LINK);
    for (int x = end; x < m; x++)
        for (int c = chain->first; c < end; c++)
            if (needed[x - end] && conflict(p, &calls[x], &calls[c], NO_LINK))
                return false;
    for (int x = end, first = end; x < m; x++)
        if (needed[x - first]) {
            move_call(calls, x, chain->first++);
            end++;
        }
    move_call(calls, m, end);
    chain->n++;
    return true;
}

static int arguments_of(const Call *calls, const StripChain *chain)
{
    int n = STRIP_ARGUMENTS;
    for (int i = 0; i < chain->n; i++)
        n += calls[chain->first + i].n_bufs;
    return n;
}

/* A call may join a chain: it is apart from all but the last one, which it follows. */
static bool may_join(const StepProgram *p, const Call *calls, const StripChain *chain, int m)
{
    int last = chain->first + chain->n - 1;
    if (arguments_of(calls, chain) + calls[m].n_bufs > CALL_MAX_BUFS ||
        link_of(p, &calls[last], &calls[m]).from < 0)
        return false;
    for (int c = chain->first; c < last; c++)
        if (conflict(p, &calls[c], &calls[m], NO_LINK))
            return false;
    return true;
}

static bool grow(const StepProgram *p, Call *calls, StripChain *chain)
{
    int last = chain->first + chain->n - 1;
    if (chain->n == STRIP_CALLS_MOST || (chain->n > 1 && !passes_on(&calls[last])))
        return false;
    for (int m = last + 1; m < p->n_calls && m <= last + LOOK_AHEAD; m++)
        if (may_join(p, calls, chain, m))
            return bring(p, calls, chain, m);
    return false;
}

/* Nearly all that the others do is done in the call of the first. */
static void count_work(Pool *pool, Call *calls, const StripChain *chain)
{
    Call *first = &calls[chain->first];
    for (int i = 1; i < chain->n; i++) {
        first->label = pool_printf(pool, "%s > %s", first->label, first[i].label);
        first[i].label = pool_printf(pool, "%s, rest", first[i].label);
        first->flops += first[i].flops;
        first->bytes += first[i].bytes;
        first[i].flops = first[i].bytes = 0;
    }
}

void strips_find(StepProgram *p, int64_t cache)
{
    p->strips.cache = cache;
    for (int i = 0; i < p->n_calls; i++) {
        StripChain chain = {.first = i, .n = 1};
        while (p->calls[i].writes.spans && grow(p, p->calls, &chain))
            ;
        if (chain.n == 1)
            continue;
        count_work(p->pool, p->calls, &chain);
        vec_push(p->pool, &p->strips.chains, chain);
        i = chain.first + chain.n - 1;
    }
}

/* --- words: codegen/build/strips_emit.c reads them --- */

typedef VEC(int64_t) Words;

static void put_all(Pool *pool, Words *to, const int64_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        vec_push(pool, to, from[i]);
}

static void put_call(const StepProgram *p, const StripChain *chain, int i, int64_t arguments,
                     int64_t notes, Words *words)
{
    const Call *c = &p->calls[chain->first + i];
    const TaskSpans *w = c->writes.spans, *r = i ? c->reads.spans : w;
    const int64_t head[STRIP_HEAD] = {p->kernel_of[chain->first + i], arguments, notes, r->n};
    bool last = i + 1 == chain->n; /* nobody asks what it writes */
    put_all(p->pool, words, head, STRIP_HEAD);
    put_all(p->pool, words, r->task, r->n + 1);
    put_all(p->pool, words, r->from, r->n);
    put_all(p->pool, words, r->to, r->n);
    put_all(p->pool, words, last ? r->from : w->from, 1);
    put_all(p->pool, words, last ? r->to : w->to, r->n);
}

static Words words_of(const StepProgram *p, const StripChain *chain)
{
    Words words = {0};
    int64_t arguments = STRIP_ARGUMENTS, notes = 0;
    vec_push(p->pool, &words, chain->n);
    for (int i = 0; i < STRIP_CALLS_MOST; i++)
        vec_push(p->pool, &words, 0);
    for (int i = 0; i < chain->n; i++) {
        const Call *c = &p->calls[chain->first + i];
        words.data[1 + i] = (int64_t)words.len;
        put_call(p, chain, i, arguments, notes, &words);
        arguments += c->n_bufs;
        notes += i ? c->reads.spans->n : 0;
    }
    return words;
}

/* Chains of equal words share them. */
static int64_t place_words(StepProgram *p, const Words *words, size_t n_before)
{
    Strips *s = &p->strips;
    for (size_t i = 0; i < n_before; i++) {
        size_t at = (size_t)s->chains.data[i].words;
        if (s->words.len - at >= words->len &&
            memcmp(s->words.data + at, words->data, words->len * sizeof *words->data) == 0)
            return (int64_t)at;
    }
    size_t at = s->words.len;
    for (size_t i = 0; i < words->len; i++)
        vec_push(p->pool, &s->words, words->data[i]);
    return (int64_t)at;
}

void strips_describe(StepProgram *p)
{
    for (size_t i = 0; i < p->strips.chains.len; i++) {
        Words words = words_of(p, &p->strips.chains.data[i]);
        p->strips.chains.data[i].words = place_words(p, &words, i);
    }
}

int64_t strips_notes(const StepProgram *p)
{
    int64_t most = 1;
    for (size_t i = 0; i < p->strips.chains.len; i++) {
        const StripChain *c = &p->strips.chains.data[i];
        int64_t notes = 0;
        for (int k = 1; k < c->n; k++)
            notes += p->calls[c->first + k].reads.spans->n;
        most = notes > most ? notes : most;
    }
    return most;
}
