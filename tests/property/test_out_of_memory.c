/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 11: every allocation of compiling a model may fail.  Text, graph, passes, recomputation,
 * plan and the list of kernels are run with the k-th allocation failing, k from 1 to the end: each
 * failure arrives at the pool's recovery point, freeing that pool frees everything (leaks show
 * under AddressSanitizer), and the next compilation is unharmed.  SCRIMP_ATTEMPTS: how many k
 * for a model, at equal distances. */
#include "check.h"

#include "codegen/build/step.h"
#include "frontend/language/frontend.h"
#include "ir/print.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "tests/support/plan_request.h"
#include "tests/support/random_model.h"
#include "tests/support/sample.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* AddressSanitizer makes a compilation ten times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { ATTEMPTS = 6 };
#else
enum { ATTEMPTS = 12 };
#endif

/* Malformed text, too: diagnostics allocate. */
static const char broken[] = "model m(x: f32[4, 8]) {\n"
                             "  y = x |> l: liner(3) |> relu\n"
                             "  x = x |> linear(3)\n"
                             "  return [x, z\n"
                             "}\n";

static bool compile(Pool *pool, const char *text)
{
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, "memory.scrimp", text, strlen(text));
    FrontendOptions options = {.mode = FRONTEND_TRAIN};
    /* On one thread: the first one more leaves memory of its stack behind for the next.  What is
     * lost by others shows in unit_ir_test_parallel and unit_passes_test_portfolio. */
    PassContext ctx = {.pool = pool};
    ctx.request =
        request_of(pool, NULL, (PlanSettings){.budget = "min", .effort = 0.1, .n_threads = 1});
    ctx.graph = ast ? frontend_lower(pool, diag, ast, &options) : NULL;
    if (!ctx.graph || !passes_run(&ctx, pipeline_train, NULL, NULL))
        return false;
    StrBuf b = strbuf_new(pool);
    graph_print(ctx.graph, (PrintOptions){0}, &b);
    const char *error;
    StepProgram *p = step_program(
        pool, ctx.graph, ctx.plan,
        (StepTarget){.backend = &cpu_backend, .target = target_find("generic")}, &error);
    return p->n_calls > 0 && step_key(p)[0];
}

typedef enum Outcome { COMPILED, REFUSED, NO_MEMORY } Outcome;

static size_t allocated_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static Outcome attempt_once(const char *text, uint64_t fail_at)
{
    jmp_buf oom;
    pool_fail_at(fail_at);
    Pool *volatile pool = pool_new();
    if (!pool)
        return NO_MEMORY;
    volatile Outcome result = NO_MEMORY;
    if (setjmp(oom) == 0) {
        pool_on_oom(pool, &oom);
        result = compile(pool, text) ? COMPILED : REFUSED;
    }
    pool_free(pool);
    return result;
}

static Outcome attempt(const char *text, uint64_t fail_at)
{
    size_t before = allocated_bytes();
    Outcome result = attempt_once(text, fail_at);
    size_t after = allocated_bytes();
    CHECK_MSG(after <= before, "%zu bytes lost when allocation %llu fails", after - before,
              (unsigned long long)fail_at);
    return result;
}

/* Number of allocations of an undisturbed compilation: what it leaves of a failure that it does not
 * reach. */
static uint64_t count_allocations(const char *text, Outcome expected)
{
    const uint64_t beyond = UINT64_C(1) << 60;
    CHECK_MSG(attempt(text, beyond) == expected, "undisturbed\n%s", text);
    return beyond - pool_fail_at(0);
}

static void check_text(const char *text, Outcome expected)
{
    uint64_t n = count_allocations(text, expected);
    uint64_t stride = n / (uint64_t)sample_number("SCRIMP_ATTEMPTS", ATTEMPTS) + 1;
    for (uint64_t k = 1; k <= n; k += stride)
        CHECK_MSG(attempt(text, k) == NO_MEMORY, "allocation %llu of %llu\n%s",
                  (unsigned long long)k, (unsigned long long)n, text);
    CHECK_MSG(n > 50 && attempt(text, 0) == expected, "after %llu failures\n%s",
              (unsigned long long)n, text);
    printf("%llu allocations, every %llu\n", (unsigned long long)n, (unsigned long long)stride);
}

/* The allocator's per-thread cache counts what lies in it as allocated: start again without it. */
static void count_exactly(char **argv)
{
    static const char name[] = "GLIBC_TUNABLES";
    if (getenv(name) || setenv(name, "glibc.malloc.tcache_count=0", 1) != 0)
        return;
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    (void)argc;
    count_exactly(argv);
    attempt_once(broken, 0); /* what libraries keep for good */
    check_text(broken, REFUSED);
    Pool *pool = pool_new();
    for (int family = 0; family < MODEL_FAMILIES; family++)
        check_text(random_model(pool, 4, (ModelFamily)family, 3, (ModelLimits){0}), COMPILED);
    pool_free(pool);
    return test_result();
}
