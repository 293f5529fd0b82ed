/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/view_lives.h"

static void add_load(ViewLives *l, ValueId root, Life life, int64_t sign)
{
    int64_t bytes = sign * memplan_value_bytes(l->g, root);
    int end = life.last + !life.overwritten;
    for (int t = life.birth; t < end; t++)
        l->m.load[t] += bytes;
    if (end > life.birth)
        l->area += (double)bytes * (end - life.birth);
}

static int64_t largest_load(const ViewLives *l)
{
    int64_t most = 0;
    for (int t = 0; t < l->m.n_slots; t++)
        most = l->m.load[t] > most ? l->m.load[t] : most;
    return most;
}

ViewLives *view_lives_new(Pool *scratch, const Graph *g)
{
    ViewLives *l = POOL_NEW(scratch, ViewLives);
    l->g = g;
    l->scratch = scratch;
    l->m = memplan_lives(scratch, g);
    l->life = POOL_ARRAY(scratch, g->values.len + 1, Life);
    for (size_t v = 0; v < g->values.len; v++) {
        l->life[v].birth = l->m.birth[v];
        l->life[v].last = l->m.last[v];
    }
    for (size_t v = 0; v < g->values.len; v++)
        if (l->m.over[v] != VALUE_NONE)
            l->life[l->m.over[v]].overwritten = true;
    l->peak_bytes = largest_load(l);
    return l;
}

void view_lives_set(ViewLives *l, ValueId root, Life life)
{
    OldLife old = {root, l->life[root]};
    vec_push(l->scratch, &l->old, old);
    add_load(l, root, old.life, -1);
    add_load(l, root, life, 1);
    l->life[root] = life;
}

void view_lives_remove(ViewLives *l, ValueId root)
{
    ValueId under = l->m.over[root];
    if (under != VALUE_NONE && l->life[under].overwritten) {
        Life whole = l->life[under];
        whole.overwritten = false;
        view_lives_set(l, under, whole);
    }
    view_lives_set(l, root, (Life){.birth = 0, .last = -1});
}

/* What reads it later than all, or as late as the one that would write over it, keeps it whole. */
void view_lives_extend(ViewLives *l, ValueId root, int slot)
{
    Life life = l->life[root];
    if (slot < life.last)
        return;
    life.last = slot;
    life.overwritten = false;
    view_lives_set(l, root, life);
}

void view_lives_undo(ViewLives *l)
{
    while (l->old.len > 0) {
        OldLife old = l->old.data[--l->old.len];
        add_load(l, old.root, l->life[old.root], -1);
        add_load(l, old.root, old.life, 1);
        l->life[old.root] = old.life;
    }
    l->area = 0;
}

bool view_lives_keep(ViewLives *l, bool saves_copy)
{
    int64_t peak = largest_load(l);
    bool same = saves_copy ? l->area <= 0 : l->area < 0;
    if (peak > l->peak_bytes || (peak == l->peak_bytes && !same)) {
        view_lives_undo(l);
        return false;
    }
    l->peak_bytes = peak;
    l->old.len = 0;
    l->area = 0;
    return true;
}
