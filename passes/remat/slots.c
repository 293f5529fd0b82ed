#include "passes/remat/slots.h"

#include "ir/support/bug.h"
#include "ir/support/vec.h"
#include "passes/remat/csr.h"
#include "passes/remat/peak_tree.h"

#include <string.h>

/* Where a run stands: slot * (n + 1) + node.  A first run comes after all recomputations of its
 * slot, because those are of nodes before it. */
typedef int64_t Key;

/* The runs of one node, ascending by slot, and for each output of each when it is read last. */
typedef struct Runs {
    int n, room;
    int *slot;
    Key *end; /* [run * n_out + k] */
} Runs;

typedef struct SlotRuns {
    int n, room;
    int *node; /* recomputations, ascending */
} SlotRuns;

typedef struct Change {
    int node, slot;
    bool added;
} Change;

struct Slots {
    Pool *pool;
    const RematProblem *p;
    int n;
    Runs *runs;           /* by node */
    SlotRuns *slot;       /* by slot */
    Csr readers;          /* tensor -> nodes that read it */
    int *out_index;       /* tensor -> which output of its producer */
    int *last_slot;       /* node -> the last slot its operands are still what they were */
    Key *batch_end;       /* tensor without a producer, not persistent: when it is read last */
    int64_t constant;     /* persistent bytes */
    int64_t unread_batch; /* batch inputs that nothing reads: there until node 0 has run */
    PeakTree through;     /* by slot: the most bytes alive in it */
    int64_t *inside;      /* by slot: the most of what begins or ends in it */
    bool *dirty;
    VEC(int) dirty_list;
    VEC(Change) log;
    double time;
    int recomputed;
    int64_t work;
    bool *in_merged, *out_merged, *dies;
};

/* ---- keys ---- */

static Key key_of(const Slots *s, int node, int slot)
{
    return (Key)slot * (s->n + 1) + node;
}

static int slot_of(const Slots *s, Key key)
{
    return (int)(key / (s->n + 1));
}

static Key end_key(const Slots *s)
{
    return key_of(s, 0, s->n);
}

/* ---- lifetimes ---- */

static bool counts(const Slots *s, int tensor)
{
    return !s->p->tensor[tensor].persistent && s->p->tensor[tensor].bytes > 0;
}

