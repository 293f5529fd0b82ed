/* SPDX-License-Identifier: GPL-3.0-or-later */
/* predict: what a trained model makes of given examples. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_progress.h"
#include "frontend/driver/cli_signals.h"
#include "frontend/driver/predict_inputs.h"

#include "runtime/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RESULTS = 32 };

/* A result of the model, and the array that its examples are written to. */
typedef struct Result {
    const char *path;
    ValueId value;
    RtDType dtype; /* in the file */
    int rank;
    int64_t dims[RT_MAX_RANK]; /* of all examples */
    AtomicFile file;
    bool open;
} Result;

typedef struct Prediction {
    Cli *cli;
    PredictInputs inputs;
    Result result[MAX_RESULTS];
    int n_results;
    float *row; /* one example of a bf16 result */
} Prediction;

/* ---- which form of the model ---- */

/* What there is to warn of, whoever builds the form says. */
static const Graph *lowered(Cli *cli, const Ast *ast, FrontendMode mode)
{
    FrontendOptions o = cli_frontend_options(cli, mode);
    const Graph *g = cli_lower(cli, ast, &o);
    if (g)
        diag_clear(cli->diag);
    return g;
}

/* With the train section's preparation when --input names its fields, else the model alone; files
 * that are called like no input come last. */
static ExitCode choose_form(Cli *cli, const Ast *ast, FrontendMode *mode)
{
    static const FrontendMode modes[] = {FRONTEND_PREDICT, FRONTEND_INFER};
    const Graph *form[2];
    PredictInputs inputs;
    for (int only = 0; only < 2; only++) {
        for (int i = 0; i < 2; i++) {
            *mode = modes[i];
            if (!only && !(form[i] = lowered(cli, ast, modes[i])))
                return EXIT_USER;
            if (predict_inputs_fit(cli, form[i], only, &inputs))
                return EXIT_OK;
        }
    }
    return predict_inputs_refuse(cli, form[0]->train.present ? form[0] : NULL, form[1]);
}

/* ---- results ---- */

/* y.npy of the first result, y.1.npy of the second. */
static const char *result_path(Cli *cli, int i)
{
    const char *out = cli->output.out, *dot = strrchr(out, '.');
    if (!i)
        return out;
    size_t n = dot && !strchr(dot, '/') ? (size_t)(dot - out) : strlen(out);
    return pool_printf(cli->pool, "%.*s.%d%s", (int)n, out, i, out + n);
}

static bool add_result(Prediction *p, const Graph *g, const Output *output)
{
    const Type *t = value_type(g, output->value);
    Result *r = &p->result[p->n_results];
    if (p->n_results == MAX_RESULTS || t->rank == 0 || t->dim[0] != p->inputs.batch ||
        t->rank > RT_MAX_RANK) {
        cli_error(p->cli, EXIT_USER, "E524",
                  p->n_results == MAX_RESULTS
                      ? NULL
                      : "--input NAME=FILE with the model's own input leaves "
                        "out what the train section makes of it",
                  "the result %s is %s: its first dimension has to count the %lld examples of the "
                  "input",
                  output->name, type_text(p->cli->pool, t), (long long)p->inputs.batch);
        return false;
    }
    *r = (Result){.path = result_path(p->cli, p->n_results++), .value = output->value};
    r->dtype = dtype_is_float(t->dtype) ? RT_F32 : (RtDType)t->dtype;
    r->rank = t->rank;
    memcpy(r->dims, t->dim, (size_t)t->rank * sizeof *r->dims);
    r->dims[0] = p->inputs.examples;
    return true;
}

static bool describe_results(Prediction *p, const Graph *g)
{
    for (size_t i = 0; i < g->outputs.len; i++)
        if (!add_result(p, g, &g->outputs.data[i]))
            return false;
    return true;
}

static bool file_error(Prediction *p, const RtError *err)
{
    cli_error(p->cli, EXIT_USER, "E411", NULL, "%s", err->message);
    return false;
}

static bool open_results(Prediction *p)
{
    RtError err;
    for (int i = 0; i < p->n_results; i++) {
        Result *r = &p->result[i];
        if (!atomic_open(&r->file, r->path, &err))
            return file_error(p, &err);
        r->open = true;
        if (!npy_write_header(&r->file, r->dtype, r->rank, r->dims, &err))
            return file_error(p, &err);
    }
    return true;
}

/* The first `n` examples of a batch; bf16 as f32. */
static bool write_examples(Prediction *p, const Session *s, Result *r, int64_t n)
{
    RtError err;
    const Type *t = value_type(s->graph, r->value);
    int64_t elements = type_elements(t) / p->inputs.batch * n;
    const void *data = session_at(s, r->value);
    if (t->dtype == DTYPE_BF16) {
        const uint16_t *bits = data;
        for (int64_t i = 0; i < elements; i++)
            p->row[i] = rt_bf16_to_f32(bits[i]);
        data = p->row;
    }
    return atomic_write(&r->file, data, elements * rt_dtype_bytes(r->dtype), &err) ||
           file_error(p, &err);
}

