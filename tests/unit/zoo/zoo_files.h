/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tests of the example networks share. */
#ifndef SCRIMP_TESTS_ZOO_FILES_H
#define SCRIMP_TESTS_ZOO_FILES_H

#include "csv.h"
#include "passes/paper_graph/paper_graph.h"
#include "unit/frontend/lower_text.h"

static Pool *pool;

enum { MAX_DEFS = 7 };

/* "depth=50 aux=false", for a batch of one. */
static inline void read_defs(const char *text, const char *defs[MAX_DEFS + 1])
{
    int n = 0;
    char *rest = pool_strdup(pool, text), *save = NULL;
    defs[n++] = "N=1";
    for (char *d = strtok_r(rest, " ", &save); d; d = strtok_r(NULL, " ", &save)) {
        CHECK_MSG(n < MAX_DEFS, "too many options: %s", text);
        if (n < MAX_DEFS)
            defs[n++] = d;
    }
    defs[n] = NULL;
}

static inline void check_int(const char *network, const char *what, long long ours,
                             long long wanted)
{
    CHECK_MSG(ours == wanted, "%s has %lld %s, not %lld", network, ours, what, wanted);
}

#endif