/* The last of the runs of `node` in a slot before `slot`, or at it when node < limit; -1 = none. */
static int run_before_key(const Slots *s, int node, Key before)
{
    const Runs *r = &s->runs[node];
    int lo = -1, hi = r->n; /* slot[lo] is before, slot[hi] is not */
    if (r->n == 1)
        return key_of(s, node, r->slot[0]) < before ? 0 : -1;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (key_of(s, node, r->slot[mid]) < before)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void mark_dirty(Slots *s, int slot)
{
    if (slot < 0 || slot >= s->n || s->dirty[slot])
        return;
    s->dirty[slot] = true;
    vec_push(s->pool, &s->dirty_list, slot);
}

/* The last read of a tensor in (from, to); from when there is none. */
static Key last_read(const Slots *s, int tensor, Key from, Key to)
{
    Key last = from;
    for (int k = s->readers.begin[tensor]; k < s->readers.begin[tensor + 1]; k++) {
        int reader = s->readers.item[k], run = run_before_key(s, reader, to);
        Key at = run < 0 ? from : key_of(s, reader, s->runs[reader].slot[run]);
        last = at > last ? at : last;
    }
    return last;
}

/* Moves the end of a life that begins in slot `begin` (-1: before the first slot). */
static void set_end(Slots *s, int tensor, int begin, Key *end, Key to)
{
    int64_t bytes = s->p->tensor[tensor].bytes;
    int old = slot_of(s, *end), new = slot_of(s, to);
    if (*end == to)
        return;
    s->work++;
    if (new > old)
        peak_tree_add(&s->through, old > begin + 1 ? old : begin + 1, new - 1, bytes);
    else if (new < old)
        peak_tree_add(&s->through, new > begin + 1 ? new : begin + 1, old - 1, -bytes);
    mark_dirty(s, begin);
    mark_dirty(s, old);
    mark_dirty(s, new);
    *end = to;
}

/* Recounts the life of output k of one run. */
static void update_life(Slots *s, int node, int run, int k)
{
    const RematNode *x = &s->p->node[node];
    Runs *r = &s->runs[node];
    int tensor = x->out[k];
    if (!counts(s, tensor))
        return;
    bool last = run + 1 == r->n;
    Key from = key_of(s, node, r->slot[run]);
    Key to = last ? end_key(s) : key_of(s, node, r->slot[run + 1]);
    Key end = last && s->p->tensor[tensor].keep ? to : last_read(s, tensor, from, to);
    set_end(s, tensor, r->slot[run], &r->end[run * x->n_out + k], end);
}

static void update_operands(Slots *s, int node, Key at)
{
    const RematNode *x = &s->p->node[node];
    for (int i = 0; i < x->n_in; i++) {
        int tensor = x->in[i], producer = s->p->tensor[tensor].producer;
        if (!counts(s, tensor))
            continue;
        if (producer < 0)
            set_end(s, tensor, -1, &s->batch_end[tensor], last_read(s, tensor, -1, end_key(s)));
        else
            update_life(s, producer, run_before_key(s, producer, at), s->out_index[tensor]);
    }
}

/* ---- runs ---- */

static void runs_reserve(Slots *s, Runs *r, int n_out)
{
    if (r->n < r->room)
        return;
    int room = r->room ? 2 * r->room : 2;
    r->slot = pool_grow(s->pool, r->slot, (size_t)r->room * sizeof *r->slot,
                        (size_t)room * sizeof *r->slot);
    r->end = pool_grow(s->pool, r->end, (size_t)(r->room * n_out) * sizeof *r->end,
                       (size_t)(room * n_out + 1) * sizeof *r->end);
    r->room = room;
}

static int find_run(const Slots *s, int node, int slot)
{
    int run = run_before_key(s, node, key_of(s, node, slot) + 1);
    return run >= 0 && s->runs[node].slot[run] == slot ? run : -1;
}

static void open_run(Slots *s, int node, int run, int slot)
{
    int n_out = s->p->node[node].n_out;
    Runs *r = &s->runs[node];
    runs_reserve(s, r, n_out);
    size_t behind = (size_t)(r->n - run);
    memmove(r->slot + run + 1, r->slot + run, behind * sizeof *r->slot);
    memmove(r->end + (run + 1) * n_out, r->end + run * n_out,
            behind * (size_t)n_out * sizeof *r->end);
    r->slot[run] = slot;
    for (int k = 0; k < n_out; k++)
        r->end[run * n_out + k] = key_of(s, node, slot);
    r->n++;
}

static void close_run(Slots *s, int node, int run)
{
    int n_out = s->p->node[node].n_out;
    Runs *r = &s->runs[node];
    size_t behind = (size_t)(r->n - run - 1);
    memmove(r->slot + run, r->slot + run + 1, behind * sizeof *r->slot);
    memmove(r->end + run * n_out, r->end + (run + 1) * n_out,
            behind * (size_t)n_out * sizeof *r->end);
    r->n--;
}

static void slot_insert(Slots *s, int slot, int node)
{
    SlotRuns *x = &s->slot[slot];
    if (x->n == x->room) {
        int room = x->room ? 2 * x->room : 4;
        x->node = pool_grow(s->pool, x->node, (size_t)x->room * sizeof *x->node,
                            (size_t)room * sizeof *x->node);
        x->room = room;
    }
    int i = x->n++;
    for (; i > 0 && x->node[i - 1] > node; i--)
        x->node[i] = x->node[i - 1];
    x->node[i] = node;
}

static void slot_delete(Slots *s, int slot, int node)
{
    SlotRuns *x = &s->slot[slot];
    int i = 0;
    while (x->node[i] != node)
        i++;
    x->n--;
    memmove(x->node + i, x->node + i + 1, (size_t)(x->n - i) * sizeof *x->node);
}

static void add_run(Slots *s, int node, int slot)
{
    const RematNode *x = &s->p->node[node];
    int run = run_before_key(s, node, key_of(s, node, slot)) + 1;
    open_run(s, node, run, slot);
    slot_insert(s, slot, node);
    mark_dirty(s, slot);
    for (int k = 0; k < x->n_out; k++) {
        update_life(s, node, run - 1, k);
        update_life(s, node, run, k);
    }
    update_operands(s, node, key_of(s, node, slot));
    s->time += x->cost;
    s->recomputed++;
}

static void remove_run(Slots *s, int node, int slot)
{
    const RematNode *x = &s->p->node[node];
    int run = find_run(s, node, slot);
    Runs *r = &s->runs[node];
    Key at = key_of(s, node, slot);
    for (int k = 0; k < x->n_out; k++)
        if (counts(s, x->out[k]))
            set_end(s, x->out[k], slot, &r->end[run * x->n_out + k], at);
    close_run(s, node, run);
    slot_delete(s, slot, node);
    mark_dirty(s, slot);
    for (int k = 0; k < x->n_out; k++)
        update_life(s, node, run - 1, k);
    update_operands(s, node, at);
    s->time -= x->cost;
    s->recomputed--;
}

void slots_add(Slots *s, int node, int slot)
{
    add_run(s, node, slot);
    vec_push(s->pool, &s->log, ((Change){node, slot, true}));
}

void slots_remove(Slots *s, int node, int slot)
{
    remove_run(s, node, slot);
    vec_push(s->pool, &s->log, ((Change){node, slot, false}));
}

int slots_mark(const Slots *s)
{
    return (int)s->log.len;
}

void slots_rollback(Slots *s, int mark)
{
    while ((int)s->log.len > mark) {
        Change c = s->log.data[--s->log.len];
        if (c.added)
            remove_run(s, c.node, c.slot);
        else
            add_run(s, c.node, c.slot);
    }
}

void slots_commit(Slots *s)
{
    s->log.len = 0;
}

void slots_clear(Slots *s)
{
    for (int slot = 0; slot < s->n; slot++)
        while (s->slot[slot].n > 0)
            remove_run(s, s->slot[slot].node[s->slot[slot].n - 1], slot);
    slots_commit(s);
}

/* ---- inside a slot ---- */

/* The end of the life of operand i of a run at `at`, and the slot where it began. */
static Key operand_life(const Slots *s, const RematNode *x, int i, Key at, int *begin)
{
    int tensor = x->in[i], producer = s->p->tensor[tensor].producer;
    if (producer < 0) {
        *begin = -1;
        return s->batch_end[tensor];
    }
    int run = run_before_key(s, producer, at);
    *begin = s->runs[producer].slot[run];
    return s->runs[producer].end[run * s->p->node[producer].n_out + s->out_index[tensor]];
}

/* Bytes that are there when the slot begins and gone when it ends. */
static int64_t ending_bytes(const Slots *s, int node, int slot)
{
    const RematNode *x = &s->p->node[node];
    Key at = key_of(s, node, slot);
    int64_t bytes = 0;
    for (int i = 0; i < x->n_in; i++) {
        int begin;
        if (counts(s, x->in[i]) && operand_life(s, x, i, at, &begin) == at && begin < slot)
            bytes += s->p->tensor[x->in[i]].bytes;
    }
    return bytes;
}

static void find_dying(Slots *s, const RematNode *x, Key at)
{
    for (int i = 0; i < x->n_in; i++) {
        int begin;
        s->dies[i] = counts(s, x->in[i]) && operand_life(s, x, i, at, &begin) == at;
        s->in_merged[i] = false;
    }
    for (int k = 0; k < x->n_out; k++)
        s->out_merged[k] = false;
    for (int k = 0; k < x->n_in_place; k++) {
        int out = x->in_place[k].out, in = x->in_place[k].in;
        if (s->in_merged[in] || s->out_merged[out] || !s->dies[in] ||
            s->p->tensor[x->in[in]].bytes != s->p->tensor[x->out[out]].bytes)
            continue;
        s->in_merged[in] = s->out_merged[out] = true;
    }
}

/* One run: *alive goes on to the next, the result is the most while it runs. */
static int64_t replay_run(Slots *s, int node, int slot, int64_t *alive)
{
    const RematNode *x = &s->p->node[node];
    Key at = key_of(s, node, slot);
    int run = find_run(s, node, slot);
    find_dying(s, x, at);
    for (int k = 0; k < x->n_out; k++)
        *alive += s->out_merged[k] ? 0 : s->p->tensor[x->out[k]].bytes;
    int64_t most = *alive + x->workspace;
    for (int i = 0; i < x->n_in; i++)
        if (s->dies[i] && !s->in_merged[i])
            *alive -= s->p->tensor[x->in[i]].bytes;
    for (int k = 0; k < x->n_out; k++)
        if (counts(s, x->out[k]) && s->runs[node].end[run * x->n_out + k] == at)
            *alive -= s->p->tensor[x->out[k]].bytes;
    return most;
}

static int64_t recount(Slots *s, int slot)
{
    const SlotRuns *x = &s->slot[slot];
    int64_t alive = ending_bytes(s, slot, slot) + (slot == 0 ? s->unread_batch : 0);
    int64_t most = INT64_MIN;
    for (int i = 0; i < x->n; i++)
        alive += ending_bytes(s, x->node[i], slot);
    for (int i = 0; i <= x->n; i++) {
        int64_t here = replay_run(s, i < x->n ? x->node[i] : slot, slot, &alive);
        most = here > most ? here : most;
    }
    s->work += x->n + 1;
    return most;
}

static void refresh(Slots *s)
{
    for (size_t i = 0; i < s->dirty_list.len; i++) {
        int slot = s->dirty_list.data[i];
        int64_t inside = recount(s, slot);
        peak_tree_add(&s->through, slot, slot, inside - s->inside[slot]);
        s->inside[slot] = inside;
        s->dirty[slot] = false;
    }
    s->dirty_list.len = 0;
}

int64_t slots_peak(Slots *s, int *slot)
{
    refresh(s);
    s->work++;
    if (slot)
        *slot = peak_tree_argmost(&s->through);
    return peak_tree_most(&s->through, 0, s->n - 1) + s->constant;
}

int64_t slots_peak_within(Slots *s, int first, int last)
{
    refresh(s);
    s->work++;
    return first > last ? INT64_MIN : peak_tree_most(&s->through, first, last) + s->constant;
}

void slots_above(Slots *s, int64_t limit, int *next)
{
    refresh(s);
    s->work += s->n / 8;
    peak_tree_above(&s->through, limit - s->constant, next, s->n);
}

/* ---- making one ---- */

static void find_readers(Slots *s)
{
    const RematProblem *p = s->p;
    int reads = 0;
    s->readers = csr_new(s->pool, p->n_tensors);
    for (int n = 0; n < p->n_nodes; n++) {
        reads += p->node[n].n_in;
        for (int i = 0; i < p->node[n].n_in; i++)
            csr_count(&s->readers, p->node[n].in[i]);
    }
    csr_close(&s->readers, s->pool, reads);
    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->node[n].n_in; i++)
            csr_store(&s->readers, p->node[n].in[i], n);
}

