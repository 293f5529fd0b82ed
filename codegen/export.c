/* Ahead of time: a shared object without scrimp, and the header that describes its memory. */
#include "codegen/compile.h"
#include "ir/support/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    "typedef void ScrimpKernel(char *const *buf, int64_t begin, int64_t end, char *scratch);\n"
    "typedef struct ScrimpContext ScrimpContext;\n"
    "struct ScrimpContext {\n"
    "    char *arena;\n"
    "    void (*run)(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char *const *buf, "
    "int64_t n_tasks);\n"
    "    void *threads; /* here: the scratch memory of every thread */\n"
    "    void *profile;\n"
    "};\n"
    "void scrimp_step(ScrimpContext *ctx);\n\n"
    "/* kind: param, buffer, state, input (name is its role) or output.  dims are those of the "
    "memory; dim i is\n"
    "   dimension perm[i] of the usual order.  init says how training starts. */\n"
    "typedef struct ScrimpTensor {\n"
    "    const char *kind, *name, *dtype, *init;\n"
    "    int rank;\n"
    "    int64_t dims[8];\n"
    "    int perm[8];\n"
    "    int64_t offset, bytes;\n"
    "} ScrimpTensor;\n\n";

static const char functions[] =
    "\nstatic inline const ScrimpTensor *scrimp_tensor(const char *kind, const char *name)\n"
    "{\n"
    "    for (int i = 0; i < SCRIMP_TENSORS; i++)\n"
    "        if (strcmp(scrimp_tensors[i].kind, kind) == 0 && strcmp(scrimp_tensors[i].name, name) "
    "== 0)\n"
    "            return &scrimp_tensors[i];\n"
    "    return NULL;\n"
    "}\n\n"
    "/* Runs a kernel on all OpenMP threads when compiled with -fopenmp, else on this one: the "
    "same bits. */\n"
    "static inline void scrimp_run(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char "
    "*const *buf,\n"
    "                              int64_t n)\n"
    "{\n"
    "    char *scratch = (char *)ctx->threads;\n"
    "    (void)call;\n"
    "#ifdef _OPENMP\n"
    "#pragma omp parallel\n"
    "    {\n"
    "        int64_t t = omp_get_thread_num(), count = omp_get_num_threads();\n"
    "        if (t * n / count < (t + 1) * n / count)\n"
    "            kernel(buf, t * n / count, (t + 1) * n / count, scratch + t * "
    "SCRIMP_SCRATCH_BYTES);\n"
    "    }\n"
    "#else\n"
    "    kernel(buf, 0, n, scratch);\n"
    "#endif\n"
    "}\n\n"
    "/* Memory for training: arena and scratch; 0 when there is not enough.  free() both. */\n"
    "static inline int scrimp_open(ScrimpContext *ctx)\n"
    "{\n"
    "    size_t threads = 1;\n"
    "#ifdef _OPENMP\n"
    "    threads = (size_t)omp_get_max_threads();\n"
    "#endif\n"
    "    ctx->arena = (char *)aligned_alloc(4096, (SCRIMP_ARENA_BYTES + 4095) / 4096 * 4096);\n"
    "    ctx->threads = aligned_alloc(4096, threads * SCRIMP_SCRATCH_BYTES);\n"
    "    ctx->run = scrimp_run;\n"
    "    ctx->profile = NULL;\n"
    "    if (!ctx->arena || !ctx->threads)\n"
    "        return 0;\n"
    "    memset(ctx->arena, 0, SCRIMP_ARENA_BYTES);\n"
    "    return 1;\n"
    "}\n\n"
    "static inline double scrimp_uniform(uint64_t *state)\n"
    "{\n"
    "    uint64_t z = (*state += 0x9e3779b97f4a7c15u);\n"
    "    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;\n"
    "    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;\n"
    "    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;\n"
    "}\n\n"
    "/* Parameters, statistics and optimizer state as their init texts say. */\n"
    "static inline void scrimp_initialize(ScrimpContext *ctx, uint64_t seed)\n"
    "{\n"
    "    for (int i = 0; i < SCRIMP_TENSORS; i++) {\n"
    "        const ScrimpTensor *t = &scrimp_tensors[i];\n"
    "        float *p = (float *)(ctx->arena + t->offset);\n"
    "        char *end;\n"
    "        if (!t->init)\n"
    "            continue;\n"
    "        for (int64_t k = 0; k < t->bytes / 4; k++) {\n"
    "            double u = scrimp_uniform(&seed);\n"
    "            if (strncmp(t->init, \"normal(\", 7) == 0)\n"
    "                p[k] = (float)(strtod(t->init + 7, &end) * sqrt(-2 * log(1 - u)) *\n"
    "                               cos(6.283185307179586 * scrimp_uniform(&seed)));\n"
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
    "static inline void scrimp_train_step(ScrimpContext *ctx, float lr, int32_t update, uint64_t "
    "seed)\n"
    "{\n"
    "    const ScrimpTensor *t;\n"
    "    uint32_t rng[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)update, 0};\n"
    "    int32_t step = update + 1;\n"
    "    if ((t = scrimp_tensor(\"input\", \"lr\")))\n"
    "        memcpy(ctx->arena + t->offset, &lr, sizeof lr);\n"
    "    if ((t = scrimp_tensor(\"input\", \"step\")))\n"
    "        memcpy(ctx->arena + t->offset, &step, sizeof step);\n"
    "    if ((t = scrimp_tensor(\"input\", \"rng\")))\n"
    "        memcpy(ctx->arena + t->offset, rng, sizeof rng);\n"
    "    scrimp_step(ctx);\n"
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

