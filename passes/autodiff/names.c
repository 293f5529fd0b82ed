/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/autodiff/names.h"

void autodiff_rename(Graph *g, ValueId v, const char *name)
{
    const char *unique = graph_unique_name(g, name);
    graph_value(g, v)->name = unique;
    map_set(&g->names, unique, v);
}

void autodiff_names_rebuild(Graph *g)
{
    g->names = map_new(g->pool);
    for (size_t i = 0; i < g->values.len; i++)
        map_set(&g->names, g->values.data[i].name, i);
}