static void find_limits(Slots *s)
{
    const RematProblem *p = s->p;
    int *overwriter = POOL_ARRAY(s->pool, (size_t)p->n_tensors + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        overwriter[t] = p->n_nodes;
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_overwrites; k++)
            overwriter[p->node[n].overwrites[k]] = n;
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *x = &p->node[n];
        bool once = !x->rerun || x->hint == REMAT_KEEP || x->n_overwrites > 0;
        s->last_slot[n] = once ? n : p->n_nodes - 1;
        for (int i = 0; i < x->n_in; i++)
            if (overwriter[x->in[i]] < s->last_slot[n])
                s->last_slot[n] = overwriter[x->in[i]];
        for (int k = 0; k < x->n_out; k++)
            s->out_index[x->out[k]] = k;
    }
}

static void begin_lives(Slots *s)
{
    const RematProblem *p = s->p;
    for (int n = 0; n < s->n; n++)
        open_run(s, n, 0, n);
    for (int t = 0; t < p->n_tensors; t++) {
        s->batch_end[t] = key_of(s, 0, 0);
        if (p->tensor[t].producer >= 0)
            continue;
        if (p->tensor[t].persistent)
            s->constant += p->tensor[t].bytes;
        else if (counts(s, t) && !p->tensor[t].keep && csr_length(&s->readers, t) == 0)
            s->unread_batch += p->tensor[t].bytes;
        else if (counts(s, t))
            set_end(s, t, -1, &s->batch_end[t],
                    p->tensor[t].keep ? end_key(s) : last_read(s, t, -1, end_key(s)));
    }
    for (int n = 0; n < s->n; n++) {
        mark_dirty(s, n);
        s->time += p->node[n].cost;
        for (int k = 0; k < p->node[n].n_out; k++)
            update_life(s, n, 0, k);
    }
}

