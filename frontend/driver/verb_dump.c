/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dump: every stage of the compilation as text. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_dump.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_machine.h"

#include "codegen/build/codegen.h"
#include "ir/print.h"
#include "passes/remat/external/external.h"
#include "passes/remat/model/step_problem.h"

#include <stdio.h>
#include <string.h>

typedef enum Stage {
    STAGE_AST,
    STAGE_IR,
    STAGE_GRAD,
    STAGE_REMAT,
    STAGE_PLAN,
    STAGE_CODE,
    STAGE_ASM,
    STAGE_CUDA,
    N_STAGES
} Stage;

typedef struct StageRow {
    const char *name;
    const char *end; /* the pass before which pipeline_train stops: "" = at its end, NULL = before
                        all of it */
} StageRow;

/* grad and remat differ by masks and recomputations alone. */
static const StageRow stages[N_STAGES] = {
    [STAGE_AST] = {"ast", NULL},      [STAGE_IR] = {"ir", NULL},
    [STAGE_GRAD] = {"grad", "masks"}, [STAGE_REMAT] = {"remat", "transposes"},
    [STAGE_PLAN] = {"plan", ""},      [STAGE_CODE] = {"code", ""},
    [STAGE_ASM] = {"asm", ""},        [STAGE_CUDA] = {"cuda", ""},
};

static bool stage_from_name(const char *name, size_t length, Stage *out)
{
    for (int i = 0; i < N_STAGES; i++)
        if (strlen(stages[i].name) == length && memcmp(stages[i].name, name, length) == 0) {
            *out = (Stage)i;
            return true;
        }
    return false;
}

static ExitCode unknown_stage(Cli *cli, const char *name, int length)
{
    return cli_error(cli, EXIT_USER, "E303", "stages: ast, ir, grad, remat, plan, code, asm, cuda",
                     "no stage is called '%.*s'", length, name);
}

static const char *stage_pipeline(const Cli *cli, Stage stage)
{
    return stages[stage].end ? cli_dump_pipeline(cli, stages[stage].end, NULL) : "";
}

/* False after a message, which names the first stage where the pass of --dump-after runs. */
static bool dump_after_runs(Cli *cli, Stage stage)
{
    const char *name = cli->dump.dump_after;
    int first = STAGE_GRAD;
    while (name && first < STAGE_PLAN && strcmp(name, "all") != 0 &&
           !pipeline_has(stage_pipeline(cli, (Stage)first), name))
        first++;
    return cli_dump_after_runs(cli, stage_pipeline(cli, stage),
                               pool_printf(cli->pool, "for --stage=%s", stages[stage].name),
                               pool_printf(cli->pool, "add --stage=%s", stages[first].name));
}

static ExitCode stage_program(Cli *cli, const Ast *ast, Stage stage, Program *out)
{
    void *user = NULL;
    ProgramOptions o = {.mode = FRONTEND_TRAIN, .pipeline = stage_pipeline(cli, stage)};
    o.observer = cli_dump_after(cli, &user);
    o.user = user;
    return cli_build(cli, ast, &o, out);
}

/* The step as a graph for `plan --graph` and other systems: operations not fused, in the order in
 * which differentiation leaves them. */
static ExitCode dump_step_json(Cli *cli, const Ast *ast)
{
    Program program;
    ProgramOptions o = {.mode = FRONTEND_TRAIN, .pipeline = pipeline_before(cli->pool, "fuse")};
    const CostModel *cost =
        cost_model_find(cli->plan.cost ? cli->plan.cost : cli_default_cost(cli));
    if (!cost || !cost->cost)
        return cli_error(cli, EXIT_USER, "E412", "`scrimp plan --help` lists the cost models",
                         cost ? "a graph cannot have the measured costs of '%s'"
                              : "no cost model is called '%s'",
                         cli->plan.cost);
    ExitCode code = cli_build(cli, ast, &o, &program);
    if (code != EXIT_OK)
        return code;
    NodeCosts costs = {cost, NULL, NULL};
    RematMapping mapping;
    const RematProblem *p = remat_problem_from_graph(cli->pool, program.graph, &costs, &mapping);
    return cli_write_file(cli, "-", external_write(cli->pool, external_from_problem(cli->pool, p)));
}

