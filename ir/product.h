/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of a matrix product's sum, for everything that has to know: shapes, passes, kernels. */
#ifndef SCRIMP_IR_PRODUCT_H
#define SCRIMP_IR_PRODUCT_H

/* A chain of multiply-adds has so many steps at most: its rounding error grows with its length. */
enum { PRODUCT_CHAIN = 256 };

#endif
