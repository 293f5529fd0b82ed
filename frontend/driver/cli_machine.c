/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_machine.h"

#include <stdio.h>
#include <string.h>

static bool is_arch(const char *device)
{
    if (strncmp(device, "sm_", 3) != 0)
        return false;
    size_t digits = strspn(device + 3, "0123456789");
    const char *rest = device + 3 + digits; /* sm_90a: with what only this architecture has */
    return digits >= 2 && digits <= 3 && (!*rest || strcmp(rest, "a") == 0);
}

typedef VEC(const char *) Names;

/* "sm_80,sm_90": its parts. */
static Names parts_of(Pool *pool, const char *device)
{
    Names names = {0};
    for (const char *at = device; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        vec_push(pool, &names, pool_printf(pool, "%.*s", (int)strcspn(at, ","), at));
    return names;
}

/* One architecture, or several for a verb that makes code for machines to come. */
static bool are_archs(const Cli *cli, const char *device)
{
    Names names = parts_of(cli->pool, device);
    bool ok = names.len == 1 || (names.len > 1 && cli->verb->run == verb_compile);
    for (size_t i = 0; i < names.len; i++)
        ok = ok && is_arch(names.data[i]);
    return ok;
}

bool cli_is_exact(const Cli *cli)
{
    return cli->build.exact || cli->run.keep_denormals;
}

static bool known_arithmetic(Cli *cli)
{
    if (cli->build.fast && cli->build.exact)
        cli_error(cli, EXIT_USER, "E806", "leave one of them out",
                  "--exact and --fast exclude each other");
    else if (cli->build.fast && !cli_backend(cli)->library)
        cli_error(cli, EXIT_USER, "E806", "leave it out, or add --device cuda",
                  "--fast: the libraries it asks for are those of CUDA devices");
    else if (cli->run.keep_denormals && cli_backend(cli) == &cuda_backend)
        cli_error(cli, EXIT_USER, "E806", "leave one of them out",
                  "--keep-denormals is for the processor: kernels of --device %s have zeros in "
                  "their place",
                  cli->build.device);
    else
        return true;
    return false;
}

bool cli_device_known(Cli *cli)
{
    const char *d = cli->build.device;
    if (!d || strcmp(d, "cpu") == 0 || strcmp(d, "cuda") == 0 || are_archs(cli, d))
        return known_arithmetic(cli);
    cli_error(cli, EXIT_USER, "E806",
              "cpu (the default), cuda, or an architecture of CUDA devices such as sm_90; "
              "`compile` takes several, such as sm_80,sm_90",
              "--device %s: there is no such device", d);
    return false;
}

const Backend *cli_backend(const Cli *cli)
{
    const char *d = cli->build.device;
    return d && strcmp(d, "cpu") != 0 ? &cuda_backend : &cpu_backend;
}

/* Asked once; without one, why. */
static const CudaIdentity *device_here(Cli *cli, RtError *err)
{
    DriverState *s = cli->state;
    CudaIdentity is;
    if (!s->device && !s->no_device) {
        if (cuda_device_here(&is, err))
            *(s->device = POOL_NEW(cli->pool, CudaIdentity)) = is;
        else
            s->no_device = pool_strdup(cli->pool, err->message);
    }
    if (!s->device)
        rt_error(err, "%s", s->no_device);
    return s->device;
}

static bool no_device(Cli *cli, const RtError *err)
{
    cli_error(cli, EXIT_USER, "E807", "without --device it runs on the processor",
              "--device %s: %s", cli->build.device, err->message);
    return false;
}

bool cli_device_arch(Cli *cli, const char **arch)
{
    RtError err;
    *arch = NULL;
    if (cli_backend(cli) == &cpu_backend)
        return true;
    const CudaIdentity *here = device_here(cli, &err);
    if (!here)
        return no_device(cli, &err);
    *arch = here->arch;
    if (!is_arch(cli->build.device) || strcmp(cli->build.device, *arch) == 0)
        return true;
    cli_error(cli, EXIT_USER, "E807",
              "--device cuda takes what is there; dump shows code for others",
              "--device %s: the device here is %s", cli->build.device, *arch);
    return false;
}

bool cli_device_archs(Cli *cli, const char *const **arch, int *n)
{
    RtError err;
    Names names = parts_of(cli->pool, cli->build.device);
    if (strcmp(cli->build.device, "cuda") == 0) {
        const CudaIdentity *here = device_here(cli, &err);
        if (!here) {
            cli_error(cli, EXIT_USER, "E807",
                      "--device sm_90 names what to compile for; sm_80,sm_90 is possible, too",
                      "--device cuda: %s", err.message);
            return false;
        }
        names.data[0] = here->arch;
    }
    *arch = names.data;
    *n = (int)names.len;
    return true;
}

const char *cli_any_arch(const Cli *cli)
{
    if (cli_backend(cli) == &cpu_backend)
        return NULL;
    return is_arch(cli->build.device) ? cli->build.device : "sm_90";
}

const char *cli_library_archs(Cli *cli)
{
    const char *d = cli->build.device;
    if (cli_backend(cli) == &cpu_backend || cli->build.exact || strcmp(d, "cuda") != 0)
        return d;
    RtError none;
    const CudaIdentity *here = device_here(cli, &none);
    return here ? here->arch : "sm_90";
}

/* Left to kernels and graphs when a budget is suggested. */
static int64_t room_for_kernels(const CudaDevice *d)
{
    const int64_t most = (int64_t)256 << 20;
    int64_t part = cuda_device_memory(d).total / 16;
    return part < most ? part : most;
}

/* left: what the device has for an arena; -1: it has one already. */
static const char *way_out_of(Cli *cli, int64_t left)
{
    if (cli->verb->run == verb_verify)
        return "a smaller batch: whatever the budget, verify also runs the step that keeps all";
    if (!cli_takes(cli, "budget") || left == 0)
        return "a smaller batch";
    if (left < 0)
        return "a smaller --budget or batch leaves more beside the arena";
    return pool_printf(cli->pool, "--budget %lld, or a smaller batch", (long long)left);
}

static bool no_room(Cli *cli, int64_t left, const RtError *err)
{
    cli->state->no_room = true;
    cli_error(cli, EXIT_BUDGET, "E401", way_out_of(cli, left), "%s", err->message);
    return false;
}

bool cli_device_error(Cli *cli, const char *code, const RtError *err)
{
    if (cuda_out_of_memory())
        return no_room(cli, -1, err);
    cli_error(cli, EXIT_USER, code, NULL, "%s", err->message);
    return false;
}

const char *machine_processor_name(Pool *pool)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    const char *name = "unknown";
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        name = pool_printf(pool, "%.*s", (int)strcspn(colon + 1, "\n"), colon + 1);
        break;
    }
    if (f)
        fclose(f);
    return name + (*name == ' ');
}