Slots *slots_new(Pool *pool, const RematProblem *p)
{
    Slots *s = POOL_NEW(pool, Slots);
    size_t n = (size_t)p->n_nodes + 1, t = (size_t)p->n_tensors + 1, operands = 1;
    *s = (Slots){.pool = pool, .p = p, .n = p->n_nodes};
    s->runs = POOL_ARRAY(pool, n, Runs);
    s->slot = POOL_ARRAY(pool, n, SlotRuns);
    s->last_slot = POOL_ARRAY(pool, n, int);
    s->inside = POOL_ARRAY(pool, n, int64_t);
    s->dirty = POOL_ARRAY(pool, n, bool);
    s->out_index = POOL_ARRAY(pool, t, int);
    s->batch_end = POOL_ARRAY(pool, t, Key);
    for (int k = 0; k < p->n_nodes; k++)
        operands += (size_t)p->node[k].n_in + (size_t)p->node[k].n_out;
    s->in_merged = POOL_ARRAY(pool, operands, bool);
    s->out_merged = POOL_ARRAY(pool, operands, bool);
    s->dies = POOL_ARRAY(pool, operands, bool);
    find_readers(s);
    find_limits(s);
    s->through = peak_tree_new(pool, s->n);
    begin_lives(s);
    return s;
}

