/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exact placement by depth-first branch and bound (P5): is there a layout within `limit`?
 *
 * The skyline of what is placed is filled from its lowest segment up, from left to right.  In a
 * layout in which every buffer rests on another or on the ground, the next buffer on the segment
 * [a,b) at height h either lies at h with its life inside [a,b), and then what is left free before
 * it rises to the lower of its two neighbours; or nothing more lies at h, and all of [a,b) rises.
 * A rise is bytes lost: slack = limit - height - bytes still to come must stay >= 0 in every slot,
 * so that slots at the maximal load allow none; and where all that fits into the segment cannot
 * fill it up to its lower neighbour, the rest is lost.  Buffers that live through a whole part are
 * put on top of it, and parts of time that no unplaced buffer connects are searched apart, equal
 * buffers in one order only, and a part that failed is remembered by a hash of its skyline and its
 * unplaced buffers.
 *
 * Sources: Moffitt, MiniMalloc, ASPLOS 2023 (canonical solutions, decomposition); Martello, Monaci
 * and Vigo 2003 (staircase placements).  Differs: branching on the segment instead of on monotonic
 * offsets, and the table of failures.  Two parts that share a 64-bit hash would be confused. */
#include "passes/memplan/place_internal.h"

#include <string.h>

enum { TABLE_SIZE = 1 << 16 };

typedef enum ChangeKind { CHANGE_PUT, CHANGE_HANG, CHANGE_RISE } ChangeKind;

typedef struct Change { /* a placement of a buffer, or a rise of [begin,end) by `by` */
    ChangeKind kind;
    int buffer, begin, end;
    int64_t by;
} Change;

typedef struct Branch {
    const PlaceProblem *p;
    PlaceWork *work;
    Pool *pool;
    const int *rank;
    int *first, *next; /* by slot: the buffers born there; by buffer: the next one */
    bool *placed;
    int64_t *offset;
    int64_t *height, *ceiling, *slack; /* by slot */
    int *unplaced;                     /* by slot: buffers that live there */
    int *crossing;                     /* by slot t: unplaced buffers that live in t-1 and t */
    uint64_t *slot_hash;               /* of the unplaced buffers born there */
    uint64_t *failed;
    int64_t *inside; /* by slot: bytes of the candidates that begin there less those that end */
    VEC(Change) trail;
    VEC(int) candidates; /* a stack: those of every open node */
} Branch;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Changes and their undoing */

/* Puts b on the skyline or hangs it from the ceiling; sign -1: takes it away again. */
static void apply_buffer(Branch *s, int b, ChangeKind kind, int sign)
{
    int start = s->p->start[b], end = s->p->end[b];
    for (int t = start; t < end; t++) {
        if (kind == CHANGE_PUT)
            s->height[t] += sign * s->p->size[b];
        else
            s->ceiling[t] -= sign * s->p->size[b];
        s->unplaced[t] -= sign;
        s->crossing[t] -= t > start ? sign : 0;
    }
    s->placed[b] = sign > 0;
    s->slot_hash[start] ^= mix((uint64_t)b + 1);
    s->work->done += end - start;
}

static void apply_rise(Branch *s, int begin, int end, int64_t by)
{
    for (int t = begin; t < end; t++) {
        s->height[t] += by;
        s->slack[t] -= by;
    }
}

static void undo_to(Branch *s, size_t mark)
{
    while (s->trail.len > mark) {
        const Change *c = &s->trail.data[--s->trail.len];
        if (c->kind == CHANGE_RISE)
            apply_rise(s, c->begin, c->end, -c->by);
        else
            apply_buffer(s, c->buffer, c->kind, -1);
    }
}

/* Raises [begin,end) by `by`; false, with nothing changed, when the limit leaves no room. */
static bool raise(Branch *s, int begin, int end, int64_t by)
{
    for (int t = begin; t < end; t++)
        if (s->slack[t] < by)
            return false;
    apply_rise(s, begin, end, by);
    vec_push(s->pool, &s->trail, (Change){CHANGE_RISE, -1, begin, end, by});
    return true;
}

static void put(Branch *s, int b)
{
    s->offset[b] = s->height[s->p->start[b]];
    apply_buffer(s, b, CHANGE_PUT, 1);
    vec_push(s->pool, &s->trail, (Change){CHANGE_PUT, b, 0, 0, 0});
}

/* What lives through the whole part may as well be on top of it: hung from the ceiling, it leaves
 * parts that fall apart.  Returns whether there was any. */
