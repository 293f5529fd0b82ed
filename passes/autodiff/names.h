/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of values while a step is built. */
#ifndef SCRIMP_PASSES_AUTODIFF_NAMES_H
#define SCRIMP_PASSES_AUTODIFF_NAMES_H

#include "ir/graph.h"

/* Gives a value another name, made unique.  The old one stays taken until autodiff_names_rebuild.
 */
void autodiff_rename(Graph *g, ValueId v, const char *name);
void autodiff_names_rebuild(Graph *g);

#endif
