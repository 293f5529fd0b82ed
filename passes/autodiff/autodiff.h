/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between the parts of autodiff: the backward walk (gradients.c) and the pass (autodiff.c). */
#ifndef SCRIMP_PASSES_AUTODIFF_AUTODIFF_H
#define SCRIMP_PASSES_AUTODIFF_AUTODIFF_H

#include "passes/pass.h"

/* Gives a value another name, made unique.  The old one stays taken until autodiff_names_rebuild.
 */
void autodiff_rename(Graph *g, ValueId v, const char *name);
void autodiff_names_rebuild(Graph *g);

#endif