static bool hang_spanning(Branch *s, int begin, int end)
{
    bool any = false;
    for (int b = s->first[begin]; b >= 0; b = s->next[b]) {
        s->work->done++;
        if (s->placed[b] || s->p->end[b] != end)
            continue;
        any = true;
        s->offset[b] = s->ceiling[begin] - s->p->size[b];
        apply_buffer(s, b, CHANGE_HANG, 1);
        vec_push(s->pool, &s->trail, (Change){CHANGE_HANG, b, 0, 0, 0});
    }
    return any;
}

/* A part [begin,end) of time, the lowest segment in it, and how far it is below its neighbours
 * (INT64_MAX beyond the part: nothing unplaced lives on both sides). */
typedef struct Part {
    int begin, end;
    int a, b;
    int64_t left, right;
} Part;

static Part lowest_part(Branch *s, int begin, int end)
{
    Part q = {begin, end, begin, end, INT64_MAX, INT64_MAX};
    for (int t = begin; t < end; t++)
        if (s->height[t] < s->height[q.a])
            q.a = t;
    q.b = q.a + 1;
    while (q.b < end && s->height[q.b] == s->height[q.a])
        q.b++;
    if (q.a > begin)
        q.left = s->height[q.a - 1] - s->height[q.a];
    if (q.b < end)
        q.right = s->height[q.b] - s->height[q.a];
    s->work->done += end - begin;
    return q;
}

/* A buffer of the same life and size that is born at slot t is a candidate already. */
static bool has_twin(const Branch *s, int b, int t, size_t base)
{
    for (size_t k = s->candidates.len; k-- > base;) {
        int other = s->candidates.data[k];
        if (s->p->start[other] != t)
            return false;
        if (s->p->end[other] == s->p->end[b] && s->p->size[other] == s->p->size[b])
            return true;
    }
    return false;
}

/* By the order, but first what leaves no further step in the skyline: it fills the segment from end
 * to end, or up to a neighbour. */
static int candidate_rank(const Branch *s, const Part *q, int b)
{
    bool level = s->p->size[b] == q->left || s->p->size[b] == q->right;
    bool wide = s->p->start[b] == q->a && s->p->end[b] == q->b;
    return level || wide ? s->rank[b] - s->p->n : s->rank[b];
}

