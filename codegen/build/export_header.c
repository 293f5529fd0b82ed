/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header of a step that is compiled ahead of time: its memory, and functions to train with it.
 */
#include "codegen/build/export_header.h"

#include "ir/support/strbuf.h"
#include "runtime/abi.h"

/* What every header starts with: the contract of runtime/abi.h in the user's program, and two ways
 * to run a step. */
static const char preamble[] =
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#ifdef _OPENMP\n"
    "#include <omp.h>\n"
    "#endif\n\n"
    "typedef void @_Kernel(char *const *buf, int64_t begin, int64_t end, char *scratch);\n"
    "typedef struct @_Context @_Context;\n"
    "struct @_Context {\n"
    "    char *arena;\n"
    "    void (*run)(@_Context *ctx, int32_t call, @_Kernel *kernel, char *const *buf, "
    "int64_t n_tasks);\n"
    "    void *threads; /* here: how many, and after @_ROOM bytes the scratch memory of each */\n"
    "    void *profile;\n"
    "};\n"
    "#ifdef __cplusplus\n"
    "extern \"C\"\n"
    "#endif\n"
    "void @_step(@_Context *ctx);\n\n"
    "/* kind: param, buffer, state, input (name is its role) or output.  dims are those of the "
    "memory; dim i is\n"
    "   dimension perm[i] of the usual order.  init says how training starts. */\n"
    "typedef struct @_Tensor {\n"
    "    const char *kind, *name, *dtype, *init;\n"
    "    int rank;\n"
    "    int64_t dims[8];\n"
    "    int perm[8];\n"
    "    int64_t offset, bytes;\n"
    "} @_Tensor;\n\n";

static const char functions[] =
    "\nstatic inline const @_Tensor *@_tensor(const char *kind, const char *name)\n"
    "{\n"
    "    for (int i = 0; i < @_TENSORS; i++)\n"
    "        if (strcmp(@_tensors[i].kind, kind) == 0 && strcmp(@_tensors[i].name, name) "
    "== 0)\n"
    "            return &@_tensors[i];\n"
    "    return NULL;\n"
    "}\n\n"
    "/* Runs a kernel on OpenMP threads when compiled with -fopenmp, else on this one: the same "
    "bits.  There are\n"
    "   never more of them than when the context was opened: each has scratch memory of its own. "
    "*/\n"
    "static inline void @_run(@_Context *ctx, int32_t call, @_Kernel *kernel, char "
    "*const *buf,\n"
    "                              int64_t n)\n"
    "{\n"
    "    char *scratch = (char *)ctx->threads + @_ROOM;\n"
    "    (void)call;\n"
    "#ifdef _OPENMP\n"
    "    int limit = *(const int *)ctx->threads;\n"
    "#pragma omp parallel num_threads(limit)\n"
    "    {\n"
    "        int64_t t = omp_get_thread_num(), count = omp_get_num_threads();\n"
    "        if (t * n / count < (t + 1) * n / count)\n"
    "            kernel(buf, t * n / count, (t + 1) * n / count, scratch + t * "
    "@_SCRATCH_BYTES);\n"
    "    }\n"
    "#else\n"
    "    kernel(buf, 0, n, scratch);\n"
    "#endif\n"
    "}\n\n"
    "/* Memory for training: arena, and scratch for as many threads as OpenMP would start now; 0 "
    "when "
    "there is not\n"
    "   enough.  free() both. */\n"
    "static inline int @_open(@_Context *ctx)\n"
    "{\n"
    "    size_t threads = 1;\n"
    "#ifdef _OPENMP\n"
    "    threads = (size_t)omp_get_max_threads();\n"
    "#endif\n"
    "    ctx->arena = (char *)aligned_alloc(4096, (@_ARENA_BYTES + 4095) / 4096 * 4096);\n"
    "    ctx->threads = aligned_alloc(4096, @_ROOM + threads * @_SCRATCH_BYTES);\n"
    "    ctx->run = @_run;\n"
    "    ctx->profile = NULL;\n"
    "    if (!ctx->arena || !ctx->threads)\n"
    "        return 0;\n"
    "    *(int *)ctx->threads = (int)threads;\n"
    "    memset(ctx->arena, 0, @_ARENA_BYTES);\n"
    "    return 1;\n"
    "}\n\n"
    "static inline double @_uniform(uint64_t *state)\n"
    "{\n"
    "    uint64_t z = (*state += 0x9e3779b97f4a7c15u);\n"
    "    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;\n"
    "    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;\n"
    "    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;\n"
    "}\n\n"
    "/* Parameters, statistics and optimizer state as their init texts say. */\n"
    "static inline void @_initialize(@_Context *ctx, uint64_t seed)\n"
    "{\n"
    "    for (int i = 0; i < @_TENSORS; i++) {\n"
    "        const @_Tensor *t = &@_tensors[i];\n"
    "        float *p = (float *)(ctx->arena + t->offset);\n"
    "        char *end;\n"
    "        if (!t->init)\n"
    "            continue;\n"
    "        for (int64_t k = 0; k < t->bytes / 4; k++) {\n"
    "            double u = @_uniform(&seed);\n"
    "            if (strncmp(t->init, \"normal(\", 7) == 0)\n"
    "                p[k] = (float)(strtod(t->init + 7, &end) * sqrt(-2 * log(1 - u)) *\n"
    "                               cos(6.283185307179586 * @_uniform(&seed)));\n"
    "            else if (strncmp(t->init, \"uniform(\", 8) == 0) {\n"
    "                double low = strtod(t->init + 8, &end), high = strtod(end + 1, &end);\n"
    "                p[k] = (float)(low + (high - low) * u);\n"
    "            } else if (strncmp(t->init, \"value(\", 6) == 0)\n"
    "                p[k] = (float)strtod(t->init + 6, &end);\n"
    "            else\n"
    "                p[k] = strcmp(t->init, \"ones\") == 0 ? 1.0f : 0.0f;\n"
    "        }\n"
    "    }\n"
    "}\n\n"
    "/* One training step (update counts from 0).  Fill the inputs first; read the outputs "
    "afterwards. */\n"
    "static inline void @_train_step(@_Context *ctx, float lr, int32_t update, uint64_t "
    "seed)\n"
    "{\n"
    "    const @_Tensor *t;\n"
    "    uint32_t rng[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)update, 0};\n"
    "    int32_t step = update + 1;\n"
    "    if ((t = @_tensor(\"input\", \"lr\")))\n"
    "        memcpy(ctx->arena + t->offset, &lr, sizeof lr);\n"
    "    if ((t = @_tensor(\"input\", \"step\")))\n"
    "        memcpy(ctx->arena + t->offset, &step, sizeof step);\n"
    "    if ((t = @_tensor(\"input\", \"rng\")))\n"
    "        memcpy(ctx->arena + t->offset, rng, sizeof rng);\n"
    "    @_step(ctx);\n"
    "}\n\n"
    "#endif\n";

