/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Greedy drops with prices that are brought up to date when they are about to be taken (lazy
 * greedy): a drop only gets dearer while others are made, because more has to run again with it.
 * For the same reason a drop may be offered at the price of its node alone.  What has to run with
 * it is looked for only when the drop is about to be made: that is nine tenths of the work, and
 * most drops never get there. */
#include "passes/remat/search/greedy.h"

#include "ir/support/heap.h"

#include <math.h>

/* A drop that needs more runs than this is not worth looking at. */
enum { MAX_CHAIN = 400, MAX_ROUNDS = 3 };

/* The lowest price first; ties by node and place, so that runs repeat. */
static bool goes_before(const GreedySearch *x, GreedyDrop a, GreedyDrop b)
{
    (void)x;
    if (a.price != b.price)
        return a.price < b.price;
    return a.node != b.node ? a.node < b.node : a.after < b.after;
}

HEAP_DEFINE(drops, const GreedySearch, GreedyDrop, goes_before, HEAP_UNTOLD)

static void push_drop(GreedySearch *x, GreedyDrop d)
{
    vec_push(x->pool, &x->heap, d);
    drops_up(x, x->heap.data, x->heap.len - 1);
}

/* ---- what a drop brings with it ---- */

/* Its value must not live across the loss, so a run behind the loss cannot use the first one's. */
static bool forbidden_across(const GreedySearch *x, int node, int run, int slot)
{
    return x->p->node[node].hint == REMAT_RECOMPUTE && slot > x->p->loss_node &&
           incremental_run_slot(x->slots, node, run) <= x->p->loss_node;
}

/* What to do about operand `tensor` of a run in `slot`: nothing when it is there, or fits until
 * then; else its producer runs again too; what cannot is kept although it does not fit. */
static void chain_operand(GreedySearch *x, int tensor, int slot, int64_t *kept_bytes)
{
    const RematTensor *t = &x->p->tensor[tensor];
    int q = t->producer;
    if (q < 0 || t->bytes == 0 || x->stamp[q] == x->n_chains)
        return;
    int run = incremental_run_before(x->slots, q, slot);
    int end = incremental_life_end(x->slots, q, run, incremental_output(x->slots, tensor));
    bool forbidden = forbidden_across(x, q, run, slot);
    if (!forbidden &&
        (end >= slot ||
         incremental_peak_within(x->slots, end + 1, slot - 1) + t->bytes <= x->target_bytes))
        return;
    if (incremental_allowed(x->slots, q, slot) && !incremental_has(x->slots, q, slot)) {
        x->stamp[q] = x->n_chains;
        vec_push(x->pool, &x->chain, q);
    } else if (end < slot) {
        *kept_bytes += t->bytes;
    }
}

/* All runs that `node` in `slot` needs, itself first, into x->chain. */
static bool find_chain(GreedySearch *x, int node, int slot, int64_t *kept_bytes)
{
    x->chain.len = 0;
    x->stamp[node] = ++x->n_chains;
    vec_push(x->pool, &x->chain, node);
    for (size_t at = 0; at < x->chain.len; at++) {
        const RematNode *n = &x->p->node[x->chain.data[at]];
        if (x->chain.len > MAX_CHAIN)
            return false;
        for (int i = 0; i < n->n_in; i++)
            chain_operand(x, n->in[i], slot, kept_bytes);
    }
    return true;
}

/* The first slot behind `after` in which any output of the run is read; -1 = none. */
static int next_read(const GreedySearch *x, int node, int run, int after)
{
    int next = -1;
    for (int k = 0; k < x->p->node[node].n_out; k++) {
        int read = incremental_next_read(x->slots, node, run, k, after);
        next = read >= 0 && (next < 0 || read < next) ? read : next;
    }
    return next;
}

/* Bytes of a run's outputs that live until `slot` at least. */
static int64_t bytes_until(const GreedySearch *x, int node, int run, int slot)
{
    const RematNode *n = &x->p->node[node];
    int64_t bytes = 0;
    for (int k = 0; k < n->n_out; k++)
        if (incremental_life_end(x->slots, node, run, k) >= slot)
            bytes += x->p->tensor[n->out[k]].bytes;
    return bytes;
}

/* Part of the stretch over the target that lies between two slots, to the power of x->reach. */
static double reach_factor(const GreedySearch *x, int after, int next)
{
    if (x->reach == 0 || x->over_last < x->over_first)
        return 1;
    int first = after + 1 > x->over_first ? after + 1 : x->over_first;
    int last = next - 1 < x->over_last ? next - 1 : x->over_last;
    double part = last < first
                      ? 1e-3
                      : (double)(last - first + 1) / (double)(x->over_last - x->over_first + 1);
    return pow(part, x->reach);
}

/* The slot in which the node would run again, and the bytes that are gone until then; -1 when
 * nothing is gained. */
static int find_gap(GreedySearch *x, int node, int after, int64_t *bytes)
{
    int run = incremental_run_before(x->slots, node, after);
    int next = run < 0 ? -1 : next_read(x, node, run, after);
    if (next < 0 || !incremental_allowed(x->slots, node, next) ||
        incremental_has(x->slots, node, next))
        return -1;
    *bytes = bytes_until(x, node, run, next);
    if (*bytes <= 0 || incremental_peak_within(x->slots, after + 1, next - 1) <= x->target_bytes)
        return -1;
    return next;
}

