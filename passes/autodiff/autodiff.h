/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The backward walk (gradients.c).  Called by the pass (autodiff.c). */
#ifndef SCRIMP_PASSES_AUTODIFF_AUTODIFF_H
#define SCRIMP_PASSES_AUTODIFF_AUTODIFF_H

#include "ir/graph.h"

/* Appends the nodes that compute the gradient of `loss`, a scalar, times `seed`, a scalar, with
 * respect to each of wrt. grad[i]: VALUE_NONE, or a value of the same type that the gradient is
 * added to; on return the gradient, or as it was when the loss does not depend on wrt[i].  Values
 * of the graph keep their ids.  Returns NULL, or what has no gradient: a message for the user. */
const char *autodiff_gradients(Graph *g, ValueId loss, ValueId seed, const ValueId *wrt, int n_wrt,
                               ValueId *grad);

/* The same for several results, of any shape: the sum over them of result times seed, which has its
 * type; a seed may be VALUE_NONE. */
const char *autodiff_products(Graph *g, const ValueId *results, const ValueId *seeds, int n,
                              const ValueId *wrt, int n_wrt, ValueId *grad);

#endif
