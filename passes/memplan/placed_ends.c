/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/memplan/placed_ends.h"

#include "ir/support/bug.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 8 }; /* bytes of `meets` seen at once */
enum { SCANNED_A_STEP = 16, MOVES_A_STEP = 32, SEARCH_STEPS = 10, SORT_STEPS = 20 };

static EndList list_new(Pool *pool, size_t n)
{
    return (EndList){POOL_ARRAY(pool, n + 1, int64_t), POOL_ARRAY(pool, n + 1, int16_t),
                     POOL_ARRAY(pool, n + 1, int16_t), POOL_ARRAY(pool, n + 1, int), 0};
}

PlacedEnds *placed_new(Pool *pool, const PlaceProblem *p, PlaceWork *work)
{
    PlacedEnds *s = POOL_NEW(pool, PlacedEnds);
    size_t n = (size_t)p->n;
    if (p->n_slots > INT16_MAX)
        BUG("%d slots do not fit in 16 bits", p->n_slots);
    *s = (PlacedEnds){.p = p, .work = work, .bottom = list_new(pool, n), .top = list_new(pool, n)};
    s->meets = POOL_ARRAY(pool, n + WORD, uint8_t);
    s->item = POOL_ARRAY(pool, n + 1, Ranked);
    return s;
}

static void set_entry(const PlacedEnds *s, EndList *l, int k, int64_t at, int b)
{
    l->at[k] = at;
    l->start[k] = (int16_t)s->p->start[b];
    l->end[k] = (int16_t)s->p->end[b];
    l->buffer[k] = b;
}

static void sort_list(PlacedEnds *s, EndList *l, int n)
{
    sort_ranked(s->item, (size_t)n);
    for (int i = 0; i < n; i++)
        set_entry(s, l, i, s->item[i].key, s->item[i].item);
    l->n = n;
    s->work->done += (int64_t)SORT_STEPS * n;
}

void placed_load(PlacedEnds *s, const int *buffers, int n, const int64_t *offset)
{
    for (int i = 0; i < n; i++)
        s->item[i] = (Ranked){offset[buffers[i]], buffers[i]};
    sort_list(s, &s->bottom, n);
    for (int i = 0; i < n; i++)
        s->item[i] = (Ranked){offset[buffers[i]] + s->p->size[buffers[i]], buffers[i]};
    sort_list(s, &s->top, n);
}

/* Where the end is in the list, or belongs. */
static int position_of(const EndList *l, int64_t at, int b)
{
    int lo = 0, n = l->n;
    while (n > 0) {
        int half = n / 2, mid = lo + half;
        bool below = l->at[mid] < at || (l->at[mid] == at && l->buffer[mid] < b);
        lo = below ? mid + 1 : lo;
        n = below ? n - half - 1 : half;
    }
    return lo;
}

/* Entries from `from` on are moved to `to` and behind it. */
static void move_entries(PlacedEnds *s, EndList *l, int from, int to)
{
    size_t n = (size_t)(l->n - from);
    memmove(l->at + to, l->at + from, n * sizeof *l->at);
    memmove(l->start + to, l->start + from, n * sizeof *l->start);
    memmove(l->end + to, l->end + from, n * sizeof *l->end);
    memmove(l->buffer + to, l->buffer + from, n * sizeof *l->buffer);
    l->n += to - from;
    s->work->done += SEARCH_STEPS + (int64_t)n / MOVES_A_STEP;
}

static void insert(PlacedEnds *s, EndList *l, int64_t at, int b)
{
    int k = position_of(l, at, b);
    move_entries(s, l, k, k + 1);
    set_entry(s, l, k, at, b);
}

static void delete (PlacedEnds *s, EndList *l, int64_t at, int b)
{
    int k = position_of(l, at, b);
    move_entries(s, l, k + 1, k);
}

void placed_add(PlacedEnds *s, int b, int64_t offset)
{
    insert(s, &s->bottom, offset, b);
    insert(s, &s->top, offset + s->p->size[b], b);
}

void placed_remove(PlacedEnds *s, int b, int64_t offset)
{
    delete (s, &s->bottom, offset, b);
    delete (s, &s->top, offset + s->p->size[b], b);
}

int placed_meeting(PlacedEnds *s, const EndList *list, int b, int *position)
{
    const int16_t *start = list->start, *end = list->end;
    int16_t from = (int16_t)s->p->start[b], to = (int16_t)s->p->end[b];
    uint8_t *meets = s->meets;
    int n = list->n, found = 0;
    for (int k = 0; k < n; k++) /* no branch: vector instructions */
        meets[k] = (start[k] < to) & (end[k] > from);
    memset(meets + n, 0, WORD);
    for (int k = 0; k < n; k += WORD) {
        uint64_t word;
        memcpy(&word, meets + k, sizeof word);
        for (int j = k; word != 0 && j < k + WORD; j++) {
            position[found] = j;
            found += meets[j];
        }
    }
    s->work->done += n / SCANNED_A_STEP + found;
    return found;
}
