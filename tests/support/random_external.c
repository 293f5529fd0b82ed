/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/random_external.h"

typedef struct ExternalDraw {
    Pool *pool;
    Random *r;
    ExternalGraph *g;
    ExternalRef value[EXTERNAL_MOST]; /* that can still be read */
    int n_values, n_made;
    bool walks_back;
} ExternalDraw;

static bool draw_one_in(ExternalDraw *d, int n)
{
    return random_below(d->r, n) == 0;
}

/* Node n of n_nodes reads an output of the node that is as far from the beginning as n is from the
 * end, if one can still be read. */
static void draw_walk_back(ExternalDraw *d, ExternalNode *node, int n_nodes)
{
    int of = n_nodes - 1 - d->g->n_nodes;
    for (int k = 0; k < d->n_values && of < d->g->n_nodes; k++)
        if (d->value[k].node == of) {
            node->in[node->n_in++] = d->value[k];
            return;
        }
}

static void draw_inputs(ExternalDraw *d, ExternalNode *node, int n_nodes)
{
    node->in = POOL_ARRAY(d->pool, 5, ExternalRef);
    if (d->walks_back)
        draw_walk_back(d, node, n_nodes);
    if (d->walks_back && d->n_values > 0) {
        node->in[node->n_in++] = d->value[d->n_values - 1];
        return;
    }
    for (int k = random_below(d->r, 4); k > 0 && d->n_values > 0; k--)
        node->in[node->n_in++] = d->value[random_below(d->r, d->n_values)];
}

/* Of any value that is left, read by this node or not. */
static void draw_overwrites(ExternalDraw *d, ExternalNode *node)
{
    node->overwrites = POOL_ARRAY(d->pool, 2, ExternalRef);
    bool once = draw_one_in(d, 2);
    for (int k = draw_one_in(d, 4) + draw_one_in(d, 12); k > 0 && d->n_values > 0; k--) {
        int gone = random_below(d->r, d->n_values);
        node->overwrites[node->n_overwrites++] = d->value[gone];
        node->rerun &= !once;
        d->value[gone] = d->value[--d->n_values];
    }
}

static void draw_outputs(ExternalDraw *d, ExternalNode *node, int most_made)
{
    int n = draw_one_in(d, 10) ? 0 : draw_one_in(d, 2) ? 2 : draw_one_in(d, 12) ? 3 : 1;
    node->out = POOL_ARRAY(d->pool, 3, ExternalOutput);
    for (; n > 0 && d->n_made < most_made; n--, d->n_made++) {
        d->value[d->n_values++] = (ExternalRef){d->g->n_nodes, node->n_out};
        node->out[node->n_out++] =
            (ExternalOutput){.bytes = draw_one_in(d, 8) ? 0 : 1 + random_below(d->r, 9),
                             .keep = draw_one_in(d, 12),
                             .persistent = draw_one_in(d, 4)};
    }
}

ExternalGraph *random_external(Pool *pool, Random *r, int n_nodes, bool forward, int most_values)
{
    ExternalDraw d = {.pool = pool, .r = r, .g = POOL_NEW(pool, ExternalGraph)};
    *d.g = (ExternalGraph){.forward = forward};
    d.walks_back = random_below(r, 2);
    d.g->node = POOL_ARRAY(pool, (size_t)n_nodes, ExternalNode);
    for (; d.g->n_nodes < n_nodes; d.g->n_nodes++) {
        ExternalNode *node = &d.g->node[d.g->n_nodes];
        *node = (ExternalNode){.time = draw_one_in(&d, 4) ? 0 : 1 + random_below(r, 9),
                               .workspace = draw_one_in(&d, 4) ? random_below(r, 8) : 0,
                               .rerun = !draw_one_in(&d, 7)};
        draw_inputs(&d, node, n_nodes);
        if (!forward)
            draw_overwrites(&d, node);
        draw_outputs(&d, node, most_values);
    }
    return d.g;
}

void make_extreme(ExternalGraph *g, Random *r)
{
    static const double units[] = {0x1p-1074, 1e-310, 1e-301, 1e-295, 1e-9, 1, 1e150, 1e297};
    enum { UNITS = sizeof units / sizeof *units };
    bool mixed = random_below(r, 2), large = random_below(r, 2);
    double unit = units[random_below(r, UNITS)];
    for (int n = 0; n < g->n_nodes; n++) {
        ExternalNode *node = &g->node[n];
        node->time *= mixed ? units[random_below(r, UNITS)] : unit;
        node->workspace <<= large ? 51 : 0;
        for (int k = 0; k < node->n_out && large; k++)
            node->out[k].bytes = (node->out[k].bytes << 51) + random_below(r, 3);
    }
}
