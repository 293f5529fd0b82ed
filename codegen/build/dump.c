/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text of generated code: the list of kernels and calls, and assembly. */
#include "codegen/build/compile.h"
#include "codegen/build/job.h"
#include "codegen/build/scratch.h"
#include "codegen/build/supports.h"
#include "codegen/build/workers.h"
#include "codegen/jit/jit.h"

static void print_calls(const StepProgram *p, FILE *out)
{
    fprintf(out, "# target %s: %d calls of %d kernels\n", p->arch ? p->arch : p->target->name,
            p->n_calls, p->n_kernels);
    for (int i = 0; i < p->n_calls; i++) {
        const Call *c = &p->calls[i];
        const Node *n = graph_node(p->graph, c->node);
        fprintf(out, "%4d  kernel %-4d %-40s tasks %-6lld %s  at", i, p->kernel_of[i], c->label,
                (long long)c->n_tasks, graph_value(p->graph, n->out[0])->name);
        for (int k = 0; k < c->n_bufs; k++) {
            fprintf(out, " %lld", (long long)step_buffer_offset(p, c, k));
            for (int d = 0; c->loops && d < c->loops->depth; d++)
                fprintf(out, "%+lld", (long long)c->loops->stride[k * c->loops->depth + d]);
        }
        for (int d = 0; c->loops && d < c->loops->depth; d++)
            fprintf(out, "%s%lld", d ? " x " : "  steps ", (long long)c->loops->steps[d]);
        fputc('\n', out);
    }
    fputs("\n# kernels\n", out);
    for (int k = 0; k < p->n_kernels; k++)
        fprintf(out, "%4d  %-40s %s\n", k, p->calls[p->first_call[k]].label,
                step_kernel_symbol(p, k));
}

typedef struct AssemblyJob {
    const StepProgram *program;
    const char *path;
} AssemblyJob;

/* libgccjit's mistakes stay in a child. */
static bool write_assembly(void *user, int kernel, char *message, size_t size)
{
    const AssemblyJob *job = user;
    const StepProgram *p = job->program;
    Jit *j = job_kernel(p, kernel);
    const char *error = NULL;
    bool ok = jit_write_assembly(j, pool_printf(p->pool, "%s%d.s", job->path, kernel), &error);
    return job_end(j, ok, error, message, size);
}

static const char *kernel_label(void *user, int kernel)
{
    const AssemblyJob *job = user;
    return job->program->calls[job->program->first_call[kernel]].label;
}

static void copy_text(const char *path, FILE *out)
{
    FILE *f = fopen(path, "r");
    char chunk[4096];
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        fwrite(chunk, 1, n, out);
    if (f)
        fclose(f);
}

static bool print_assembly(const StepProgram *p, const CodegenOptions *o, FILE *out,
                           const char **error)
{
    Scratch scratch;
    if (!scratch_open(p->pool, &scratch, error))
        return false;
    AssemblyJob job = {p, scratch_path(p->pool, &scratch, "kernel", "")};
    Workers w = {.n_jobs = p->n_kernels,
                 .n_children = o->jobs,
                 .job = write_assembly,
                 .name = kernel_label,
                 .user = &job,
                 .tmpdir = scratch.dir};
    bool ok = workers_run(p->pool, &w, error);
    for (int k = 0; k < p->n_kernels && ok; k++) {
        fprintf(out, "# kernel %d: %s\n", k, p->calls[p->first_call[k]].label);
        copy_text(pool_printf(p->pool, "%s%d.s", job.path, k), out);
    }
    scratch_close(&scratch);
    return ok;
}

static void print_text(const StepProgram *p, FILE *out)
{
    fputs(p->backend->included(p->pool, p), out);
    for (int k = 0; k < p->n_kernels; k++) {
        Pool *pool = pool_new_child(p->pool);
        const Call *call = &p->calls[p->first_call[k]];
        const char *text = p->backend->text(pool, p, k);
        if (call->library)
            fprintf(out, "/* kernel %d: %s, by %s\n%s*/\n\n", k, call->label, call->library, text);
        else
            fprintf(out, "/* kernel %d: %s */\n%s\n", k, call->label, text);
        pool_free(pool);
    }
}

bool codegen_dump(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                  CodeDump what, FILE *out, const char **error)
{
    const Target *target = codegen_target(pool, o->march, false, error);
    if (!target)
        return false;
    StepTarget to = step_target(o, target);
    to.only_look = what != DUMP_ASSEMBLY;
    bool has =
        what == DUMP_CALLS || (what == DUMP_TEXT ? to.backend->text != NULL : to.backend->linked);
    if (!has) {
        *error = pool_printf(pool, "--device %s has no such stage", to.backend->name);
        return false;
    }
    *error = codegen_unsupported_by(pool, to.backend, g);
    const StepProgram *p = *error ? NULL : step_program(pool, g, plan, to, error);
    if (!p)
        return false;
    if (what == DUMP_ASSEMBLY)
        return print_assembly(p, o, out, error);
    if (what == DUMP_TEXT)
        print_text(p, out);
    else
        print_calls(p, out);
    return true;
}
