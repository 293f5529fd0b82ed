/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_session.h"
#include "frontend/driver/cli_program.h"

#include "frontend/driver/cli_codegen.h"

#include "ir/support/bug.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CheckpointRole role_of(const Node *n)
{
    return n->op == OP_state ? CHECKPOINT_OPTIMIZER : CHECKPOINT_MODEL;
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
        session_user_dims(n, t, c->dims);
        s->tensor_value[s->n_tensors++] = v;
    }
}

bool session_compile(Cli *cli, const Program *program, Session *out)
{
    *out = (Session){.cli = cli, .graph = program->graph, .plan = program->plan};
    const char *error, *arch;
    if (!cli_device_arch(cli, &arch))
        return false;
    CodegenOptions o = cli_codegen_options(cli, arch);
    if (cli->state->device_opened)
        BUG("compilers are forked when the driver of the device has started");
    out->step = codegen_compile(cli->pool, program->graph, program->plan, &o, &error);
    if (!out->step) {
        cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
        return false;
    }
    describe_tensors(out);
    metrics_describe(cli->pool, program->graph, &out->metrics);
    return true;
}

static bool device_error(const Session *s, const RtError *err)
{
    s->cli->state->device_failed = true;
    return cli_device_error(s->cli, "E808", err);
}

static CudaPiece piece_of(const Session *s, ValueId v)
{
    return (CudaPiece){s->plan->offset[v], type_bytes(value_type(s->graph, v)), session_at(s, v)};
}

/* Inputs that the plan has, and what a step computes beside the persistent tensors. */
static bool open_feed(Session *s, RtError *err)
{
    const Graph *g = s->graph;
    CudaPiece *in = POOL_ARRAY(s->cli->pool, g->order.len + 1, CudaPiece);
    CudaPiece *out = POOL_ARRAY(s->cli->pool, g->outputs.len + 1, CudaPiece);
    int n_in = 0, n_out = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_input && s->plan->offset[n->out[0]] >= 0)
            in[n_in++] = piece_of(s, n->out[0]);
    }
    for (size_t i = 0; i < g->outputs.len; i++) {
        ValueId v = g->outputs.data[i].value;
        if (value_storage(g, v) == VALUE_NONE && s->plan->offset[v] >= 0)
            out[n_out++] = piece_of(s, v);
    }
    s->feed = cuda_feed_open(s->machine->cuda, in, n_in, out, n_out, err);
    return s->feed != NULL;
}

static bool load_on_device(Session *s)
{
    RtError err;
    CudaDevice *d = s->machine->cuda;
    if (!cuda_device_takes(d, s->step->driver, &err))
        return cli_device_error(s->cli, "E807", &err);
    s->cuda = cuda_step_load(d, s->step->run, s->step->kernel, s->step->n_kernels, &err);
    return (s->cuda && open_feed(s, &err)) || device_error(s, &err);
}

bool session_attach(Session *s, Machine *machine)
{
    s->machine = machine;
    s->arena = machine->arena.base;
    s->context = threads_context(machine->threads, s->arena, NULL);
    s->state = POOL_ARRAY(s->cli->pool, (size_t)s->n_tensors + 1, CudaPiece);
    for (int i = 0; i < s->n_tensors; i++) {
        s->state[i] = piece_of(s, s->tensor_value[i]);
        s->tensor[i].data = s->state[i].here;
    }
    return !machine->cuda || load_on_device(s);
}

void session_close(Session *s)
{
    cuda_feed_close(s->feed);
    cuda_step_unload(s->cuda);
    s->feed = NULL;
    s->cuda = NULL;
    codegen_unload(s->step);
    s->step = NULL;
}

/* --- a session that runs alone --- */

bool running_open(Cli *cli, const Program *program, RunningSession *out)
{
    *out = (RunningSession){0};
    return session_compile(cli, program, &out->session) &&
           machine_open(cli, program->plan->arena_bytes, &out->machine) &&
           session_attach(&out->session, &out->machine);
}

void running_close(RunningSession *h)
{
    session_close(&h->session);
    machine_close(&h->machine);
    *h = (RunningSession){0};
}

/* --- one memory for training and evaluation --- */

/* The persistent tensor in whose bytes a value lies that is a view of it, such as a weight's
 * reshape; VALUE_NONE for values of the step. */
static ValueId persistent_around(const Program *p, const int64_t *offset, ValueId v)
{
    const Graph *g = p->graph;
    if (offset[v] >= p->plan->persistent_bytes)
        return VALUE_NONE;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        int64_t begin = node_is_persistent(n) ? offset[n->out[0]] : -1;
        if (begin >= 0 && begin <= offset[v] &&
            offset[v] < begin + type_bytes(value_type(g, n->out[0])))
            return n->out[0];
    }
    return VALUE_NONE;
}