static void put_program(const Cli *cli, const Program *p, StrBuf *out)
{
    graph_print(p->graph, (PrintOptions){.no_loc = cli->output.no_loc}, out);
    if (p->plan)
        cli_print_plan(p->graph, p->plan, out);
}

static ExitCode stage_text(Cli *cli, const Ast *ast, Stage stage, StrBuf *out)
{
    Program p;
    ExitCode code = stage_program(cli, ast, stage, &p);
    if (code == EXIT_OK)
        put_program(cli, &p, out);
    return code;
}

/* A stage with the line that makes it. */
static ExitCode dump_stage(Cli *cli, const Ast *ast, Stage stage, StrBuf *out)
{
    Program p;
    ExitCode code = stage_program(cli, ast, stage, &p);
    if (code != EXIT_OK)
        return code;
    if (cli->output.dot) {
        graph_print_dot(p.graph, out);
        return EXIT_OK;
    }
    if (stages[stage].end)
        cli_put_opt_line(cli, cli_dump_pipeline(cli, stages[stage].end, p.graph), out);
    put_program(cli, &p, out);
    return EXIT_OK;
}

/* --- --print-after-all --- */

typedef struct AfterAll {
    Cli *cli;
    const char *end;
    const char *before; /* the graph in front of the pass, as text */
    int passes, done;
} AfterAll;

static void put_after(const AfterAll *a, const char *what, const Graph *g, StrBuf *out)
{
    strbuf_printf(out, "# after %s (%d of %d)\n", what, a->done, a->passes);
    cli_put_opt_line(
        a->cli, cli_pipeline_first(a->cli->pool, cli_dump_pipeline(a->cli, a->end, g), a->done),
        out);
}

/* The last graph has a plan beside it: it is printed when that is there.  Of a graph that is as the
 * pass before left it this is said, as LLVM's -print-changed does. */
static void print_after(void *user, const Pass *pass, const Graph *g, double seconds)
{
    AfterAll *a = user;
    StrBuf out = strbuf_new(a->cli->pool), graph = strbuf_new(a->cli->pool);
    (void)seconds;
    graph_print(g, (PrintOptions){.no_loc = a->cli->output.no_loc}, &graph);
    a->done++;
    if (a->done < a->passes && strcmp(graph.text, a->before) == 0) {
        printf("# after %s (%d of %d): unchanged\n", pass->name, a->done, a->passes);
        return;
    }
    put_after(a, pass->name, g, &out);
    if (a->done < a->passes)
        strbuf_put(&out, graph.text);
    a->before = graph.text;
    fputs(out.text, stdout);
}

static ExitCode print_all(Cli *cli, const Ast *ast, const char *end)
{
    StrBuf text = strbuf_new(cli->pool);
    Program p = {0};
    AfterAll a = {.cli = cli, .end = end};
    ProgramOptions o = {.mode = FRONTEND_TRAIN,
                        .pipeline = cli_dump_pipeline(cli, end, NULL),
                        .observer = print_after,
                        .user = &a};
    ExitCode code = stage_text(cli, ast, STAGE_IR, &text);
    if (code != EXIT_OK)
        return code;
    a.passes = cli_pipeline_count(o.pipeline);
    a.before = text.text;
    printf("# before all passes: --stage=ir, the FILE.ir of the lines below\n%s", text.text);
    code = cli_build(cli, ast, &o, &p);
    if (code != EXIT_OK)
        return code;
    text = strbuf_new(cli->pool);
    put_program(cli, &p, &text);
    fputs(text.text, stdout);
    return EXIT_OK;
}

