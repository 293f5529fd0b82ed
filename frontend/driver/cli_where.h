/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where in a model several operations are, in a few words. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_WHERE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_WHERE_H

#include "ir/graph.h"

/* "h.*.attn:16, ln_f:36": the paths of n places, with their lines where `lines` is set, in the
 * order of the source.  Numbers that differ are stars; what are too many then is named by its first
 * part alone, "layer1.*".  "" for none. */
const char *where_text(Pool *pool, const Loc *loc, int n, bool lines);

/* "h.3.attn" as "h.*.attn". */
const char *path_with_stars(Pool *pool, const char *path);

#endif
