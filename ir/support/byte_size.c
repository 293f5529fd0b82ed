/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/byte_size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct Unit {
    const char *name;
    double bytes;
} units[] = {{"", 1},
             {"B", 1},
             {"kB", 1e3},
             {"KB", 1e3},
             {"MB", 1e6},
             {"GB", 1e9},
             {"TB", 1e12},
             {"KiB", 1024.0},
             {"MiB", 1048576.0},
             {"GiB", 1073741824.0},
             {"TiB", 1099511627776.0},
             {"K", 1024.0},
             {"M", 1048576.0},
             {"G", 1073741824.0},
             {"T", 1099511627776.0},
             {NULL, 0}};

static bool parse_unit(const char *text, double *bytes)
{
    for (const struct Unit *u = units; u->name; u++)
        if (strcmp(text, u->name) == 0) {
            *bytes = u->bytes;
            return true;
        }
    return false;
}

const char *byte_size_skip_number(const char *text)
{
    size_t whole = strspn(text, "0123456789"), part = 0;
    const char *end = text + whole;
    if (*end == '.') {
        part = strspn(end + 1, "0123456789");
        end += 1 + part;
    }
    return whole + part > 0 ? end : NULL;
}

bool byte_size_parse(const char *text, double *bytes, bool *bare)
{
    double unit;
    const char *rest = byte_size_skip_number(text);
    if (!rest || !parse_unit(rest, &unit))
        return false;
    *bytes = strtod(text, NULL) * unit;
    *bare = !*rest;
    return *bytes < 9e18 && !(*bare && strchr(text, '.'));
}

const char *bytes_text(Pool *pool, int64_t bytes)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024)
        return pool_printf(pool, "%lldB", (long long)bytes);
    double amount = (double)bytes / 1024;
    int k = 0;
    for (; k < 3 && amount >= 1024; k++)
        amount /= 1024;
    double tenths = ceil(amount * 10);
    return fmod(tenths, 10) != 0 ? pool_printf(pool, "%.1f%s", tenths / 10, names[k])
                                 : pool_printf(pool, "%.0f%s", tenths / 10, names[k]);
}

const char *bytes_apart_text(Pool *pool, int64_t bytes, int64_t other)
{
    const char *text = bytes_text(pool, bytes);
    return bytes != other && strcmp(text, bytes_text(pool, other)) == 0
               ? pool_printf(pool, "%lld bytes", (long long)bytes)
               : text;
}
