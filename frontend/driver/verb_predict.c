/* SPDX-License-Identifier: GPL-3.0-or-later */
/* predict: what a trained model makes of given examples. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_progress.h"
#include "frontend/driver/cli_signals.h"
#include "frontend/driver/predict_inputs.h"
#include "frontend/driver/predict_text.h"

#include "runtime/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_RESULTS = 32 };

/* A result of the model, and the array that its examples are written to. */
typedef struct Result {
    const char *path;
    ValueId value;
    RtDType dtype; /* in the file */
    int rank;
    int64_t dims[RT_MAX_RANK]; /* of all examples */
    float *wide;               /* a batch of a bf16 result */
    AtomicFile file;           /* of an array */
    bool open;
} Result;

typedef struct Prediction {
    Cli *cli;
    PredictInputs inputs;
    Result result[MAX_RESULTS];
    int n_results;
    bool as_text; /* a line for each example: to standard output, or to --out */
    TextResult text_result[MAX_RESULTS];
    PredictText text;
    AtomicFile text_file;
    bool text_open;
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

/* y.npy of the first result, y.1.npy of the second; as text y and y.1. */
static const char *result_path(const Prediction *p, int i)
{
    Cli *cli = p->cli;
    const char *out = p->as_text ? "y" : cli->output.out, *dot = strrchr(out, '.');
    if (!i)
        return out;
    size_t n = dot && !strchr(dot, '/') ? (size_t)(dot - out) : strlen(out);
    return pool_printf(cli->pool, "%.*s.%d%s", (int)n, out, i, out + n);
}

/* A line holds a number, or a row of them. */
static bool add_text_result(Prediction *p, const char *name, const Type *t)
{
    const Result *r = &p->result[p->n_results - 1];
    p->text_result[p->n_results - 1] = (TextResult){.name = r->path,
                                                    .dtype = r->dtype,
                                                    .row = t->rank == 2,
                                                    .width = t->rank == 2 ? t->dim[1] : 1};
    if (t->rank <= 2)
        return true;
    cli_error(p->cli, EXIT_USER, "E524", "add -o y.npy",
              "the result %s is %s: too many dimensions for a line of text", name,
              type_text(p->cli->pool, t));
    return false;
}

static bool add_result(Prediction *p, const Graph *g, const Output *output)
{
    const Type *t = value_type(g, output->value);
    if (p->n_results == MAX_RESULTS) {
        cli_error(p->cli, EXIT_USER, "E524", "let the model return fewer",
                  "the model has more than %d results", MAX_RESULTS);
        return false;
    }
    Result *r = &p->result[p->n_results];
    *r = (Result){.path = result_path(p, p->n_results++), .value = output->value};
    r->dtype = dtype_is_float(t->dtype) ? RT_F32 : (RtDType)t->dtype;
    r->rank = t->rank;
    memcpy(r->dims, t->dim, (size_t)t->rank * sizeof *r->dims);
    r->dims[0] = p->inputs.examples;
    return !p->as_text || add_text_result(p, output->name, t);
}

/* An auxiliary loss counts no examples, nor does the first dimension of what has time in front. */
static bool counts_examples(const Prediction *p, const Type *t)
{
    return t->rank > 0 && t->rank <= RT_MAX_RANK && t->dim[0] == p->inputs.batch;
}

/* What the model could return in the place of a result that counts no examples. */
static const char *way_to_examples(const Prediction *p, const Type *t)
{
    for (int k = 1; k < t->rank; k++)
        if (t->dim[k] == p->inputs.batch)
            return pool_printf(p->cli->pool,
                               "let the model return the result transpose(y, 0, %d), too, in which "
                               "examples come first",
                               k);
    return "let the model return a result for each example, too, such as its logits";
}

/* There are results of examples beside it, or else there is nothing to write. */
static bool leave_out(Prediction *p, const Output *output, const Type *t, bool others)
{
    const char *type = type_text(p->cli->pool, t);
    long long batch = p->inputs.batch;
    if (!others)
        cli_error(p->cli, EXIT_USER, "E524", way_to_examples(p, t),
                  "the result %s is %s: its first dimension has to count the %lld examples of the "
                  "input",
                  output->name, type, batch);
    else if (!p->cli->output.quiet)
        fprintf(stderr,
                "note: the result %s is left out: it is %s, whose first dimension does not count "
                "the %lld examples of the input\n",
                output->name, type, batch);
    return others;
}

static bool describe_results(Prediction *p, const Graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->outputs.len; i++)
        any = any || counts_examples(p, value_type(g, g->outputs.data[i].value));
    for (size_t i = 0; i < g->outputs.len; i++) {
        const Output *o = &g->outputs.data[i];
        const Type *t = value_type(g, o->value);
        if (counts_examples(p, t) ? !add_result(p, g, o) : !leave_out(p, o, t, any))
            return false;
    }
    return true;
}