/* ---- facts ---- */

bool slots_allowed(const Slots *s, int node, int slot)
{
    return slot > node && slot <= s->last_slot[node];
}

bool slots_has(const Slots *s, int node, int slot)
{
    return find_run(s, node, slot) >= 0;
}

int slots_count(const Slots *s)
{
    return s->n;
}

int slots_output(const Slots *s, int tensor)
{
    return s->out_index[tensor];
}

double slots_time(const Slots *s)
{
    return s->time;
}

int slots_recomputed(const Slots *s)
{
    return s->recomputed;
}

int64_t slots_work(const Slots *s)
{
    return s->work;
}

int slots_runs(const Slots *s, int node)
{
    return s->runs[node].n;
}

int slots_run_slot(const Slots *s, int node, int run)
{
    return s->runs[node].slot[run];
}

int slots_life_end(const Slots *s, int node, int run, int k)
{
    return slot_of(s, s->runs[node].end[run * s->p->node[node].n_out + k]);
}

int slots_run_before(const Slots *s, int node, int slot)
{
    return run_before_key(s, node, key_of(s, s->n, slot));
}

int slots_next_read(const Slots *s, int node, int run, int k, int after)
{
    int tensor = s->p->node[node].out[k], best = -1;
    const Runs *r = &s->runs[node];
    Key to = run + 1 < r->n ? key_of(s, node, r->slot[run + 1]) : end_key(s);
    for (int i = s->readers.begin[tensor]; i < s->readers.begin[tensor + 1]; i++) {
        int reader = s->readers.item[i];
        int next = run_before_key(s, reader, key_of(s, 0, after + 1)) + 1;
        const Runs *x = &s->runs[reader];
        if (next < x->n && key_of(s, reader, x->slot[next]) < to &&
            (best < 0 || x->slot[next] < best))
            best = x->slot[next];
    }
    return best;
}

const int *slots_in_slot(const Slots *s, int slot, int *n)
{
    *n = s->slot[slot].n;
    return s->slot[slot].node;
}

RematSchedule slots_schedule(Pool *pool, const Slots *s)
{
    RematSchedule out = {0, POOL_ARRAY(pool, (size_t)(s->n + s->recomputed) + 1, int)};
    for (int u = 0; u < s->n; u++) {
        for (int i = 0; i < s->slot[u].n; i++)
            out.node[out.len++] = s->slot[u].node[i];
        out.node[out.len++] = u;
    }
    return out;
}
