/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A temporary folder of this process: objects to be linked, the compiler's own temporary files,
 * results that are not cached.  scratch_close removes it; signals that would end the program wait
 * until then (hold.h), and what a killed process left is removed by the next one. */
#ifndef SCRIMP_CODEGEN_BUILD_SCRATCH_H
#define SCRIMP_CODEGEN_BUILD_SCRATCH_H

#include "codegen/build/hold.h"
#include "ir/support/pool.h"

typedef struct Scratch {
    const char *dir; /* mode 0700, below $TMPDIR or /tmp */
    int lock;        /* the open folder, locked as long as this process or a child of it lives */
    Hold hold;
} Scratch;

bool scratch_open(Pool *pool, Scratch *out, const char **error);
void scratch_close(const Scratch *s);
/* DIR/NAME.SUFFIX */
const char *scratch_path(Pool *pool, const Scratch *s, const char *name, const char *suffix);

#endif