/* before: offsets of the evaluation's plan when it was alone. */
static void share_value(const Program *train, Program *eval, const int64_t *before, ValueId v,
                        int64_t shift)
{
    if (before[v] < 0)
        return;
    ValueId storage = value_storage(eval->graph, v);
    storage = storage == VALUE_NONE ? persistent_around(eval, before, v) : storage;
    if (storage == VALUE_NONE) {
        eval->plan->offset[v] = before[v] + shift;
        return;
    }
    const char *name = graph_value(eval->graph, storage)->name;
    ValueId other = graph_find(train->graph, pool_printf(eval->graph->pool, "$ema.%s", name + 1));
    if (other == VALUE_NONE)
        other = graph_find(train->graph, name);
    if (other == VALUE_NONE ||
        !type_equal(value_type(train->graph, other), value_type(eval->graph, storage)))
        BUG("%s differs between training and inference", name);
    eval->plan->offset[v] = train->plan->offset[other] + before[v] - before[storage];
}

int64_t session_share_plan(const Program *train, Program *eval)
{
    int64_t shift = train->plan->persistent_bytes - eval->plan->persistent_bytes;
    size_t n_values = eval->graph->values.len;
    int64_t *before = POOL_ARRAY(eval->graph->pool, n_values, int64_t);
    memcpy(before, eval->plan->offset, n_values * sizeof *before);
    for (size_t v = 0; v < n_values; v++)
        share_value(train, eval, before, (ValueId)v, shift);
    for (size_t n = 0; n < eval->graph->nodes.len; n++)
        if (eval->plan->workspace_offset[n] >= 0)
            eval->plan->workspace_offset[n] += shift;
    int64_t need = eval->plan->arena_bytes + shift;
    eval->plan->arena_bytes = need;
    return need > train->plan->arena_bytes ? need : train->plan->arena_bytes;
}

/* --- layouts --- */

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

uint64_t session_seed(const Cli *cli, const Graph *g)
{
    return cli->run.has_seed ? (uint64_t)cli->run.seed : g->train.seed;
}

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

/* --- on a device --- */

bool session_fetch_state(const Session *s)
{
    RtError err;
    CudaDevice *d = s->machine->cuda;
    return !d || cuda_read_pieces(d, s->state, s->n_tensors, &err) || device_error(s, &err);
}

bool session_send_state(const Session *s)
{
    RtError err;
    CudaDevice *d = s->machine->cuda;
    return !d || cuda_write_pieces(d, s->state, s->n_tensors, &err) || device_error(s, &err);
}

bool session_take_arena(const Session *s)
{
    RtError err;
    return !s->machine->cuda ||
           ((cuda_arena_poison(s->machine->cuda, &err) || device_error(s, &err)) &&
            session_send_state(s));
}

bool session_measure(Session *s, RtProfile *profile)
{
    RtError err;
    return (cuda_feed_place(s->feed, &err) && cuda_step_measure(s->cuda, profile, &err)) ||
           device_error(s, &err);
}

static void set_rates(const Session *s, StepNumbers n)
{
    const TrainSpec *spec = &s->graph->train;
    for (size_t i = 0; i < s->graph->order.len; i++) {
        const Node *node = graph_node(s->graph, s->graph->order.data[i]);
        const char *role = node->op == OP_input ? node_string(node, ATTR_role, "") : "";
        if (!train_is_rate(role))
            continue;
        int group = train_rate_group(role);
        bool own = group >= 0 && n.total > 0;
        double lr = own ? lr_at(&spec->group[group].rule.lr, n.update, n.total, n.per_epoch) : n.lr;
        float rate = (float)lr;
        memcpy(session_at(s, node->out[0]), &rate, sizeof rate);
    }
}

bool session_send(Session *s, StepNumbers n)
{
    RtError err;
    int32_t step = (int32_t)(n.update + 1);
    uint64_t counter = (uint64_t)n.micro;
    uint32_t rng[4] = {(uint32_t)n.seed, (uint32_t)(n.seed >> 32), (uint32_t)counter,
                       (uint32_t)(counter >> 32)};
    set_rates(s, n);
    set_input(s, "step", &step, sizeof step);
    set_input(s, "rng", rng, sizeof rng);
    return !s->feed || cuda_feed_send(s->feed, &err) || device_error(s, &err);
}

bool session_start(Session *s)
{
    RtError err;
    if (s->cuda)
        return (cuda_feed_place(s->feed, &err) && cuda_step_run(s->cuda, &err) &&
                cuda_feed_return(s->feed, &err)) ||
               device_error(s, &err);
    s->step->run(&s->context);
    return true;
}

bool session_finish(Session *s)
{
    RtError err;
    return !s->feed || cuda_feed_wait(s->feed, &err) || device_error(s, &err);
}

bool session_run(Session *s, StepNumbers n)
{
    return session_send(s, n) && session_start(s) && session_finish(s);
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
