/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which variant of its family computes a kernel: other tiles, blocks or tasks, never another order
 * of a sum.  What was measured to be fastest on a machine is a table from a kernel's problem (its
 * description before anything is decided) to a variant; without an entry, and without a table, it
 * is variant 0, the default. */
#ifndef SCRIMP_CODEGEN_BUILD_TUNING_H
#define SCRIMP_CODEGEN_BUILD_TUNING_H

#include "ir/support/map.h"

/* Kernels that have variants in common. */
typedef struct KernelFamily {
    const char *name;                       /* a word */
    const char *(*variant_name)(int index); /* a word; NULL: there are no more.  0 is the default */
} KernelFamily;

/* How many, the default included. */
int family_variants(const KernelFamily *f);
/* The variant that is called so, or -1. */
int family_find(const KernelFamily *f, const char *name);

typedef struct Tuning {
    Map chosen; /* problem -> variant */
    int all;    /* above 0: this variant of every family that has it, whatever was chosen */
} Tuning;

/* What a problem is called in the table: "FAMILY KEY".  key: that of its description. */
const char *tuning_problem(Pool *pool, const KernelFamily *f, const char *key);
/* tuning NULL: the default. */
int tuning_variant(const Tuning *tuning, const KernelFamily *f, const char *problem);

#endif
