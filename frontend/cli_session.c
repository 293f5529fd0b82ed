#include "frontend/cli_finite.h"

#include "ir/support/bug.h"
#include "runtime/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void compile_progress(void *user, int done, int total)
{
    const Cli *cli = user;
    if (cli->quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\rcompiling kernels %d/%d%s", done, total, done == total ? "\n" : "");
}

static CheckpointRole role_of(const Node *n)
{
    return n->op == OP_state ? CHECKPOINT_OPTIMIZER : CHECKPOINT_MODEL;
}

/* Storage dim i is user dim perm[i]. */
static void user_dims(const Node *n, const Type *t, int64_t *dims)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    for (int i = 0; i < t->rank; i++)
        dims[perm ? perm[i] : i] = t->dim[i];
}

static void describe_tensors(Session *s)
{
    const Graph *g = s->graph;
    s->tensor = POOL_ARRAY(s->cli->pool, g->order.len, CheckpointTensor);
    s->tensor_value = POOL_ARRAY(s->cli->pool, g->order.len, ValueId);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        ValueId v = n->out[0];
        const Type *t = value_type(g, v);
        CheckpointTensor *c = &s->tensor[s->n_tensors];
        *c = (CheckpointTensor){.name = graph_value(g, v)->name + 1, /* without the sigil */
                                .dtype = (RtDType)t->dtype,
                                .rank = t->rank,
                                .role = role_of(n)};
        user_dims(n, t, c->dims);
        s->tensor_value[s->n_tensors++] = v;
    }
}

static void describe_metrics(Session *s)
{
    const Graph *g = s->graph;
    s->metric = POOL_ARRAY(s->cli->pool, g->outputs.len, const char *);
    s->metric_mean = POOL_ARRAY(s->cli->pool, g->outputs.len, double);
    for (size_t i = 0; i < g->outputs.len; i++) {
        const Output *o = &g->outputs.data[i];
        const Type *t = value_type(g, o->value);
        if (t->dtype == DTYPE_F32 && t->rank == 0 && strcmp(o->name, "loss") != 0 &&
            strcmp(o->name, "grad_norm") != 0)
            s->metric[s->n_metrics++] = o->name;
    }
}

static void compile_note(void *user, const char *text)
{
    Cli *cli = user;
    if (!cli->last_note || strcmp(cli->last_note, text) != 0) /* training and evaluation compile */
        fprintf(stderr, "note: %s\n", text);
    cli->last_note = pool_strdup(cli->pool, text);
}

CodegenOptions session_codegen_options(Cli *cli)
{
    return (CodegenOptions){.march = cli->march,
                            .cache_dir = cli->cache,
                            .jobs = (int)cli->jobs,
                            .no_cache = cli->no_cache,
                            .progress = compile_progress,
                            .note = compile_note,
                            .user = cli};
}

bool session_compile(Cli *cli, const Program *program, Session *out)
{
    *out = (Session){.cli = cli, .graph = program->graph, .plan = program->plan};
    CodegenOptions o = session_codegen_options(cli);
    const char *error;
    out->step = codegen_compile(cli->pool, program->graph, program->plan, &o, &error);
    if (!out->step) {
        cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
        return false;
    }
    describe_tensors(out);
    describe_metrics(out);
    return true;
}

void session_attach(Session *s, char *arena, Threads *threads, RtProfile *profile)
{
    s->arena = arena;
    s->context = threads_context(threads, arena, profile);
    for (int i = 0; i < s->n_tensors; i++)
        s->tensor[i].data = session_at(s, s->tensor_value[i]);
}

void session_close(Session *s)
{
    codegen_unload(s->step);
    s->step = NULL;
}

/* --- a session that runs alone --- */

bool host_open(Cli *cli, const Program *program, Host *out)
{
    RtError err;
    *out = (Host){0};
    if (!session_compile(cli, program, &out->session))
        return false;
    out->threads = threads_new((int)cli->threads, &err);
    if (!out->threads || !arena_map(&out->arena, program->plan->arena_bytes, &err)) {
        cli_error(cli, EXIT_USER, "E804", NULL, "%s", err.message);
        return false;
    }
    session_attach(&out->session, out->arena.base, out->threads, NULL);
    return true;
}

void host_close(Host *h)
{
    threads_free(h->threads);
    if (h->arena.base)
        arena_unmap(&h->arena);
    session_close(&h->session);
    *h = (Host){0};
}

