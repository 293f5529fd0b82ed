/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compile: the training step ahead of time. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_codegen.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_session.h"
#include "frontend/driver/cli_signals.h"
#include "frontend/driver/cli_tune.h"
#include "frontend/driver/inference_weights.h"

#include "codegen/build/codegen.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* model.scrimp -> model.EXTENSION in the current folder. */
static const char *default_path(Cli *cli, const char *extension)
{
    if (strcmp(cli->file, "-") == 0)
        return pool_printf(cli->pool, "step.%s", extension);
    const char *slash = strrchr(cli->file, '/');
    const char *base = slash ? slash + 1 : cli->file;
    return pool_printf(cli->pool, "%.*s.%s", (int)strcspn(base, "."), base, extension);
}

/* out/net.so -> out/net.EXTENSION */
static const char *path_beside(Cli *cli, const char *so, const char *extension)
{
    const char *slash = strrchr(so, '/'), *dot = strrchr(so, '.');
    size_t n = dot && (!slash || dot > slash + 1) ? (size_t)(dot - so) : strlen(so);
    return pool_printf(cli->pool, "%.*s.%s", (int)n, so, extension);
}

/* "my-step.so" -> "my_step" */
static const char *name_of_file(Cli *cli, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    bool starts = n > 0 && (isalpha((unsigned char)*base) || *base == '_');
    char *name = pool_printf(cli->pool, "%s%.*s", starts ? "" : "step_", (int)n, base);
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return name;
}

static bool check_name(Cli *cli, const char *name)
{
    bool ok = isalpha((unsigned char)*name) || *name == '_';
    for (const char *p = name; *p; p++)
        ok = ok && (isalnum((unsigned char)*p) || *p == '_');
    if (!ok)
        cli_error(cli, EXIT_USER, "E801", "write letters, digits and _, a letter first",
                  "--name %s: not an identifier of C", name);
    return ok;
}

/* Asked before minutes of compiling, and in the user's words: the linker's would name a temporary
 * file. */
static bool can_write_beside(Cli *cli, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash ? pool_printf(cli->pool, "%.*s", (int)(slash - path + 1), path) : ".";
    if (access(folder, W_OK) == 0)
        return true;
    cli_error(cli, EXIT_USER, "E801", NULL, "cannot write %s: %s", path, strerror(errno));
    return false;
}

/* --- inference --- */

/* What is compiled; trained: of an inference. */
typedef struct Compiled {
    Program program;
    TrainedWeights trained;
} Compiled;

/* Nothing to do for a training step. */
static bool write_weights(Cli *cli, const Compiled *compiled, const char *path)
{
    const Program *p = &compiled->program;
    if (!cli->build.inference)
        return true;
    if (!inference_weights_write(cli, &compiled->trained, p, path))
        return false;
    fprintf(stderr, "wrote %s: %s of weights, batch normalization folded into %d layer%s\n", path,
            bytes_text(cli->pool, p->plan->persistent_bytes), p->n_folded,
            p->n_folded == 1 ? "" : "s");
    return true;
}

/* --- for a device --- */

/* models/mlp.scrimp -> mlp */
static const char *default_folder(Cli *cli)
{
    const char *path = default_path(cli, "");
    return pool_printf(cli->pool, "%.*s", (int)strlen(path) - 1, path);
}

/* "out/step/" -> "out/step" */
static const char *without_slash(Cli *cli, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return pool_printf(cli->pool, "%.*s", (int)n, path);
}

