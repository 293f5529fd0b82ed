/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From nodes to kernels.  Every rule of a backend (ops.def, column `cpu`) looks at a node and adds
 * calls; a call names a kernel by a key that says everything its code depends on, so that equal
 * kernels are compiled once, in parallel child processes, and cached on disk. */
#ifndef SCRIMP_CODEGEN_BUILD_KERNEL_H
#define SCRIMP_CODEGEN_BUILD_KERNEL_H

#include "codegen/build/spans.h"
#include "codegen/build/tuning.h"
#include "codegen/jit/target.h"
#include "ir/graph.h"
#include "ir/library_use.h"
#include "ir/loop.h"
#include "ir/support/strbuf.h"
#include "passes/memplan/memplan.h"
#include "runtime/abi.h"

#include <stddef.h>
#include <stdio.h>

typedef struct Jit Jit;

/* Emits the body of one kernel; runs in a child process.  desc is the POD the rule made. */
typedef void KernelEmit(Jit *jit, const void *desc);

/* Appends the text of one kernel, for compilers that run when the step is built; symbol: its name.
 */
typedef void KernelText(StrBuf *out, const char *symbol, const void *desc);

/* The description of a kernel is its identity: plain data whose bytes make the key, so that no
 * field can be forgotten.  Equal descriptions must have equal bytes: KERNEL_DESC(T) behind the
 * definition of T, which stands behind KERNEL_DESC_BEGIN, allows no padding.  What is no plain data
 * (an epilogue) comes last in T, and adds to the key itself. */
#define KERNEL_DESC_BEGIN                                                                          \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wpadded\"")
#define KERNEL_DESC(T) _Pragma("GCC diagnostic pop") enum { T##_HAS_NO_PADDING = 1 };
/* Bytes of a whole description, and of those before its first field that is no plain data. */
#define DESC_BYTES(T)               (sizeof(T) * T##_HAS_NO_PADDING)
#define DESC_BYTES_BEFORE(T, field) (offsetof(T, field) * T##_HAS_NO_PADDING)
/* Appends the name of a kernel and the bytes of its description. */
void desc_key(StrBuf *key, const char *what, const void *desc, size_t bytes);

/* A fused group has at most 24 inputs and 48 operations, each of which may bring numbers. */
enum { CALL_MAX_BUFS = 128 };

/* What a call hands to its kernel: a value's storage, or the node's workspace, plus a byte offset;
 * or a number.  Offsets and numbers are no part of the kernel: calls that differ in them alone run
 * the same code. */
typedef struct CallBuf {
    ValueId value; /* VALUE_NONE: the node's workspace; CALL_NUMBER: `offset` itself (jit_number) */
    int64_t offset;
} CallBuf;
#define CALL_NUMBER (VALUE_NONE - 1)

/* What stands in the kernel's table for it; base: where the value's or workspace's storage is. */
static inline char *call_argument(const CallBuf *b, char *base)
{
    return b->value == CALL_NUMBER ? (char *)(intptr_t)b->offset : base + b->offset;
}

/* Calls of a loop run once a step of it.  Loops nest: level 0 is the outermost. */
enum { CALL_MAX_LOOPS = LOOP_MAX_LEVELS };
typedef struct CallLoops {
    int depth;        /* loops around the call, at least 1 */
    int begins, ends; /* of which the innermost so many begin with it, end with it */
    int64_t steps[CALL_MAX_LOOPS];
    const int64_t *stride; /* [buffer][level]: bytes from step to step */
} CallLoops;

typedef struct Call {
    const char
        *key; /* canonical text of (emit function, desc, element types): the kernel's identity */
    const char *label; /* short name for profiles: "gemm 1024x1024x1024" */
    KernelEmit *emit;  /* or text: as the backend has it */
    KernelText *text;
    const char *library; /* that runs it, where text is what it is asked to do; NULL: a kernel */
    const char *problem; /* of which it is a variant, or which it serves; NULL: it has none */
    const void *desc;
    int64_t n_tasks;
    int threads; /* text: of a task, which is a block of threads */
    const CallBuf *buf;
    int n_bufs;
    uint64_t bf16; /* bit i: buffer i, of the first 64, holds bf16; part of the key */
    double flops, bytes;
    CallSpans writes, reads;
    int made; /* the buffer, counted from 1, whose tensor is not in memory: what is around the
                 kernel makes it piece by piece; the next buffer is for asking what will be read
                 next: it has what the next piece is made of where this one is; 0: there is none */
    const ReadPieces *pieces; /* of it */
    const CallLoops *loops;   /* NULL: it runs once */
    Loc loc;                  /* of the node */
    NodeId node;
    bool contract; /* FMA contraction allowed (matrix products); else the kernel is compiled with
                      -ffp-contract=off */
    bool amx;      /* it uses matrix registers, for which a process has to ask */
} Call;

