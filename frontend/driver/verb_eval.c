/* SPDX-License-Identifier: GPL-3.0-or-later */
/* eval and generate: the inference form of a model with trained weights. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_session.h"

#include "runtime/rng.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool open_trained(Cli *cli, const Program *program, RunningSession *h)
{
    return running_open(cli, program, h) && session_load_weights(&h->session, cli->run.checkpoint);
}

static ExitCode no_weights(Cli *cli)
{
    return cli_error(cli, EXIT_USER, "E512", "add --checkpoint PATH", "%s needs trained weights",
                     cli->verb->name);
}

static void report_json(const Metrics *m, double loss)
{
    /* `accuracy` is a key even for a model that has none */
    json_t *o = json_pack("{s:o,s:n}", m->loss, cli_json_number(loss), "accuracy");
    for (int i = 0; i < m->n_numbers; i++)
        json_object_set_new(o, m->number[i].name, cli_json_number(m->number[i].value[0]));
    for (int i = 0; i < m->n_tables; i++)
        json_object_set_new(o, m->table[i].name, metric_table_json(&m->table[i]));
    cli_print_json(o);
}

static void report_evaluation(const Session *s, double loss)
{
    const Metrics *m = &s->metrics;
    if (s->cli->output.json) {
        report_json(m, loss);
        return;
    }
    printf("%s %.6f\n", m->loss, loss);
    for (int i = 0; i < m->n_numbers; i++)
        printf("%s %.6f\n", m->number[i].name, m->number[i].value[0]);
    for (int i = 0; i < m->n_tables; i++)
        metric_table_print(stdout, &m->table[i]);
}

ExitCode verb_eval(Cli *cli)
{
    if (!cli->run.checkpoint)
        return no_weights(cli);
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    Program program;
    ProgramOptions o = {.mode = FRONTEND_EVAL};
    ExitCode code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    RunningSession h = {0};
    uint64_t seed = session_seed(cli, program.graph);
    Dataset *data = session_open_data(cli, program.graph, false, seed);
    double loss = 0;
    bool ok = data && session_same_vocab(cli, data, cli->run.checkpoint) &&
              open_trained(cli, &program, &h);
    ok = ok && session_tell_held_out(cli, data, "") && session_evaluate(&h.session, data, &loss);
    if (ok)
        report_evaluation(&h.session, loss);
    if (ok && isnan(loss) && dataset_eval_batches(data) > 0)
        fputs(
            "warning: the loss is not finite though all weights are: the model overflows on these "
            "data\n",
            stderr);
    running_close(&h);
    dataset_close(data);
    return ok ? EXIT_OK : machine_failure(cli);
}

/* --- generate --- */

typedef struct Writer {
    Cli *cli;
    const Ast *ast;
    Session *session;
    Vocab vocab;
    bool numbers; /* neither characters nor bytes: tokens are written as numbers */
    ValueId ids, logits;
    int64_t window, n_vocab; /* tokens the model sees, logits of each */
    int64_t choices;         /* logits that stand for a token */
    int32_t *token;          /* everything so far */
    int64_t n_tokens;
    int32_t *rank; /* scratch of top-k */
    double *probability;
    uint64_t seed;
} Writer;

static bool find_language_model(Writer *w)
{
    const Graph *g = w->session->graph;
    w->logits = graph_output(g, "logits");
    w->ids = VALUE_NONE;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_input && value_type(g, n->out[0])->dtype == DTYPE_I32 &&
            value_type(g, n->out[0])->rank == 2)
            w->ids = n->out[0];
    }
    if (w->logits == VALUE_NONE || w->ids == VALUE_NONE || value_type(g, w->logits)->rank != 3 ||
        value_type(g, w->ids)->dim[0] != 1) {
        cli_error(w->cli, EXIT_USER, "E514", "its batch size must be the option N",
                  "generate needs a model from token ids i32[N,T] to logits [N,T,V]");
        return false;
    }
    w->window = value_type(g, w->ids)->dim[1];
    w->n_vocab = value_type(g, w->logits)->dim[2];
    return true;
}

static const float *next_logits(Writer *w)
{
    int64_t seen = w->n_tokens < w->window ? w->n_tokens : w->window;
    int32_t *ids = session_at(w->session, w->ids);
    memset(ids, 0, (size_t)w->window * sizeof *ids);
    memcpy(ids, w->token + w->n_tokens - seen, (size_t)seen * sizeof *ids);
    if (!session_run(w->session, (StepNumbers){.micro = w->n_tokens, .seed = w->seed}))
        return NULL;
    const float *all = session_at(w->session, w->logits);
    return all + (seen - 1) * w->n_vocab;
}

static const double *rank_key;

static int by_probability(const void *a, const void *b)
{
    double x = rank_key[*(const int32_t *)a], y = rank_key[*(const int32_t *)b];
    if (x != y)
        return x > y ? -1 : 1;
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : 1;
}

