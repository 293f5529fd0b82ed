/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weights of a session: their first values, and checkpoints. */
#include "frontend/driver/cli_finite.h"
#include "runtime/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void session_user_dims(const Node *n, const Type *t, int64_t *dims)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    for (int i = 0; i < t->rank; i++)
        dims[perm ? perm[i] : i] = t->dim[i];
}

/* dst[user order] = src[storage order], or back. */
static void permute(const Node *n, const Type *t, const float *src, float *dst, bool to_user)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    int64_t dims[TYPE_MAX_RANK], stride[TYPE_MAX_RANK], index[TYPE_MAX_RANK] = {0};
    session_user_dims(n, t, dims);
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

void weights_to_storage(const Node *n, const Type *t, const float *from, float *to)
{
    permute(n, t, from, to, false);
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
    return convert_layout(s, false) && session_send_state(s);
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

bool session_keep(Session *s, const char *dir, int64_t count)
{
    RtError err;
    return count == 0 || checkpoint_keep(dir, count, &err) || runtime_error(s, "E502", &err);
}

bool session_load(Session *s, const char *dir, TrainerState *state)
{
    RtError err;
    if (!checkpoint_load(dir, state, s->tensor, s->n_tensors, &err))
        return runtime_error(s, "E503", &err);
    return convert_layout(s, false) && session_send_state(s);
}

void session_tell_loaded(const Cli *cli, const char *path, const ExtraWeights *extra)
{
    if (extra->count)
        fprintf(stderr, "warning: %s has %lld tensor%s that the model has not: %s\n", path,
                (long long)extra->count, extra->count == 1 ? "" : "s", extra->names);
    if (extra->averages && !cli->output.quiet)
        fprintf(stderr, "note: running means of %lld weights (ema); --no-ema: the weights\n",
                (long long)extra->averages);
}

bool session_load_weights(Session *s, const char *path)
{
    RtError err;
    ExtraWeights extra;
    if (!checkpoint_load_weights(path, s->tensor, s->n_tensors, !s->cli->run.no_ema, &extra,
                                 &err)) {
        const char *aside = pool_printf(s->cli->pool, "%s/diverged", path);
        bool only_aside = !checkpoint_exists(path) && checkpoint_exists(aside);
        cli_error(s->cli, EXIT_USER, "E501",
                  only_aside ? "its training diverged before its first save" : NULL, "%s",
                  err.message);
        return false;
    }
    session_tell_loaded(s->cli, path, &extra);
    const char *first = finite_tensors(s, true);
    if (first) {
        cli_error(s->cli, EXIT_USER, "E522",
                  "train saves what has diverged beside the last finite set, in its `diverged`",
                  "%s: %s", path, first);
        return false;
    }
    return convert_layout(s, false) && session_send_state(s);
}