/* The same with the price, and the chain in x->chain. */
static int price_drop(GreedySearch *x, int node, int after, double *price)
{
    int64_t bytes, kept_bytes = 0;
    int next = find_gap(x, node, after, &bytes);
    if (next < 0 || !find_chain(x, node, next, &kept_bytes) || kept_bytes >= bytes)
        return -1;
    double time = 0;
    for (size_t i = 0; i < x->chain.len; i++)
        time += x->p->node[x->chain.data[i]].cost;
    *price = time / ((double)(bytes - kept_bytes) * reach_factor(x, after, next));
    return next;
}

/* The slot in which the node would run again, with the price of the node alone. */
static int price_alone(GreedySearch *x, int node, int after, double *price)
{
    int64_t bytes;
    int next = find_gap(x, node, after, &bytes);
    if (next >= 0)
        *price = x->p->node[node].cost / ((double)bytes * reach_factor(x, after, next));
    return next;
}

static void offer(GreedySearch *x, int node, int after)
{
    bool alone = !x->whole_prices;
    double price;
    int next = (alone ? price_alone : price_drop)(x, node, after, &price);
    if (next >= 0)
        push_drop(x, (GreedyDrop){price * greedy_bend(x, node), node, after, alone});
}

/* ---- the greedy ---- */

/* The slots over the target. */
static void find_stretch(GreedySearch *x)
{
    int n = incremental_count(x->slots);
    incremental_above(x->slots, x->target_bytes, x->next_over);
    x->next_over[n] = n;
    x->over_first = x->next_over[0];
    x->over_last = n - 1;
    while (x->over_last >= x->over_first && x->next_over[x->over_last] != x->over_last)
        x->over_last--;
}

/* Whether a slot between these two is over the target, or was when find_stretch looked. */
static bool spans_stretch(const GreedySearch *x, int after, int next)
{
    return after + 1 < next && x->next_over[after + 1] < next;
}

/* The last slot in which any output of the run is there. */
static int last_slot(const GreedySearch *x, int node, int run)
{
    int last = -1;
    for (int k = 0; k < x->p->node[node].n_out; k++) {
        int end = incremental_life_end(x->slots, node, run, k);
        last = end > last ? end : last;
    }
    return last;
}

/* Every gap between two reads of a value that lives while there is too much. */
static void offer_all(GreedySearch *x)
{
    x->heap.len = 0;
    for (int n = 0; n < incremental_count(x->slots); n++)
        for (int r = 0; r < incremental_runs(x->slots, n); r++) {
            int last = last_slot(x, n, r);
            for (int after = incremental_run_slot(x->slots, n, r), next;
                 after >= 0 && spans_stretch(x, after, last); after = next) {
                next = next_read(x, n, r, after);
                if (next >= 0 && spans_stretch(x, after, next))
                    offer(x, n, after);
            }
        }
}

/* The new runs' values, and those they read, may be dropped again behind this slot. */
static void offer_behind(GreedySearch *x, int slot)
{
    for (size_t i = 0; i < x->added.len; i++) {
        const RematNode *run = &x->p->node[x->added.data[i]];
        offer(x, x->added.data[i], slot);
        for (int k = 0; k < run->n_in; k++)
            if (x->p->tensor[run->in[k]].producer >= 0)
                offer(x, x->p->tensor[run->in[k]].producer, slot);
    }
}

/* False, and nothing changed, when the slot itself would get too full. */
static bool make_drop(GreedySearch *x, int slot)
{
    int mark = incremental_mark(x->slots);
    int64_t before = incremental_peak_within(x->slots, slot, slot);
    for (size_t i = 0; i < x->chain.len; i++)
        incremental_add(x->slots, x->chain.data[i], slot);
    int64_t after = incremental_peak_within(x->slots, slot, slot);
    if (after <= before || after <= x->target_bytes)
        return true;
    incremental_rollback(x->slots, mark);
    return false;
}

static bool is_dearer_than_next(const GreedySearch *x, double price)
{
    return x->heap.len > 0 && price > x->heap.data[0].price;
}

/* Its price has risen past the next one's, beyond what bent prices leave open. */
static bool has_risen(const GreedySearch *x, double price, double offered)
{
    double slack = x->noise > 0 ? 1.5 : 1 + 1e-9;
    return price > offered * slack && is_dearer_than_next(x, price);
}

static void take_cheapest(GreedySearch *x)
{
    GreedyDrop d = drops_pop(x, x->heap.data, x->heap.len--);
    double price;
    int slot = price_drop(x, d.node, d.after, &price);
    if (slot < 0)
        return;
    if (d.alone)
        price *= greedy_bend(x, d.node);
    if (d.alone ? is_dearer_than_next(x, price) : has_risen(x, price, d.price)) {
        push_drop(x, (GreedyDrop){price, d.node, d.after, false});
        return;
    }
    if (!make_drop(x, slot))
        return;
    x->added.len = 0;
    for (size_t i = 0; i < x->chain.len; i++)
        vec_push(x->pool, &x->added, x->chain.data[i]);
    offer_behind(x, slot);
}

bool greedy_reduce(GreedySearch *x)
{
    int64_t until = incremental_work(x->slots) + x->most_work;
    for (int round = 0; round < MAX_ROUNDS && incremental_peak(x->slots, NULL) > x->target_bytes;
         round++) {
        find_stretch(x);
        offer_all(x);
        while (x->heap.len > 0 && incremental_peak(x->slots, NULL) > x->target_bytes &&
               incremental_work(x->slots) < until)
            take_cheapest(x);
    }
    return incremental_peak(x->slots, NULL) <= x->target_bytes;
}
