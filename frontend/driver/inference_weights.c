/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/inference_weights.h"

#include "codegen/build/codegen.h"
#include "frontend/driver/cli_session.h"
#include "runtime/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static TrainedWeights trained_tensors(Pool *pool, const Graph *g)
{
    TrainedWeights out = {.tensor = POOL_ARRAY(pool, g->order.len + 1, CheckpointTensor)};
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        CheckpointTensor *c = &out.tensor[out.n++];
        *c = (CheckpointTensor){.name = graph_value(g, n->out[0])->name + 1,
                                .dtype = (RtDType)t->dtype,
                                .rank = t->rank,
                                .role = CHECKPOINT_MODEL};
        memcpy(c->dims, t->dim, (size_t)t->rank * sizeof *c->dims);
        c->data = pool_alloc(pool, (size_t)type_bytes(t));
    }
    return out;
}

static const float *elements_of(const TrainedWeights *t, const char *name)
{
    for (int i = 0; name && i < t->n; i++)
        if (!strcmp(t->tensor[i].name, name))
            return t->tensor[i].data;
    return NULL;
}

static bool all_finite(Cli *cli, const TrainedWeights *t)
{
    for (int i = 0; i < t->n; i++) {
        const CheckpointTensor *c = &t->tensor[i];
        int64_t n;
        if (c->dtype != RT_F32 || !rt_elements(c->rank, c->dims, &n))
            continue;
        for (int64_t k = 0; k < n; k++)
            if (!isfinite(((const float *)c->data)[k]))
                return cli_error(cli, EXIT_USER, "E522", NULL, "%s: %s is not finite",
                                 cli->run.checkpoint, c->name) == EXIT_OK;
    }
    return true;
}

bool inference_weights_read(Cli *cli, const Ast *ast, TrainedWeights *out)
{
    RtError err;
    ExtraWeights extra;
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_INFER);
    const Graph *g = cli_lower(cli, ast, &o);
    if (!g)
        return false;
    diag_clear(cli->diag); /* the build warns */
    *out = trained_tensors(cli->pool, g);
    if (!checkpoint_load_weights(cli->run.checkpoint, out->tensor, out->n, !cli->run.no_ema, &extra,
                                 &err))
        return cli_error(cli, EXIT_USER, "E501", NULL, "%s", err.message) == EXIT_OK;
    session_tell_loaded(cli, cli->run.checkpoint, &extra);
    return all_finite(cli, out);
}

/* The elements of a tensor of the program; `room` is for those that are made. */
static const float *elements_for(const Program *p, const TrainedWeights *trained, ValueId v,
                                 float *room)
{
    const char *name = graph_value(p->graph, v)->name + 1;
    for (int i = 0; i < p->n_folded; i++) {
        const FoldedNorm *n = &p->folded[i];
        bool weight = !strcmp(name, n->folded_weight);
        if (!weight && strcmp(name, n->folded_bias) != 0)
            continue;
        NormTensors t = {elements_of(trained, n->weight), elements_of(trained, n->bias),
                         elements_of(trained, n->mean),   elements_of(trained, n->variance),
                         elements_of(trained, n->scale),  elements_of(trained, n->shift)};
        Type user = *value_type(p->graph, v);
        session_user_dims(value_node(p->graph, v), value_type(p->graph, v), user.dim);
        if (weight)
            folded_norm_weight(n, &t, &user, room);
        else
            folded_norm_bias(n, &t, user.dim[0], room);
        return room;
    }
    return elements_of(trained, name);
}

/* The persistent part of the arena. */
static char *image_of(Cli *cli, const Program *p, const TrainedWeights *trained)
{
    const Graph *g = p->graph;
    char *image = pool_alloc(cli->pool, (size_t)p->plan->persistent_bytes);
    memset(image, 0, (size_t)p->plan->persistent_bytes);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        Pool *scratch = pool_new_child(cli->pool);
        float *room = pool_alloc(scratch, (size_t)type_bytes(t));
        const float *from = elements_for(p, trained, n->out[0], room);
        char *to = image + p->plan->offset[n->out[0]];
        if (t->dtype == DTYPE_F32 && node_attr(n, ATTR_perm))
            weights_to_storage(n, t, from, (float *)(void *)to);
        else
            memcpy(to, from, (size_t)type_bytes(t));
        pool_free(scratch);
    }
    return image;
}

bool inference_weights_write(Cli *cli, const TrainedWeights *trained, const Program *p,
                             const char *path)
{
    RtError err;
    AtomicFile file;
    int64_t bytes = p->plan->persistent_bytes;
    const char *image = image_of(cli, p, trained);
    WeightsHead head = codegen_weights_head(p->graph, p->plan, image);
    bool ok = atomic_open(&file, path, &err) && atomic_write(&file, &head, sizeof head, &err) &&
              atomic_write(&file, image, bytes, &err) && atomic_commit(&file, &err);
    if (!ok) {
        atomic_abort(&file);
        cli_error(cli, EXIT_USER, "E411", NULL, "%s", err.message);
    }
    return ok;
}
