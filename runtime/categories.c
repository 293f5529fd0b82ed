/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/categories.h"

#include <stdlib.h>
#include <string.h>

void categories_free(Categories *c)
{
    free(c->start);
    free(c->text);
    free(c->slot);
    *c = (Categories){0};
}

const char *category_text(const Categories *c, int32_t i, size_t *n)
{
    *n = (size_t)(c->start[i + 1] - c->start[i]);
    return c->text + c->start[i];
}

/* FNV-1a. */
static uint64_t hash(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    return h ^ h >> 32;
}

/* Where a value is in the table, or would be. */
static int64_t place(const Categories *c, const char *text, size_t n)
{
    int64_t at = (int64_t)(hash(text, n) & (uint64_t)(c->slots - 1));
    for (;; at = (at + 1) & (c->slots - 1)) {
        size_t length;
        if (!c->slot[at])
            return at;
        const char *there = category_text(c, c->slot[at] - 1, &length);
        if (length == n && memcmp(there, text, n) == 0)
            return at;
    }
}

int32_t categories_find(const Categories *c, const char *text, size_t n)
{
    return c->slots ? c->slot[place(c, text, n)] - 1 : -1;
}

static bool grow_table(Categories *c, RtError *err)
{
    if (2 * (int64_t)(c->n + 1) <= c->slots)
        return true;
    int64_t slots = c->slots ? 2 * c->slots : 64;
    int32_t *slot = rt_alloc(slots, sizeof *slot, err);
    if (!slot)
        return false;
    free(c->slot);
    c->slot = slot;
    c->slots = slots;
    for (int32_t i = 0; i < c->n; i++) {
        size_t n;
        const char *text = category_text(c, i, &n);
        slot[place(c, text, n)] = i + 1;
    }
    return true;
}

static bool grow_values(Categories *c, size_t n, RtError *err)
{
    if (c->n == c->room) {
        int32_t room = c->room ? 2 * c->room : 32;
        int64_t *start = rt_alloc(room + 1, sizeof *start, err);
        if (!start)
            return false;
        if (c->start)
            memcpy(start, c->start, ((size_t)c->n + 1) * sizeof *start);
        free(c->start);
        c->start = start;
        c->room = room;
    }
    int64_t used = c->start[c->n];
    if (used + (int64_t)n <= c->text_room)
        return true;
    int64_t room = 2 * (used + (int64_t)n);
    char *text = rt_alloc(room, 1, err);
    if (!text)
        return false;
    if (used)
        memcpy(text, c->text, (size_t)used);
    free(c->text);
    c->text = text;
    c->text_room = room;
    return true;
}

int32_t categories_add(Categories *c, const char *text, size_t n, RtError *err)
{
    if (!grow_table(c, err))
        return -1;
    int64_t at = place(c, text, n);
    if (c->slot[at])
        return c->slot[at] - 1;
    int64_t used = c->n ? c->start[c->n] : 0;
    if (c->n == CATEGORIES_MAX || used + (int64_t)n > CATEGORIES_MAX_BYTES) {
        rt_error(err, "more than %d different values, or %d MiB of them: number them in the file",
                 CATEGORIES_MAX, CATEGORIES_MAX_BYTES >> 20);
        return -1;
    }
    if (!grow_values(c, n, err))
        return -1;
    memcpy(c->text + used, text, n);
    c->start[c->n + 1] = used + (int64_t)n;
    c->slot[at] = ++c->n;
    return c->n - 1;
}

/* ---- order ---- */

typedef struct Item {
    const char *text;
    size_t n;
    int64_t number; /* when all are */
    int32_t old;
} Item;

static bool whole_number(Item *item)
{
    size_t sign = item->n && item->text[0] == '-', n = item->n - sign;
    if (n < 1 || n > 18)
        return false;
    item->number = 0;
    for (size_t i = sign; i < item->n; i++) {
        if (item->text[i] < '0' || item->text[i] > '9')
            return false;
        item->number = 10 * item->number + (item->text[i] - '0');
    }
    item->number = sign ? -item->number : item->number;
    return true;
}

static int by_text(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int by_number(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    int order = (x->number > y->number) - (x->number < y->number);
    return order ? order : by_text(a, b); /* 1 and 01 */
}

bool categories_sort(Categories *c, int32_t *number, RtError *err)
{
    Item *item = rt_alloc(c->n + 1, sizeof *item, err);
    Categories sorted = {0};
    bool numbers = true, ok = item != NULL;
    for (int32_t i = 0; ok && i < c->n; i++) {
        item[i].text = category_text(c, i, &item[i].n);
        item[i].old = i;
        numbers = whole_number(&item[i]) && numbers;
    }
    if (ok)
        qsort(item, (size_t)c->n, sizeof *item, numbers ? by_number : by_text);
    for (int32_t i = 0; ok && i < c->n; i++) {
        number[item[i].old] = i;
        ok = categories_add(&sorted, item[i].text, item[i].n, err) >= 0;
    }
    free(item);
    if (ok) {
        categories_free(c);
        *c = sorted;
    } else {
        categories_free(&sorted);
    }
    return ok;
}