static ExitCode dump_after_all(Cli *cli, const Ast *ast, Stage stage)
{
    if (stage < STAGE_GRAD || stage > STAGE_PLAN || cli->output.dot || cli->output.json ||
        cli->dump.diff || cli->dump.dump_after)
        return cli_error(cli, EXIT_USER, "E407", "leave the other one out",
                         "--print-after-all is for the stages grad, remat and plan, without --dot, "
                         "--json, --diff and --dump-after");
    return print_all(cli, ast, stages[stage].end);
}

static ExitCode dump_code(Cli *cli, const Ast *ast, Stage stage)
{
    Program p;
    const char *error;
    if (stage == STAGE_CUDA && !cli->build.device)
        cli->build.device = "cuda";
    ExitCode code = stage_program(cli, ast, stage, &p);
    if (code != EXIT_OK)
        return code;
    CodegenOptions o = {.march = cli->build.march,
                        .jobs = (int)cli->build.jobs,
                        .backend = cli_backend(cli),
                        .arch = cli_any_arch(cli)};
    CodeDump what = stage == STAGE_CODE  ? DUMP_CALLS
                    : stage == STAGE_ASM ? DUMP_ASSEMBLY
                                         : DUMP_TEXT;
    if (codegen_dump(cli->pool, p.graph, p.plan, &o, what, stdout, &error))
        return EXIT_OK;
    return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
}

/* --- differences --- */

typedef struct Lines {
    const char **line;
    size_t n;
} Lines;

static Lines split_lines(Pool *pool, char *text)
{
    VEC(const char *) v = {0};
    for (char *p = text; *p;) {
        vec_push(pool, &v, p);
        char *end = strchr(p, '\n');
        if (!end)
            break;
        *end = '\0';
        p = end + 1;
    }
    return (Lines){v.data, v.len};
}

/* Myers' greedy difference (1986): trace[d] holds the furthest x on every diagonal after d edits.
 */
typedef struct Trace {
    long **v;
    long edits;
} Trace;

static Trace shortest_edit(Pool *pool, Lines a, Lines b)
{
    long n = (long)a.n, m = (long)b.n, max = n + m;
    VEC(long *) rows = {0};
    long *v = POOL_ARRAY(pool, (size_t)(2 * max + 3), long) + max + 1;
    for (long d = 0; d <= max; d++) {
        for (long k = -d; k <= d; k += 2) {
            long x = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1;
            while (x < n && x - k < m && strcmp(a.line[x], b.line[x - k]) == 0)
                x++;
            v[k] = x;
            if (x >= n && x - k >= m) {
                vec_push(pool, &rows, NULL);
                return (Trace){rows.data, d};
            }
        }
        long *copy = POOL_ARRAY(pool, (size_t)(2 * d + 3), long);
        memcpy(copy, v - d - 1, (size_t)(2 * d + 3) * sizeof *copy);
        vec_push(pool, &rows, copy + d + 1);
    }
    return (Trace){rows.data, max};
}

/* Marks lines of a that go and lines of b that come. */
static void mark_edits(Trace t, Lines a, Lines b, bool *gone, bool *come)
{
    long x = (long)a.n, y = (long)b.n;
    for (long d = t.edits; d > 0; d--) {
        const long *v = t.v[d - 1];
        long k = x - y;
        bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
        long from_k = down ? k + 1 : k - 1, from_x = v[from_k], from_y = from_x - from_k;
        if (down)
            come[from_y] = true;
        else
            gone[from_x] = true;
        x = from_x;
        y = from_y;
    }
}

enum { DIFF_CONTEXT = 2 };

static bool near_change(const bool *changed, size_t n, size_t i)
{
    size_t from = i > DIFF_CONTEXT ? i - DIFF_CONTEXT : 0;
    for (size_t k = from; k < n && k <= i + DIFF_CONTEXT; k++)
        if (changed[k])
            return true;
    return false;
}