ExitCode machine_failure(const Cli *cli)
{
    return cli->state->no_room ? EXIT_BUDGET : EXIT_USER;
}

static void tell_device(const Cli *cli, const CudaDevice *d, int64_t bytes)
{
    if (!cli->output.quiet)
        fprintf(stderr, "device: %s (%s), with an arena of %s\n", cuda_device_name(d),
                cuda_device_arch(d), bytes_text(cli->pool, bytes));
}

static bool open_device(Cli *cli, int64_t bytes, Machine *m)
{
    RtError err;
    int64_t left = -1;
    if (cli_backend(cli) == &cpu_backend)
        return true;
    cli->state->device_opened = true;
    m->cuda = cuda_device_open(&err);
    if (!m->cuda)
        return cuda_out_of_memory() ? no_room(cli, 0, &err) : no_device(cli, &err);
    if (cuda_arena_map(m->cuda, bytes, &left, &err)) {
        tell_device(cli, m->cuda, bytes);
        return true;
    }
    if (left < 0)
        return cli_device_error(cli, "E807", &err);
    left -= room_for_kernels(m->cuda);
    return no_room(cli, left > 0 ? left / 64 * 64 : 0, &err);
}

/* The memory of a machine whose device, if any, is open. */
static bool open_rest(Cli *cli, int64_t bytes, Machine *m)
{
    RtError err;
    bool ok = m->cuda ? arena_reserve(&m->arena, bytes, &err) : arena_map(&m->arena, bytes, &err);
    if (!ok)
        cli_error(cli, EXIT_USER, "E804", NULL, "%s", err.message);
    return ok;
}

static bool open_threads(Cli *cli, Machine *m)
{
    RtError err;
    m->threads = threads_new((int)cli->build.threads, &err);
    if (!m->threads)
        cli_error(cli, EXIT_USER, "E804", NULL, "%s", err.message);
    else if (cli->run.keep_denormals)
        threads_keep_denormals(m->threads);
    return m->threads != NULL;
}

bool machine_open(Cli *cli, int64_t bytes, Machine *out)
{
    *out = (Machine){0};
    return open_threads(cli, out) && open_device(cli, bytes, out) && open_rest(cli, bytes, out);
}

bool machine_open_beside(Cli *cli, const Machine *first, int64_t bytes, Machine *out)
{
    *out = (Machine){.cuda = first->cuda, .borrowed = first->cuda != NULL};
    return open_threads(cli, out) && open_rest(cli, bytes, out);
}

const char *machine_memory_text(Pool *pool, const Machine *m)
{
    if (!m->cuda)
        return "";
    CudaMemory u = cuda_device_memory(m->cuda);
    return pool_printf(pool,
                       "arena %s, inputs on their way %s, kernels and graphs %s; %s were in use "
                       "before (the context, other programs)",
                       bytes_text(pool, u.arena), bytes_text(pool, u.staging),
                       bytes_text(pool, u.beside), bytes_text(pool, u.at_start));
}

void machine_close(Machine *m)
{
    threads_free(m->threads);
    if (!m->borrowed)
        cuda_device_close(m->cuda); /* copies to the image may be under way */
    if (m->arena.base)
        arena_unmap(&m->arena);
    *m = (Machine){0};
}
