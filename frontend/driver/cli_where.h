/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where in a model several operations are, in a few words. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_WHERE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_WHERE_H

#include "ir/graph.h"

#include <jansson.h>

/* "h.*.attn:16, ln_f:36": the paths of n places, with their lines where `lines` is set, in the
 * order of the source.  Numbers that differ are stars; what are too many then is named by its first
 * part alone, "layer1.*".  "" for none. */
const char *where_text(Pool *pool, const Loc *loc, int n, bool lines);

/* ", blocks.scrimp:12 in h.3.attn": where one operation of a graph is; "" for nowhere. */
const char *place_text(Pool *pool, const Graph *g, const Loc *loc);
/* The same for programs: sets path, line and, of a line in a file that the model imports, file;
 * null for none. */
void place_json(json_t *object, const Loc *loc);

/* "h.3.attn" as "h.*.attn". */
const char *path_with_stars(Pool *pool, const char *path);

#endif