static bool file_error(Prediction *p, const RtError *err)
{
    cli_error(p->cli, EXIT_USER, "E411", NULL, "%s", err->message);
    return false;
}

static bool open_text(Prediction *p)
{
    RtError err;
    p->text_open = p->cli->output.out && atomic_open(&p->text_file, p->cli->output.out, &err);
    return !p->cli->output.out || p->text_open || file_error(p, &err);
}

static bool open_results(Prediction *p)
{
    RtError err;
    if (p->as_text)
        return open_text(p);
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

/* A batch of a result; bf16 as f32. */
static const void *result_data(Prediction *p, const Session *s, Result *r)
{
    const Type *t = value_type(s->graph, r->value);
    const void *data = session_at(s, r->value);
    if (t->dtype != DTYPE_BF16)
        return data;
    int64_t n = type_elements(t);
    if (!r->wide)
        r->wide = POOL_ARRAY(p->cli->pool, (size_t)n + 1, float);
    for (int64_t i = 0; i < n; i++)
        r->wide[i] = rt_bf16_to_f32(((const uint16_t *)data)[i]);
    return r->wide;
}

/* The first `n` examples of a batch. */
static bool write_arrays(Prediction *p, const Session *s, int64_t n)
{
    RtError err;
    for (int i = 0; i < p->n_results; i++) {
        Result *r = &p->result[i];
        int64_t elements = type_elements(value_type(s->graph, r->value)) / p->inputs.batch * n;
        if (!atomic_write(&r->file, result_data(p, s, r), elements * rt_dtype_bytes(r->dtype),
                          &err))
            return file_error(p, &err);
    }
    return true;
}

/* Examples first .. first + n as text, with what stands in front of all and behind. */
static void print_examples(Prediction *p, int64_t first, int64_t n, FILE *f)
{
    if (first == 0)
        predict_text_begin(&p->text, p->inputs.examples, f);
    predict_text_examples(&p->text, first, n, f);
    if (first + n == p->inputs.examples)
        predict_text_end(&p->text, f);
}

/* Of a file all or nothing is there. */
static bool put_in_file(Prediction *p, int64_t first, int64_t n)
{
    RtError err;
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f)
        print_examples(p, first, n, f);
    bool made = f && !ferror(f);
    made = f && fclose(f) == 0 && made;
    bool ok = made ? atomic_write(&p->text_file, text, (int64_t)length, &err)
                   : rt_error(&err, "out of memory");
    free(text);
    return ok || file_error(p, &err);
}

static bool write_text(Prediction *p, const Session *s, int64_t first, int64_t n)
{
    for (int i = 0; s && i < p->n_results; i++)
        p->text_result[i].data = result_data(p, s, &p->result[i]);
    if (p->text_open)
        return put_in_file(p, first, n);
    print_examples(p, first, n, stdout);
    return true;
}

static bool write_examples(Prediction *p, const Session *s, int64_t first, int64_t n)
{
    return p->as_text ? write_text(p, s, first, n) : write_arrays(p, s, n);
}

/* ---- running ---- */

