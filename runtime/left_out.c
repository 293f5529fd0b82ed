/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/left_out.h"

#include <stdio.h>
#include <stdlib.h>

bool left_out_open(LeftOutList *list, int64_t n, int64_t known, RtError *err)
{
    int64_t limit = n / LEFT_OUT_PART;
    limit = limit < LEFT_OUT_LEAST ? LEFT_OUT_LEAST : limit;
    limit = limit > LEFT_OUT_MOST ? LEFT_OUT_MOST : limit;
    *list = (LeftOutList){.limit = limit, .room = known + limit + 1};
    list->is = rt_alloc(n, sizeof *list->is, err);
    list->item = list->is ? rt_alloc(list->room, sizeof *list->item, err) : NULL;
    return list->item != NULL;
}

void left_out_close(LeftOutList *list)
{
    free(list->is);
    free(list->item);
    *list = (LeftOutList){0};
}

void left_out_know(LeftOutList *list, int64_t example)
{
    if (list->is[example])
        return;
    list->is[example] = true;
    list->item[list->n++] = (LeftOut){.example = example};
    list->known = list->told = list->n;
}

bool left_out_find(LeftOutList *list, int64_t example, const char *why)
{
    if (list->is[example])
        return true;
    if (list->n == list->room)
        return false;
    list->is[example] = true;
    LeftOut *item = &list->item[list->n++];
    item->example = example;
    snprintf(item->why, sizeof item->why, "%s", why);
    return list->n - list->known <= list->limit;
}