static int32_t likeliest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static int32_t sample(Writer *w, const float *logits)
{
    int64_t n = w->choices, keep = w->cli->generate.top_k && w->cli->generate.top_k < n
                                       ? w->cli->generate.top_k
                                       : n;
    int32_t best = likeliest(logits, n);
    if (w->cli->generate.temperature <= 0)
        return best;
    for (int32_t i = 0; i < n; i++) {
        w->rank[i] = i;
        w->probability[i] =
            exp(((double)logits[i] - (double)logits[best]) / w->cli->generate.temperature);
    }
    if (keep < n) {
        rank_key = w->probability;
        qsort(w->rank, (size_t)n, sizeof *w->rank, by_probability);
    }
    double total = 0;
    for (int64_t i = 0; i < keep; i++)
        total += w->probability[w->rank[i]];
    double u = (double)rt_rng_bits(w->seed, (uint64_t)w->n_tokens, 0x67656eu, 0) / 4294967296.0;
    double left = u * total;
    for (int64_t i = 0; i < keep; i++) {
        left -= w->probability[w->rank[i]];
        if (left < 0)
            return w->rank[i];
    }
    return w->rank[0];
}

/* "464 2068 7586": how many, -1 after a message. */
static int64_t encode_numbers(const char *text, int64_t n_vocab, int32_t *out, RtError *err)
{
    int64_t n = 0;
    for (char *end; *(text += strspn(text, " \n")); text = end) {
        errno = 0;
        long long v = strtoll(text, &end, 10);
        if (end == text || (*end && !strchr(" \n", *end)) || errno || v < 0 || v >= n_vocab) {
            rt_error(err, "'%.20s' is not a list of token numbers below %lld", text,
                     (long long)n_vocab);
            return -1;
        }
        out[n++] = (int32_t)v;
    }
    return n;
}

static int64_t encode_prompt(Writer *w, const char *prompt, int64_t length, RtError *err)
{
    if (w->numbers)
        return encode_numbers(prompt, w->n_vocab, w->token, err);
    return vocab_encode(&w->vocab, prompt, length, w->token, length, err);
}

/* As the train section says, which is no part of what generates. */
static bool reads_characters(Cli *cli, const Ast *ast)
{
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_TRAIN);
    const Graph *g = frontend_lower(cli->pool, cli->diag, ast, &o);
    diag_clear(cli->diag); /* of a training that is not asked for */
    return g && g->train.present && g->train.data_chars;
}

/* Without one, tokens would be bytes, which these are not. */
static bool no_vocabulary(Cli *cli)
{
    cli_error(cli, EXIT_USER, "E505",
              "give --checkpoint the folder that `train` wrote: trainer.json there has it",
              "%s has no vocabulary, and the model's tokens are characters", cli->run.checkpoint);
    return false;
}

static bool prepare(Writer *w)
{
    RtError err = {0};
    Cli *cli = w->cli;
    bool known = checkpoint_read_vocab(cli->run.checkpoint, &w->vocab, &err);
    if (!known)
        w->vocab = vocab_bytes();
    if (!known && reads_characters(cli, w->ast))
        return no_vocabulary(cli);
    w->numbers = !w->vocab.chars && w->n_vocab > w->vocab.size;
    const char *prompt = cli->generate.prompt && *cli->generate.prompt ? cli->generate.prompt
                         : w->numbers                                  ? "0"
                                                                       : "\n";
    int64_t length = (int64_t)strlen(prompt);
    w->token = POOL_ARRAY(cli->pool, (size_t)(length + cli->generate.tokens), int32_t);
    w->rank = POOL_ARRAY(cli->pool, (size_t)w->n_vocab, int32_t);
    w->probability = POOL_ARRAY(cli->pool, (size_t)w->n_vocab, double);
    w->n_tokens = encode_prompt(w, prompt, length, &err);
    if (w->n_tokens < 1) {
        cli_error(cli, EXIT_USER, "E515", NULL, "--prompt: %s", err.message);
        return false;
    }
    w->choices = w->numbers ? w->n_vocab : w->vocab.size;
    if (w->choices <= w->n_vocab)
        return true;
    cli_error(cli, EXIT_USER, "E505", NULL, "the vocabulary has %d tokens, the model %lld",
              w->vocab.size, (long long)w->n_vocab);
    return false;
}

static void print_token(const Writer *w, int32_t token)
{
    char bytes[4];
    if (w->numbers)
        printf("%d ", token);
    else
        fwrite(bytes, 1, (size_t)vocab_decode(&w->vocab, token, bytes), stdout);
}

static bool write_text(Writer *w)
{
    for (int64_t i = 0; i < w->n_tokens; i++)
        print_token(w, w->token[i]);
    for (int64_t i = 0; i < w->cli->generate.tokens; i++) {
        const float *logits = next_logits(w);
        if (!logits)
            return false;
        int32_t next = sample(w, logits);
        w->token[w->n_tokens++] = next;
        print_token(w, next);
        if (fflush(stdout) != 0)
            return true; /* main says so */
    }
    putchar('\n');
    return true;
}

ExitCode verb_generate(Cli *cli)
{
    if (!cli->run.checkpoint)
        return no_weights(cli);
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    static const OptionDef batch_one = {"N", "1"};
    Program program;
    ProgramOptions o = {.mode = FRONTEND_INFER, .extra_defs = &batch_one, .n_extra_defs = 1};
    ExitCode code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    RunningSession h = {0};
    bool ok = open_trained(cli, &program, &h);
    Writer w = {.cli = cli, .ast = ast, .session = &h.session};
    w.seed = session_seed(cli, program.graph);
    ok = ok && find_language_model(&w) && prepare(&w);
    ok = ok && write_text(&w);
    vocab_free(&w.vocab);
    running_close(&h);
    return ok ? EXIT_OK : machine_failure(cli);
}