static void print_difference(Pool *pool, Lines a, Lines b)
{
    bool *gone = POOL_ARRAY(pool, a.n + 1, bool), *come = POOL_ARRAY(pool, b.n + 1, bool);
    mark_edits(shortest_edit(pool, a, b), a, b, gone, come);
    bool skipped = false;
    for (size_t i = 0, k = 0; i < a.n || k < b.n;) {
        if (i < a.n && gone[i]) {
            printf("-%s\n", a.line[i++]);
        } else if (k < b.n && come[k]) {
            printf("+%s\n", b.line[k++]);
        } else {
            bool show = near_change(gone, a.n, i) || near_change(come, b.n, k);
            if (show)
                printf(" %s\n", a.line[i]);
            else if (!skipped)
                puts(" ...");
            skipped = !show;
            i++;
            k++;
            continue;
        }
        skipped = false;
    }
}

static ExitCode dump_diff(Cli *cli, const Ast *ast)
{
    const char *dots = strstr(cli->dump.diff, "..");
    Stage from, to;
    if (!dots)
        return cli_error(cli, EXIT_USER, "E303", "write --diff grad..remat",
                         "--diff compares two stages, not '%s'", cli->dump.diff);
    if (!stage_from_name(cli->dump.diff, (size_t)(dots - cli->dump.diff), &from))
        return unknown_stage(cli, cli->dump.diff, (int)(dots - cli->dump.diff));
    if (!stage_from_name(dots + 2, strlen(dots + 2), &to))
        return unknown_stage(cli, dots + 2, (int)strlen(dots + 2));
    if (from == STAGE_AST || to == STAGE_AST || from > STAGE_PLAN || to > STAGE_PLAN)
        return cli_error(cli, EXIT_USER, "E303", "write --diff grad..remat",
                         "--diff compares ir, grad, remat and plan");
    if (!dump_after_runs(cli, from > to ? from : to))
        return EXIT_USER;
    StrBuf a = strbuf_new(cli->pool), b = strbuf_new(cli->pool);
    ExitCode code = stage_text(cli, ast, from, &a);
    if (code == EXIT_OK)
        code = stage_text(cli, ast, to, &b);
    if (code == EXIT_OK)
        print_difference(cli->pool, split_lines(cli->pool, a.text), split_lines(cli->pool, b.text));
    return code;
}

ExitCode verb_dump(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    if (cli->dump.diff && !cli->dump.print_after_all)
        return dump_diff(cli, ast);
    Stage stage = cli->dump.print_after_all ? STAGE_PLAN : STAGE_IR;
    if (cli->dump.stage && !stage_from_name(cli->dump.stage, strlen(cli->dump.stage), &stage))
        return unknown_stage(cli, cli->dump.stage, (int)strlen(cli->dump.stage));
    if (cli->dump.print_after_all)
        return dump_after_all(cli, ast, stage);
    if (!dump_after_runs(cli, stage))
        return EXIT_USER;
    if (cli->output.json && cli->dump.dump_after)
        return cli_error(cli, EXIT_USER, "E407", "leave one of them out",
                         "--dump-after and --json exclude each other");
    if (cli->output.json && stage != STAGE_GRAD)
        return cli_error(cli, EXIT_USER, "E303", "write --stage=grad --json",
                         "only the stage grad has a form in JSON");
    if (cli->output.json)
        return dump_step_json(cli, ast);
    if (stage == STAGE_AST) {
        frontend_print_ast(ast, stdout);
        return EXIT_OK;
    }
    if (stage >= STAGE_CODE)
        return dump_code(cli, ast, stage);
    StrBuf text = strbuf_new(cli->pool);
    ExitCode code = dump_stage(cli, ast, stage, &text);
    if (code == EXIT_OK)
        fputs(text.text, stdout);
    return code;
}
