/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/point_depend.h"

typedef struct Depend {
    const PointProgram *p;
    int64_t most;
    PointDepend to;
} Depend;

static unsigned char access_dependence(const PointProgram *p, const PointAccess *a)
{
    int last = p->rank - 1;
    unsigned char on = a->stride[last] ? ON_COLUMN : 0;
    for (int d = 0; d < last; d++)
        if (a->stride[d])
            on |= ON_ROW;
    return on;
}

static void find_dependences(Depend *e)
{
    for (size_t k = 0; k < e->p->instr.len; k++) {
        const PointInstr *i = &e->p->instr.data[k];
        unsigned char on = 0;
        if (point_has_access(i))
            on = access_dependence(e->p, &e->p->access.data[i->access]);
        for (int n = 0; n < i->n_in; n++)
            on |= e->to.on[i->in[n]];
        e->to.on[k] = on;
    }
}

/* A computed f32 value of columns that is read by something that also depends on rows. */
static void hoist(Depend *e, int reg)
{
    const PointInstr *i = &e->p->instr.data[reg];
    if (e->to.on[reg] == ON_COLUMN && !point_has_access(i) && i->dtype == DTYPE_F32 &&
        !e->to.slot[reg] && e->to.n_slots < e->most)
        e->to.slot[reg] = ++e->to.n_slots;
}

static void find_hoisted(Depend *e)
{
    for (size_t k = 0; k < e->p->instr.len; k++)
        for (int n = 0; e->to.on[k] == ON_BOTH && n < e->p->instr.data[k].n_in; n++)
            hoist(e, e->p->instr.data[k].in[n]);
    for (size_t k = 0; k < e->p->store.len; k++)
        hoist(e, e->p->store.data[k].reg);
}

static void need(Depend *e, int reg)
{
    bool outside = e->to.on[reg] == 0 || (e->to.on[reg] == ON_ROW);
    if (e->to.needed[reg] || outside)
        return;
    e->to.needed[reg] = true;
    for (int n = 0; !e->to.slot[reg] && n < e->p->instr.data[reg].n_in; n++)
        need(e, e->p->instr.data[reg].in[n]);
}

static void find_needed(Depend *e)
{
    for (size_t k = 0; k < e->p->store.len; k++)
        need(e, e->p->store.data[k].reg);
}

PointDepend point_depend(Pool *pool, const PointProgram *p, int64_t most)
{
    size_t n = p->instr.len;
    Depend e = {p,
                most,
                {POOL_ARRAY(pool, n, unsigned char), POOL_ARRAY(pool, n, bool),
                 POOL_ARRAY(pool, n, int), 0}};
    find_dependences(&e);
    find_hoisted(&e);
    find_needed(&e);
    return e.to;
}