static ExitCode compile_for_device(Cli *cli, const Compiled *compiled)
{
    const Program *p = &compiled->program;
    DeviceFiles f = {.inference = cli->build.inference};
    const char *error, *given = cli->output.out;
    f.folder = given ? without_slash(cli, given) : default_folder(cli);
    f.name = cli->output.name ? cli->output.name : name_of_file(cli, f.folder);
    f.header_path = cli->output.header ? cli->output.header
                                       : pool_printf(cli->pool, "%s/%s.h", f.folder, f.name);
    if (!cli_device_archs(cli, &f.arch, &f.n_archs) || !can_write_beside(cli, f.folder) ||
        (cli->output.header && !can_write_beside(cli, f.header_path)))
        return EXIT_USER;
    CodegenOptions c = cli_codegen_options(cli, f.arch[0]);
    if (!codegen_export_device(cli->pool, p->graph, p->plan, &c, &f, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    fprintf(
        stderr,
        "wrote the folder %s: %s.so, manifest.json and kernels for %s; and %s: names begin with "
        "%s_, an arena of %s\n",
        f.folder, f.name, strcmp(cli->build.device, "cuda") ? cli->build.device : f.arch[0],
        f.header_path, f.name, bytes_text(cli->pool, p->plan->arena_bytes));
    const char *weights = pool_printf(cli->pool, "%s/%s.weights", f.folder, f.name);
    return write_weights(cli, compiled, weights) ? EXIT_OK : EXIT_USER;
}

/* --- for the host --- */

static ExitCode compile_for_host(Cli *cli, const Compiled *compiled)
{
    const Program *p = &compiled->program;
    CodegenOptions c = cli_codegen_options(cli, NULL);
    const char *so = cli->output.out ? cli->output.out : default_path(cli, "so");
    const char *header = cli->output.header ? cli->output.header : path_beside(cli, so, "h"),
               *error;
    if (!can_write_beside(cli, so) || !can_write_beside(cli, header))
        return EXIT_USER;
    const char *name = cli->output.name ? cli->output.name : name_of_file(cli, so);
    const ExportFiles files = {name, so, header, cli->build.inference};
    if (!codegen_export(cli->pool, p->graph, p->plan, &c, &files, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    fprintf(stderr, "wrote %s and %s: names begin with %s_, an arena of %s\n", so, header, name,
            bytes_text(cli->pool, p->plan->arena_bytes));
    return write_weights(cli, compiled, path_beside(cli, so, "weights")) ? EXIT_OK : EXIT_USER;
}

/* An inference has weights from the start, and nothing to recompute. */
static bool options_fit(Cli *cli)
{
    bool inference = cli->build.inference;
    if (inference && !cli->run.checkpoint)
        cli_error(cli, EXIT_USER, "E512", "add --checkpoint PATH",
                  "compile --inference needs trained weights");
    else if (!inference && cli->run.checkpoint)
        cli_error(cli, EXIT_USER, "E407", "add --inference, or leave --checkpoint out",
                  "--checkpoint: a training step has no weights of its own");
    else if (inference && (cli->plan.budget || cli->plan.solver))
        cli_error(cli, EXIT_USER, "E407", "leave --budget and --solver out",
                  "--inference is planned for least memory, and recomputes nothing");
    else
        return true;
    return false;
}

ExitCode verb_compile(Cli *cli)
{
    if (!cli_needs_file(cli, "--out", cli->output.out) ||
        !cli_needs_file(cli, "--header", cli->output.header))
        return EXIT_USER;
    if ((cli->output.name && !check_name(cli, cli->output.name)) || !options_fit(cli))
        return EXIT_USER;
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    Compiled compiled = {0};
    ProgramOptions o = {.mode = FRONTEND_TRAIN};
    if (cli->build.inference) {
        if (!inference_weights_read(cli, ast, &compiled.trained))
            return EXIT_USER;
        o.mode = FRONTEND_INFER;
        o.pipeline = pool_printf(cli->pool, "fold_norms,%s", pipeline_infer);
    }
    ExitCode code = cli_build(cli, ast, &o, &compiled.program);
    if (code == EXIT_OK)
        code = tune_if_asked(cli, &compiled.program);
    cli->state->ended_by = signals_caught();
    if (code != EXIT_OK || cli->state->ended_by)
        return code;
    return cli_backend(cli) == &cpu_backend ? compile_for_host(cli, &compiled)
                                            : compile_for_device(cli, &compiled);
}