/* The unplaced buffers that fit on the segment, best first; of equal ones the first. */
static void collect_candidates(Branch *s, const Part *q)
{
    size_t base = s->candidates.len;
    memset(s->inside + q->a, 0, (size_t)(q->b - q->a + 1) * sizeof *s->inside);
    for (int t = q->a; t < q->b; t++)
        for (int b = s->first[t]; b >= 0; b = s->next[b]) {
            s->work->done++;
            if (s->placed[b] || s->p->end[b] > q->b)
                continue;
            s->inside[t] += s->p->size[b];
            s->inside[s->p->end[b]] -= s->p->size[b];
            if (!has_twin(s, b, t, base))
                vec_push(s->pool, &s->candidates, b);
        }
    int *candidate = s->candidates.data;
    for (size_t k = base + 1; k < s->candidates.len; k++) {
        int b = candidate[k], rank = candidate_rank(s, q, b);
        size_t to = k;
        for (; to > base && candidate_rank(s, q, candidate[to - 1]) > rank; to--)
            candidate[to] = candidate[to - 1];
        candidate[to] = b;
        s->work->done += (int64_t)(k - to);
    }
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A slot of the segment that all candidates together do not fill up to the lower neighbour loses
 * the rest. */
static bool can_fill_up(const Branch *s, const Part *q)
{
    int64_t rise = smaller(q->left, q->right), inside = 0;
    for (int t = q->a; t < q->b && rise < INT64_MAX; t++) {
        inside += s->inside[t];
        if (rise - inside > s->slack[t])
            return false;
    }
    return true;
}

/* A slot of the segment that cannot rise even to the lowest of what may come beside it must be
 * covered by a candidate. */
static bool tight_slots_covered(const Branch *s, const Part *q, size_t base)
{
    int64_t rise = smaller(q->left, q->right);
    const int *candidate = s->candidates.data;
    for (size_t k = base; k < s->candidates.len; k++)
        rise = smaller(rise, s->p->size[candidate[k]]);
    for (int t = q->a; t < q->b; t++) {
        bool covered = s->slack[t] >= rise;
        for (size_t k = base; k < s->candidates.len && !covered; k++)
            covered = s->p->start[candidate[k]] <= t && t < s->p->end[candidate[k]];
        if (!covered)
            return false;
    }
    return true;
}

static uint64_t part_hash(Branch *s, int begin, int end)
{
    uint64_t hash = mix((uint64_t)begin << 32 | (uint64_t)end);
    for (int t = begin; t < end; t++)
        hash = mix(hash ^ s->slot_hash[t]) +
               (uint64_t)(s->ceiling[t] - s->height[t]) * 0x9e3779b97f4a7c15u;
    s->work->done += end - begin;
    return mix(hash) | 1;
}

static bool search(Branch *s, int begin, int end);

static bool try_candidate(Branch *s, const Part *q, int b)
{
    int start = s->p->start[b];
    int64_t gap_rise = smaller(q->left, s->p->size[b]);
    if (start > q->a && !raise(s, q->a, start, gap_rise))
        return false;
    put(s, b);
    return search(s, q->begin, q->end);
}

static bool try_all(Branch *s, const Part *q, size_t base)
{
    size_t mark = s->trail.len, n = s->candidates.len;
    if (!can_fill_up(s, q) || !tight_slots_covered(s, q, base))
        return false;
    for (size_t k = base; k < n; k++) {
        if (try_candidate(s, q, s->candidates.data[k]))
            return true;
        undo_to(s, mark);
        if (s->work->done > s->work->limit)
            return false;
    }
    int64_t by = smaller(q->left, q->right);
    return by < INT64_MAX && raise(s, q->a, q->b, by) && search(s, q->begin, q->end);
}

/* A part that nothing splits. */
static bool search_part(Branch *s, int begin, int end)
{
    if (s->work->done > s->work->limit)
        return false;
    if (hang_spanning(s, begin, end))
        return search(s, begin, end);
    uint64_t hash = part_hash(s, begin, end);
    if (s->failed[hash % TABLE_SIZE] == hash)
        return false;
    Part q = lowest_part(s, begin, end);
    size_t base = s->candidates.len, mark = s->trail.len;
    collect_candidates(s, &q);
    bool found = try_all(s, &q, base);
    s->candidates.len = base;
    if (found)
        return true;
    undo_to(s, mark);
    if (s->work->done <= s->work->limit)
        s->failed[hash % TABLE_SIZE] = hash;
    return false;
}

/* Places everything unplaced in [begin,end), or, when that is impossible or the effort ends, leaves
 * things as they are or further changed (the caller undoes). */
static bool search(Branch *s, int begin, int end)
{
    s->work->done += end - begin;
    for (int t = begin, from = begin; t < end; t++) {
        if (t + 1 < end && s->crossing[t + 1] > 0)
            continue;
        if (s->unplaced[from] > 0 && !search_part(s, from, t + 1))
            return false;
        from = t + 1;
    }
    return true;
}

static Branch *branch_new(Pool *pool, const PlaceProblem *p, const int *order, int64_t limit,
                          PlaceWork *work)
{
    Branch *s = POOL_NEW(pool, Branch);
    size_t n = (size_t)p->n, slots = (size_t)p->n_slots;
    int *rank = POOL_ARRAY(pool, n, int);
    *s = (Branch){.p = p, .work = work, .pool = pool, .rank = rank};
    s->first = POOL_ARRAY(pool, slots, int);
    s->next = POOL_ARRAY(pool, n, int);
    s->placed = POOL_ARRAY(pool, n, bool);
    s->offset = POOL_ARRAY(pool, n, int64_t);
    s->height = POOL_ARRAY(pool, slots, int64_t);
    s->ceiling = POOL_ARRAY(pool, slots, int64_t);
    s->slack = POOL_ARRAY(pool, slots, int64_t);
    s->unplaced = POOL_ARRAY(pool, slots, int);
    s->crossing = POOL_ARRAY(pool, slots, int);
    s->inside = POOL_ARRAY(pool, slots + 1, int64_t);
    s->slot_hash = POOL_ARRAY(pool, slots, uint64_t);
    s->failed = POOL_ARRAY(pool, TABLE_SIZE, uint64_t);
    for (int t = 0; t < p->n_slots; t++) {
        s->first[t] = -1;
        s->ceiling[t] = limit;
        s->slack[t] = limit - p->load[t];
    }
    for (int k = p->n - 1; k >= 0; k--) {
        int b = order[k];
        rank[b] = k;
        s->next[b] = s->first[p->start[b]];
        s->first[p->start[b]] = b;
        apply_buffer(s, b, CHANGE_PUT, -1);
        for (int t = p->start[b]; t < p->end[b]; t++)
            s->height[t] = 0;
    }
    return s;
}

PlaceOutcome place_branch_bound(const PlaceProblem *p, const int *order, int64_t limit,
                                int64_t *offset, PlaceWork *work)
{
    if (limit < p->bound)
        return PLACE_IMPOSSIBLE;
    Pool *pool = pool_new_child(p->scratch);
    Branch *s = branch_new(pool, p, order, limit, work);
    bool found = search(s, 0, p->n_slots);
    if (found)
        memcpy(offset, s->offset, (size_t)p->n * sizeof *offset);
    pool_free(pool);
    return found ? PLACE_FOUND : work->done > work->limit ? PLACE_UNKNOWN : PLACE_IMPOSSIBLE;
}
