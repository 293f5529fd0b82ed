/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The positions of sinusoid(), compiled, against the formulas of Vaswani et al. 2017, section 3.5,
 * and of tensor2tensor's get_timing_signal_1d, in double. */
#include "check.h"
#include "frontend/language/frontend.h"
#include "tests/support/run/model_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Table {
    const char *text;
    int64_t length, dim;
    double base;
    bool halves;
} Table;

static double angle_of(const Table *t, int64_t position, int64_t column)
{
    double dim = (double)t->dim;
    double exponent = t->halves ? (double)(column % (t->dim / 2)) / fmax(dim / 2 - 1, 1)
                                : 2 * (double)(column / 2) / dim;
    return (double)position / pow(t->base, exponent);
}

static double expected(const Table *t, int64_t position, int64_t column)
{
    bool cosine = t->halves ? column >= t->dim / 2 : column % 2;
    double angle = angle_of(t, position, column);
    return cosine ? cos(angle) : sin(angle);
}

static bool build(Pool *pool, const char *text, Built *out)
{
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, "table.scrimp", text, strlen(text));
    FrontendOptions options = {.mode = FRONTEND_INFER};
    PassContext ctx = {.pool = pool};
    ctx.graph = ast ? frontend_lower(pool, diag, ast, &options) : NULL;
    if (!ctx.graph || !passes_run(&ctx, pipeline_infer, NULL, NULL)) {
        diag_print(diag, stderr, false);
        CHECK_MSG(false, "%s", text);
        return false;
    }
    const char *base = getenv("SCRIMP_BUILD"), *error = NULL;
    CodegenOptions code = {.jobs = 2};
    code.cache_dir = pool_printf(pool, "%s/test-cache", base ? base : "/tmp");
    *out = (Built){.pool = pool, .graph = ctx.graph, .plan = ctx.plan};
    out->step = codegen_compile(pool, out->graph, out->plan, &code, &error);
    CHECK_MSG(out->step, "%s", error);
    return out->step != NULL;
}

static void check_table(const Table *t)
{
    Pool *pool = pool_new();
    Built built;
    Running r;
    if (build(pool, t->text, &built) && run_open(&r, &built, 2)) {
        ValueId v = built.graph->outputs.data[0].value;
        r.built->step->run(&r.context);
        const float *got = run_at(&r, v);
        double worst = 0;
        CHECK(type_elements(value_type(built.graph, v)) == t->length * t->dim);
        for (int64_t i = 0; i < t->length; i++)
            for (int64_t d = 0; d < t->dim; d++) {
                double e = fabs((double)got[i * t->dim + d] - expected(t, i, d));
                worst = e <= worst ? worst : e; /* a NaN stays */
            }
        CHECK_MSG(worst <= 2e-6, "%s: off by %g", t->text, worst);
        run_close(&r);
    }
    pool_free(pool);
}

int main(void)
{
    static const Table tables[] = {
        {"model m(x: f32[1]) { return sinusoid(4096, 64) }", 4096, 64, 1e4, false},
        {"model m(x: f32[1]) { return sinusoid(1024, 62, layout = halves) }", 1024, 62, 1e4, true},
        {"model m(x: f32[1]) { return sinusoid(3, 2, layout = halves) }", 3, 2, 1e4, true},
        {"model m(x: f32[1]) { return sinusoid(1, 6) }", 1, 6, 1e4, false},
        {"model m(x: f32[1]) { return sinusoid(65_536, 10, base = 500) }", 65536, 10, 500, false},
        {"model m(x: f32[1]) { return sinusoid(7000, 4, base = 1) }", 7000, 4, 1, false},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        check_table(&tables[i]);
    return test_result();
}