static const char *header_text(Pool *pool, const Graph *g, const MemPlan *plan)
{
    StrBuf tensors = strbuf_new(pool), b = strbuf_new(pool);
    int n = put_tensors(&tensors, g, plan);
    strbuf_printf(
        &b,
        "/* Training step of %s (%s), generated by scrimp.  This file and the shared object are\n"
        "   yours: no license of scrimp's applies to them. */\n"
        "#ifndef SCRIMP_STEP_H\n#define SCRIMP_STEP_H\n\n",
        g->name, g->source ? g->source : "a model");
    strbuf_put(&b, preamble);
    strbuf_printf(&b,
                  "#define SCRIMP_ARENA_BYTES %lldLL\n#define SCRIMP_PERSISTENT_BYTES %lldLL\n"
                  "#define SCRIMP_SCRATCH_BYTES %d\n#define SCRIMP_TENSORS %d\n\n"
                  "static const ScrimpTensor scrimp_tensors[SCRIMP_TENSORS] = {\n",
                  (long long)plan->arena_bytes, (long long)plan->persistent_bytes,
                  SCRIMP_SCRATCH_BYTES, n);
    strbuf_put(&b, tensors.text);
    strbuf_put(&b, "};\n");
    strbuf_put(&b, functions);
    return b.text;
}

/* Temporary name, write, sync, rename. */
static bool write_text(Pool *pool, const char *path, const char *text, const char **error)
{
    const char *temporary = pool_printf(pool, "%s.%ld.tmp", path, (long)getpid());
    FILE *f = fopen(temporary, "w");
    bool ok = f && fputs(text, f) >= 0 && fflush(f) == 0 && fsync(fileno(f)) == 0;
    if (f)
        ok = fclose(f) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    if (!ok) {
        *error = pool_printf(pool, "cannot write %s: %s", path, strerror(errno));
        unlink(temporary);
    }
    return ok;
}

bool codegen_export(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                    const char *so_path, const char *header_path, const char **error)
{
    const Target *target = codegen_target(pool, o->march, false, error);
    if (!target)
        return false;
    const StepProgram *p = step_program(pool, g, plan, target);
    return codegen_build_so(p, o, so_path, error) &&
           (!header_path || write_text(pool, header_path, header_text(pool, g, plan), error));
}