static void show_progress(const Prediction *p, Progress *progress, int64_t done)
{
    if (!p->as_text || p->text_open) /* lines of text are progress */
        progress_show(p->cli, progress, "%lld of %lld examples", (long long)done,
                      (long long)p->inputs.examples);
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
        ok = predict_inputs_fill(s, &p->inputs, first) && session_run(s, numbers) &&
             write_examples(p, s, first, n);
        show_progress(p, &progress, first + n);
        if (p->as_text && !p->text_open && fflush(stdout) != 0)
            break; /* main says so */
    }
    if (ok && all == 0 && p->as_text)
        ok = write_text(p, NULL, 0, 0);
    progress_clear(&progress);
    p->cli->state->ended_by = signals_caught();
    return ok && !signals_caught();
}

static bool commit_results(Prediction *p)
{
    RtError err;
    if (p->text_open)
        return atomic_commit(&p->text_file, &err) || file_error(p, &err);
    for (int i = 0; !p->as_text && i < p->n_results; i++)
        if (!atomic_commit(&p->result[i].file, &err))
            return file_error(p, &err);
    return true;
}

static void report_text(const Prediction *p)
{
    if (!p->text_open)
        return;
    if (p->cli->output.json)
        cli_print_json(json_pack("{s:I,s:[{s:s}]}", "examples", (json_int_t)p->inputs.examples,
                                 "results", "file", p->cli->output.out));
    else if (!p->cli->output.quiet)
        fprintf(stderr, "wrote %s: a line for each of %lld examples\n", p->cli->output.out,
                (long long)p->inputs.examples);
}

static void report(const Prediction *p)
{
    if (p->as_text) {
        report_text(p);
        return;
    }
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

/* A line for each example, with the classes that the first result has logits of. */
static void prepare_text(Prediction *p, const Ast *ast, const Graph *g)
{
    const Cli *cli = p->cli;
    p->text = (PredictText){.pool = cli->pool,
                            .result = p->text_result,
                            .n = p->n_results,
                            .json = cli->output.json && !cli->output.out};
    for (int i = 0; i < p->inputs.n && !p->text.files; i++)
        if (p->inputs.examples && examples_file(p->inputs.input[i].examples, 0))
            p->text.files = p->inputs.input[i].examples;
    if (p->n_results && g->train.present)
        p->text.classes = predict_classes(p->cli, ast, value_type(g, p->result[0].value));
}

static bool predict(Prediction *p, const Ast *ast, const Program *program)
{
    const Graph *g = program->graph;
    RunningSession h = {0};
    bool ok = predict_inputs_fit(p->cli, g, true, &p->inputs) &&
              predict_inputs_open(p->cli, g, &p->inputs) && describe_results(p, g) &&
              running_open(p->cli, program, &h) &&
              session_load_weights(&h.session, p->cli->run.checkpoint);
    if (ok) {
        prepare_text(p, ast, g);
        signals_catch();
        ok = open_results(p) && run_batches(p, &h.session) && commit_results(p);
    }
    for (int i = 0; i < p->n_results; i++)
        if (p->result[i].open)
            atomic_abort(&p->result[i].file);
    if (p->text_open)
        atomic_abort(&p->text_file);
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
    return !cli->output.out || (cli_needs_file(cli, "--out", cli->output.out) &&
                                cli_can_write(cli, cli->output.out))
               ? EXIT_OK
               : EXIT_USER;
}

/* Arrays are written where --out says a file that is not called .csv. */
static bool writes_text(const Cli *cli)
{
    const char *dot = cli->output.out ? strrchr(cli->output.out, '.') : NULL;
    return !cli->output.out || (dot && strcasecmp(dot, ".csv") == 0);
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
    Prediction p = {.cli = cli, .as_text = writes_text(cli)};
    bool ok = predict(&p, ast, &program);
    predict_classes_free(&p.text.classes);
    return ok || cli->state->ended_by ? EXIT_OK : machine_failure(cli);
}
