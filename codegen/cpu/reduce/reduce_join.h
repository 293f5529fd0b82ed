/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The second call of a chunked reduction: joins the results of its chunks, in order. */
#ifndef SCRIMP_CODEGEN_CPU_REDUCE_REDUCE_JOIN_H
#define SCRIMP_CODEGEN_CPU_REDUCE_REDUCE_JOIN_H

#include "codegen/forms/reduction.h"

void reduce_join_call(Lowering *l, const Node *n, const ReduceDesc *d);

#endif
