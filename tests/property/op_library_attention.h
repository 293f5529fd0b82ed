/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random attentions of the kind that a library computes: several operations in one case, whose
 * result is what they give, one behind the other. */
#ifndef SCRIMP_TESTS_PROPERTY_OP_LIBRARY_ATTENTION_H
#define SCRIMP_TESTS_PROPERTY_OP_LIBRARY_ATTENTION_H

#include "op_case.h"

/* The result. */
OpCaseMake library_attention;
/* The logarithms of the sums of exponentials. */
OpCaseMake library_statistics;
/* Gradients, from what the forward operation left; so many heads that they are several calls. */
OpCaseMake library_attention_grad, library_attention_parts;

#endif