/* --- one memory for training and evaluation --- */

static void share_value(Cli *cli, const Program *train, Program *eval, ValueId v, int64_t shift)
{
    int64_t *offset = &eval->plan->offset[v];
    if (*offset < 0)
        return;
    ValueId storage = value_storage(eval->graph, v);
    if (storage == VALUE_NONE) {
        *offset += shift;
        return;
    }
    const char *name = graph_value(eval->graph, storage)->name;
    ValueId other = graph_find(train->graph, name);
    if (other == VALUE_NONE ||
        !type_equal(value_type(train->graph, other), value_type(eval->graph, storage)))
        BUG("%s differs between training and inference", name);
    *offset = train->plan->offset[other];
    (void)cli;
}

int64_t session_share_plan(Cli *cli, const Program *train, Program *eval)
{
    int64_t shift = train->plan->persistent_bytes - eval->plan->persistent_bytes;
    for (size_t v = 0; v < eval->graph->values.len; v++)
        share_value(cli, train, eval, (ValueId)v, shift);
    for (size_t n = 0; n < eval->graph->nodes.len; n++)
        if (eval->plan->workspace_offset[n] >= 0)
            eval->plan->workspace_offset[n] += shift;
    int64_t need = eval->plan->arena_bytes + shift;
    eval->plan->arena_bytes = need;
    return need > train->plan->arena_bytes ? need : train->plan->arena_bytes;
}

/* --- layouts --- */

/* dst[user order] = src[storage order], or back. */
static void permute(const Node *n, const Type *t, const float *src, float *dst, bool to_user)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    int64_t dims[TYPE_MAX_RANK], stride[TYPE_MAX_RANK], index[TYPE_MAX_RANK] = {0};
    user_dims(n, t, dims);
    int64_t user_stride[TYPE_MAX_RANK];
    for (int i = rank - 1, first = 1; i >= 0; i--, first = 0)
        user_stride[i] = first ? 1 : user_stride[i + 1] * dims[i + 1];
    for (int i = 0; i < rank; i++)
        stride[i] = user_stride[perm[i]];
    int64_t count = type_elements(t), at = 0;
    for (int64_t k = 0; k < count; k++) {
        if (to_user)
            dst[at] = src[k];
        else
            dst[k] = src[at];
        for (int i = rank - 1; i >= 0; i--) {
            at += stride[i];
            if (++index[i] < t->dim[i])
                break;
            at -= stride[i] * t->dim[i];
            index[i] = 0;
        }
    }
}

static int64_t largest_permuted_bytes(const Session *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->n_tensors; i++) {
        ValueId v = s->tensor_value[i];
        int64_t bytes = type_bytes(value_type(s->graph, v));
        if (node_attr(value_node(s->graph, v), ATTR_perm) && bytes > most)
            most = bytes;
    }
    return most;
}

static bool no_memory(Session *s)
{
    cli_error(s->cli, EXIT_USER, "E802", NULL, "out of memory while converting weights");
    return false;
}

/* Persistent tensors in the user's layout while a checkpoint is written or read, and back (storage
 * may be permuted inside): in place, one tensor at a time. */
static bool convert_layout(Session *s, bool to_user)
{
    int64_t most = largest_permuted_bytes(s);
    if (!most)
        return true;
    float *copy = malloc((size_t)most);
    if (!copy)
        return no_memory(s);
    for (int i = 0; i < s->n_tensors; i++) {
        ValueId v = s->tensor_value[i];
        const Node *n = value_node(s->graph, v);
        const Type *t = value_type(s->graph, v);
        if (!node_attr(n, ATTR_perm))
            continue;
        memcpy(copy, s->tensor[i].data, (size_t)type_bytes(t));
        permute(n, t, copy, s->tensor[i].data, to_user);
    }
    free(copy);
    return true;
}

/* --- weights --- */

static bool runtime_error(Session *s, const char *code, const RtError *err)
{
    cli_error(s->cli, EXIT_USER, code, NULL, "%s", err->message);
    return false;
}

