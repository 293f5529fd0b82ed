/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/zoo_files.h"

#include "check.h"
#include "passes/paper_graph/paper_graph.h"
#include "tests/support/csv.h"
#include "tests/support/elaborate_text.h"

#include <string.h>

void read_defs(Pool *pool, const char *text, const char *defs[MAX_DEFS + 1])
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

void check_int(const char *network, const char *what, long long ours, long long wanted)
{
    CHECK_MSG(ours == wanted, "%s has %lld %s, not %lld", network, ours, what, wanted);
}
