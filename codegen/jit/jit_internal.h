/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the two files that know libgccjit share: jit.c (contexts, functions, control) and
 * jit_values.c (scalars, vectors, memory).  Facts about version 12 that shaped them are in
 * docs/cpu.md. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_INTERNAL_H
#define SCRIMP_CODEGEN_JIT_JIT_INTERNAL_H

#include "codegen/jit/jit.h"
#include "ir/support/map.h"
#include "ir/support/pool.h"

#include <libgccjit.h>

enum { JIT_MAX_PARAMS = 24, JIT_MAX_BUFS = 128, JIT_MAX_LANES = 16 };

/* A function under construction.  Buffers are loaded in `entry`, which jumps to the code proper
 * when the function ends, so a load made inside a loop is still done once. */
typedef struct JitFrame {
    struct JitFrame *outer;
    gcc_jit_function *function;
    gcc_jit_block *entry, *first, *block;
    gcc_jit_param *param[JIT_MAX_PARAMS];
    int n_params;
    int bufs; /* which parameter is the buffer table; -1: none */
    bool kernel;
    struct {
        JitType type;
        gcc_jit_lvalue *var;
    } buf[JIT_MAX_BUFS];
} JitFrame;

struct Jit {
    gcc_jit_context *ctx;
    const Target *target;
    Pool *pool;
    JitTypes t;
    gcc_jit_type *vf_unaligned, *vi_unaligned, *vu_unaligned, *pp_char;
    gcc_jit_type *vh_unaligned;
    JitFrame *frame;
    Map functions;
    int n_names;
    bool rounds_products;
    uint64_t bf16; /* buffers, a bit each */
};

/* The function under construction; a bug when there is none. */
JitFrame *jit_frame(const Jit *j);
/* A name that no other local, block or parameter of the context has. */
const char *jit_unique_name(Jit *j, const char *hint);

#endif