/* ---- running ---- */

static bool make_room(Prediction *p, const Graph *g)
{
    int64_t most = 1;
    for (int i = 0; i < p->n_results; i++) {
        const Type *t = value_type(g, p->result[i].value);
        if (t->dtype == DTYPE_BF16 && type_elements(t) > most)
            most = type_elements(t);
    }
    p->row = POOL_ARRAY(p->cli->pool, (size_t)most, float);
    return true;
}

static bool run_batches(Prediction *p, Session *s)
{
    Progress progress = progress_begin(2);
    uint64_t seed = session_seed(p->cli, s->graph);
    int64_t batch = p->inputs.batch, all = p->inputs.examples;
    bool ok = true;
    for (int64_t first = 0; ok && first < all && !signals_caught(); first += batch) {
        int64_t n = all - first < batch ? all - first : batch;
        StepNumbers numbers = {.micro = first / batch, .seed = seed};
        ok = predict_inputs_fill(s, &p->inputs, first) && session_run(s, numbers);
        for (int i = 0; ok && i < p->n_results; i++)
            ok = write_examples(p, s, &p->result[i], n);
        progress_show(p->cli, &progress, "%lld of %lld examples", (long long)(first + n),
                      (long long)all);
    }
    progress_clear(&progress);
    p->cli->state->ended_by = signals_caught();
    return ok && !signals_caught();
}

static bool commit_results(Prediction *p)
{
    RtError err;
    for (int i = 0; i < p->n_results; i++)
        if (!atomic_commit(&p->result[i].file, &err))
            return file_error(p, &err);
    return true;
}

static void report(const Prediction *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_results; i++) {
        const Result *r = &p->result[i];
        char shape[128];
        rt_shape_text(r->rank, r->dims, shape, sizeof shape);
        if (!p->cli->output.json && !p->cli->output.quiet)
            fprintf(stderr, "wrote %s: %s%s\n", r->path, rt_dtype_name(r->dtype), shape);
        json_t *dims = json_array();
        for (int k = 0; k < r->rank; k++)
            json_array_append_new(dims, json_integer(r->dims[k]));
        json_array_append_new(list, json_pack("{s:s,s:s,s:o}", "file", r->path, "dtype",
                                              rt_dtype_name(r->dtype), "shape", dims));
    }
    if (p->cli->output.json)
        cli_print_json(
            json_pack("{s:I,s:O}", "examples", (json_int_t)p->inputs.examples, "results", list));
    json_decref(list);
}

static bool predict(Prediction *p, const Program *program)
{
    const Graph *g = program->graph;
    RunningSession h = {0};
    bool ok = predict_inputs_fit(p->cli, g, true, &p->inputs) &&
              predict_inputs_open(p->cli, g, &p->inputs) && describe_results(p, g) &&
              make_room(p, g) && running_open(p->cli, program, &h) &&
              session_load_weights(&h.session, p->cli->run.checkpoint);
    if (ok) {
        signals_catch();
        ok = open_results(p) && run_batches(p, &h.session) && commit_results(p);
    }
    for (int i = 0; i < p->n_results; i++)
        if (p->result[i].open)
            atomic_abort(&p->result[i].file);
    if (ok)
        report(p);
    running_close(&h);
    predict_inputs_close(&p->inputs);
    return ok;
}

/* What is missing of the command line, before anything long. */
static ExitCode check_options(Cli *cli)
{
    if (!cli->run.checkpoint)
        return cli_error(cli, EXIT_USER, "E512", "add --checkpoint PATH",
                         "predict needs trained weights");
    if (!cli->output.out)
        return cli_error(cli, EXIT_USER, "E524", "add -o y.npy",
                         "predict needs a place for results");
    return cli_needs_file(cli, "--out", cli->output.out) && cli_can_write(cli, cli->output.out)
               ? EXIT_OK
               : EXIT_USER;
}

ExitCode verb_predict(Cli *cli)
{
    ExitCode code = check_options(cli);
    const Ast *ast = code == EXIT_OK ? cli_parse_model(cli) : NULL;
    if (!ast)
        return EXIT_USER;
    ProgramOptions o = {0};
    Program program;
    code = choose_form(cli, ast, &o.mode);
    if (code == EXIT_OK)
        code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    Prediction p = {.cli = cli};
    bool ok = predict(&p, &program);
    return ok || cli->state->ended_by ? EXIT_OK : machine_failure(cli);
}