static void put_c_string(StrBuf *b, const char *s)
{
    strbuf_put(b, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            strbuf_put(b, "\\");
        strbuf_printf(b, "%c", *s);
    }
    strbuf_put(b, "\"");
}

static void put_tensor(StrBuf *b, const Graph *g, const MemPlan *plan, ValueId v, const char *kind,
                       const char *name)
{
    const Type *t = value_type(g, v);
    const Node *n = value_node(g, v);
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    bool persistent = node_is_persistent(n);
    strbuf_printf(b, "    {\"%s\", ", kind);
    put_c_string(b, name);
    strbuf_printf(b, ", \"%s\", ", dtype_name(t->dtype));
    if (persistent)
        put_c_string(b, node_string(n, ATTR_init, "zeros"));
    else
        strbuf_put(b, "NULL");
    strbuf_printf(b, ", %d, {", t->rank);
    for (int i = 0; i < TYPE_MAX_RANK; i++)
        strbuf_printf(b, "%s%lld", i ? "," : "", (long long)(i < t->rank ? t->dim[i] : 0));
    strbuf_put(b, "}, {");
    for (int i = 0; i < TYPE_MAX_RANK; i++)
        strbuf_printf(b, "%s%d", i ? "," : "",
                      i < t->rank ? (persistent && perm ? (int)perm[i] : i) : 0);
    strbuf_printf(b, "}, %lldLL, %lldLL},\n", (long long)plan->offset[v], (long long)type_bytes(t));
}

static int put_tensors(StrBuf *b, const Graph *g, const MemPlan *plan)
{
    int n_tensors = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_input && !node_is_persistent(n))
            continue;
        const char *name = n->op == OP_input ? node_string(n, ATTR_role, "input")
                                             : graph_value(g, n->out[0])->name + 1;
        put_tensor(b, g, plan, n->out[0], op_name(n->op), name);
        n_tensors++;
    }
    for (size_t i = 0; i < g->outputs.len; i++, n_tensors++)
        put_tensor(b, g, plan, g->outputs.data[i].value, "output", g->outputs.data[i].name);
    return n_tensors;
}

/* Every @ of the templates is the name. */
static void put_named(StrBuf *b, const char *text, const char *name)
{
    for (; *text; text++) {
        if (*text == '@')
            strbuf_put(b, name);
        else
            strbuf_printf(b, "%c", *text);
    }
}

const char *export_header(Pool *pool, const Graph *g, const MemPlan *plan, const char *name)
{
    StrBuf tensors = strbuf_new(pool), b = strbuf_new(pool);
    int n = put_tensors(&tensors, g, plan);
    strbuf_printf(
        &b,
        "/* Training step of %s (%s), generated by scrimp.  This file and the shared object are\n"
        "   yours: no license of scrimp's applies to them.  All names begin with %s_, so that a\n"
        "   program can use several steps: scrimp compile --name. */\n"
        "#ifndef SCRIMP_STEP_%s_H\n#define SCRIMP_STEP_%s_H\n\n",
        g->name, g->source ? g->source : "a model", name, name, name);
    put_named(&b, preamble, name);
    strbuf_printf(&b,
                  "#define %s_ARENA_BYTES %lldLL\n#define %s_PERSISTENT_BYTES %lldLL\n"
                  "#define %s_SCRATCH_BYTES %d\n#define %s_ROOM 4096\n#define %s_TENSORS %d\n\n"
                  "static const %s_Tensor %s_tensors[%s_TENSORS] = {\n",
                  name, (long long)plan->arena_bytes, name, (long long)plan->persistent_bytes, name,
                  SCRIMP_SCRATCH_BYTES, name, name, n, name, name, name);
    strbuf_put(&b, tensors.text);
    strbuf_put(&b, "};\n");
    put_named(&b, functions, name);
    return b.text;
}