bool session_initialize(Session *s, uint64_t seed)
{
    RtError err;
    for (int i = 0; i < s->n_tensors; i++) {
        const Node *n = value_node(s->graph, s->tensor_value[i]);
        const Type *t = value_type(s->graph, s->tensor_value[i]);
        const char *init = node_string(n, ATTR_init, "zeros");
        if (t->dtype != DTYPE_F32)
            memset(s->tensor[i].data, 0, (size_t)type_bytes(t));
        else if (!rt_init_fill(s->tensor[i].data, type_elements(t), init, seed, s->tensor[i].name,
                               &err))
            return runtime_error(s, "E803", &err);
    }
    /* Numbers were drawn in the user's order, so that weights do not depend on the layout inside.
     */
    return convert_layout(s, false);
}

bool session_save(Session *s, const char *dir, const TrainerState *state)
{
    RtError err, note;
    if (!convert_layout(s, true))
        return false;
    bool ok = checkpoint_save(dir, state, s->tensor, s->n_tensors, &note, &err);
    if (ok && note.message[0])
        fprintf(stderr, "warning: %s/model.safetensors is not of step %lld: %s\n", dir,
                (long long)state->step, note.message);
    if (!convert_layout(s, false))
        return false;
    return ok || runtime_error(s, "E502", &err);
}

bool session_load(Session *s, const char *dir, TrainerState *state)
{
    RtError err;
    if (!checkpoint_load(dir, state, s->tensor, s->n_tensors, &err))
        return runtime_error(s, "E503", &err);
    return convert_layout(s, false);
}

bool session_load_weights(Session *s, const char *path)
{
    RtError err;
    ExtraWeights extra;
    if (!checkpoint_load_weights(path, s->tensor, s->n_tensors, &extra, &err)) {
        const char *aside = pool_printf(s->cli->pool, "%s/diverged", path);
        bool only_aside = !checkpoint_exists(path) && checkpoint_exists(aside);
        cli_error(s->cli, EXIT_USER, "E501",
                  only_aside ? "its training diverged before its first save" : NULL, "%s",
                  err.message);
        return false;
    }
    if (extra.count)
        fprintf(stderr, "warning: %s has %lld tensor%s that the model has not: %s\n", path,
                (long long)extra.count, extra.count == 1 ? "" : "s", extra.names);
    const char *first = finite_tensors(s, true);
    if (first) {
        cli_error(s->cli, EXIT_USER, "E522",
                  "train saves what has diverged beside the last finite set, in its `diverged`",
                  "%s: %s", path, first);
        return false;
    }
    return convert_layout(s, false);
}

uint64_t session_model_hash(const Session *s)
{
    uint64_t h = 0;
    for (int i = 0; i < s->n_tensors; i++) {
        const CheckpointTensor *t = &s->tensor[i];
        h = hash_bytes(t->name, strlen(t->name) + 1, h);
        h = hash_bytes(t->dims, (size_t)t->rank * sizeof *t->dims, h);
    }
    return h;
}

/* --- running --- */

void *session_at(const Session *s, ValueId v)
{
    int64_t offset = s->plan->offset[v];
    if (offset < 0)
        BUG("%s has no storage", graph_value(s->graph, v)->name);
    return s->arena + offset;
}

ValueId session_input(const Session *s, const char *role)
{
    for (size_t i = 0; i < s->graph->order.len; i++) {
        const Node *n = graph_node(s->graph, s->graph->order.data[i]);
        if (n->op == OP_input && strcmp(node_string(n, ATTR_role, ""), role) == 0)
            return n->out[0];
    }
    return VALUE_NONE;
}

static void set_input(const Session *s, const char *role, const void *data, size_t bytes)
{
    ValueId v = session_input(s, role);
    if (v != VALUE_NONE)
        memcpy(session_at(s, v), data, bytes);
}

void session_run(Session *s, double lr, int64_t update, int64_t micro, uint64_t seed)
{
    float rate = (float)lr;
    int32_t step = (int32_t)(update + 1);
    uint64_t counter = (uint64_t)micro;
    uint32_t rng[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)counter,
                       (uint32_t)(counter >> 32)};
    set_input(s, "lr", &rate, sizeof rate);
    set_input(s, "step", &step, sizeof step);
    set_input(s, "rng", rng, sizeof rng);
    s->step->run(&s->context);
}

double session_scalar(const Session *s, const char *output)
{
    ValueId v = graph_output(s->graph, output);
    if (v == VALUE_NONE || value_type(s->graph, v)->dtype != DTYPE_F32)
        return (double)NAN;
    float x;
    memcpy(&x, session_at(s, v), sizeof x);
    return (double)x;
}