/* What a rule fills in, with room for buffers. */
typedef struct CallDraft {
    const char *key, *label;
    KernelEmit *emit;
    KernelText *text;
    const char *library;
    const void *desc;
    int64_t n_tasks;
    int threads;
    int n_bufs;
    CallBuf buf[CALL_MAX_BUFS];
    double flops, bytes;
    CallSpans writes, reads;
    int made;
    const ReadPieces *pieces;
    bool contract, amx;
} CallDraft;

/* Two numbers more, for what is around the kernel to fill in; the first one. */
static inline int call_add_numbers(CallDraft *call)
{
    call->buf[call->n_bufs] = call->buf[call->n_bufs + 1] = (CallBuf){CALL_NUMBER, 0};
    call->n_bufs += 2;
    return call->n_bufs - 2;
}

typedef struct Lowering Lowering;
typedef void LowerRule(Lowering *l, const Node *node);
/* Sources and views cost nothing. */
LowerRule lower_none;
/* The calls of a loop's body, once, for any backend. */
LowerRule lower_loop;

/* What makes code of calls. */
struct PointProgram;
typedef struct StepProgram StepProgram;
typedef struct Backend {
    const char *name;
    LowerRule *const *rules; /* by operation; a column of ops.def */
    /* Whether there is code for a node that has some on the CPU (codegen/build/supports.h); NULL:
     * always. */
    bool (*has_code)(const Node *n);
    /* Which library computes a node; NULL: none does. */
    LibraryRule *library;
    /* Gives the call of an element-wise program (codegen/forms/point.h) its code and its tasks. */
    void (*point)(const Lowering *l, CallDraft *call, const struct PointProgram *p);
    /* The cost model (passes/remat/model/cost.c) of steps for a device that is called so, for whom
     * nobody names another; NULL: the default. */
    const char *(*costs)(const char *device);
    /* --- code of a step --- */
    /* What kernels depend on beside their keys: the compiler, and what it compiles for.  NULL and
     * *error where there is no compiler. */
    const char *(*compiler)(Pool *pool, const char *arch, const char **error);
    /* The oldest driver that loads what it makes: 12000 for 12.0.  NULL: there is no driver. */
    int (*driver)(void);
    /* The name and version of a library, on which its kernels depend. */
    const char *(*library_version)(Pool *pool, const char *library);
    /* Compiles a kernel into a file.  Runs in a child process; false and a message on failure. */
    bool (*compile)(const StepProgram *p, int kernel, const char *path, char *message, size_t size);
    /* What it compiles, for people, and what the step's kernels include; NULL: nothing that is a
     * text. */
    const char *(*text)(Pool *pool, const StepProgram *p, int kernel);
    const char *(*included)(Pool *pool, const StepProgram *p);
    const KernelFamily *const *families; /* whose kernels have variants, behind the last NULL; NULL:
                                             none have */
    const char *object;                  /* what kernels are called in the cache: "o" */
    bool linked; /* kernels are part of the step's shared object, which calls them; else they are
                    loaded beside it, and the step names them by number */
} Backend;
extern const Backend cpu_backend, cuda_backend;

struct Lowering {
    Pool *pool;
    const Graph *graph;
    const Target *target;
    const Backend *backend;
    const Tuning *tuning; /* NULL: all kernels are the default */
    VEC(Call) calls;
    NodeId node;         /* being lowered */
    const char *problem; /* of which the calls that are added are; NULL: of none */
};

/* Has the code of a call's kernel emitted, or written.  Where a buffer holds bf16, jit_buf's
 * pointer to f32 becomes one to bf16 (codegen/jit/jit.h), and BF16_i is 1
 * (codegen/cuda/device/real.cuh): most kernels need not know. */
void call_emit(const Call *call, Jit *jit);
void call_text(const Call *call, StrBuf *out, const char *symbol);

/* Adds a call for the current node; key, label and desc are on l->pool, or constants. */
void lower_call(Lowering *l, CallDraft draft);

/* The variant by which the current node is to be computed.  key: that of the kernel's description
 * before anything is decided. */
int lower_variant(Lowering *l, const KernelFamily *f, const char *key);

/* How often a call runs in a step. */
static inline int64_t call_times(const Call *call)
{
    int64_t times = 1;
    for (int i = 0; call->loops && i < call->loops->depth; i++)
        times *= call->loops->steps[i];
    return times;
}

/* How many kernels run in a step. */
static inline int64_t calls_runs(const Call *call, int n)
{
    int64_t runs = 0;
    for (int i = 0; i < n; i++)
        runs += call_times(&call[i]);
    return runs;
}

/* Lowers a whole planned graph: every node in order through its rule. */
void lower_graph(Lowering *l);

#endif
