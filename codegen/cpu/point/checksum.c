/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The hash that `verify` compares: see eval_checksum.  Chunks add up their parts modulo 2^64; any
 * order gives the same. */
#include "codegen/forms/checksum.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"

static JitValue u64(Jit *j, uint64_t v)
{
    return jit_cast(j, jit_i64(j, (int64_t)v), jit_types(j)->u64);
}

static JitValue partial(Jit *j, const ChecksumDesc *d, int buf, JitValue chunk)
{
    JitValue at = jit_mul(j, chunk, jit_i64(j, d->partial_bytes / 8));
    return jit_tmp(j, jit_offset(j, jit_buf(j, buf, jit_types(j)->p_i64), at));
}

/* x, workspace */
static void emit_checksum(Jit *j, const void *desc)
{
    const ChecksumDesc *d = desc;
    const JitTypes *t = jit_types(j);
    JitVar hash = jit_var(j, t->u64, "hash");
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    jit_set(j, hash, u64(j, 0));
    JitLoop i = jit_for(j, part_start(j, jit_index(&chunk), d->elements, d->chunks),
                        part_start(j, next, d->elements, d->chunks), 1, "i");
    JitValue bits = jit_cast(j, jit_load(j, jit_buf(j, 0, t->p_i32), jit_index(&i)), t->u32);
    JitValue value = jit_add(j, jit_cast(j, jit_tmp(j, bits), t->u64), u64(j, 1));
    JitValue odd = jit_add(j, jit_mul(j, jit_cast(j, jit_index(&i), t->u64), u64(j, 2)), u64(j, 1));
    JitValue factor = jit_mul(j, odd, u64(j, CHECKSUM_FACTOR));
    jit_set(j, hash, jit_add(j, jit_get(hash), jit_mul(j, value, factor)));
    jit_end_for(j, &i);
    jit_store(j, partial(j, d, 1, jit_index(&chunk)), jit_i64(j, 0),
              jit_cast(j, jit_get(hash), t->i64));
    jit_end_for(j, &chunk);
}

/* workspace, i32[2] */
static void emit_checksum_join(Jit *j, const void *desc)
{
    const JitTypes *t = jit_types(j);
    JitVar hash = jit_var(j, t->u64, "hash");
    jit_set(j, hash, u64(j, 0));
    JitLoop c =
        jit_for(j, jit_i64(j, 0), jit_i64(j, ((const ChecksumDesc *)desc)->chunks), 1, "chunk");
    JitValue part = jit_load(j, partial(j, desc, 0, jit_index(&c)), jit_i64(j, 0));
    jit_set(j, hash, jit_add(j, jit_get(hash), jit_cast(j, part, t->u64)));
    jit_end_for(j, &c);
    JitValue out = jit_buf(j, 1, t->p_i32), high = jit_shr(j, jit_get(hash), u64(j, 32));
    jit_store(j, out, jit_i64(j, 0), jit_cast(j, jit_get(hash), t->i32));
    jit_store(j, out, jit_i64(j, 1), jit_cast(j, high, t->i32));
}

void cpu_checksum(Lowering *l, const Node *n)
{
    ChecksumDesc d = checksum_describe(l, n);
    const CallBuf in[] = {{n->in[0], 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}};
    lower_pod_call(l, "checksum", emit_checksum, &d, DESC_BYTES(ChecksumDesc), d.chunks, in, 2);
    lower_pod_join(l, "checksum_join", emit_checksum_join, &d, DESC_BYTES(ChecksumDesc), 1, out, 2);
}
