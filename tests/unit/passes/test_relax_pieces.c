/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What of a step the relaxed problem counts: contents where pieces may lie inside the whole, copies
 * where they never do, and nothing else than before where there are none. */
#include "check.h"
#include "ir/support/strbuf.h"
#include "tests/support/graph_text.h"

#include "passes/remat/bounds/bound.h"
#include "passes/remat/model/relax_pieces.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/report.h"

typedef struct Case {
    const char *name, *lines;
    int nodes, tensors; /* of the relaxed problem; 0: there is none */
    int64_t peak_bytes; /* of the base order on it */
    int64_t old_bytes;  /* on the problem itself */
} Case;

#define X "  %x = input {role=\"batch.x\"} : f32[64,16]\n"
#define W "  %w = input {role=\"batch.w\"} : f32[16,16]\n"

static const Case cases[] = {
    {"no pieces", X "  %a = exp %x : f32[64,16]\n  output out = %a\n", 0, 0, 0, 4096},
    {"element-wise inputs lie in the result",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = sin %x : f32[64,16]\n"
       "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
       "  %m = matmul %c, %c {ta=true} : f32[32,32]\n"
       "  output out = %m\n",
     4, 4, 8192 + 4096, 8192 + 8192},
    /* at the concat: the product and its copy */
    {"a product that only a concat reads is copied",
     X W "  %a = matmul %x, %w : f32[64,16]\n"
         "  %e = exp %x : f32[64,16]\n"
         "  %c = concat %a, %e {axis=1} : f32[64,32]\n"
         "  %m = matmul %c, %c {ta=true} : f32[32,32]\n"
         "  output out = %m\n",
     4, 6, 4096 + 8192, 8192 + 8192},
    {"a concat of copies only",
     X W "  %a = matmul %x, %w : f32[64,16]\n"
         "  %b = matmul %x, %w {tb=true} : f32[64,16]\n"
         "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
         "  output out = %c\n",
     0, 0, 0, 8192 + 8192},
    /* who reads the product late may read it in the concat; x is copied */
    {"a product that is read at a place as well",
     X W "  %a = matmul %x, %w : f32[64,16]\n"
         "  %c = concat %a, %x {axis=1} : f32[64,32]\n"
         "  %m = matmul %c, %c {ta=true} : f32[32,32]\n"
         "  %d = exp %a : f32[64,16]\n"
         "  output out = %d\n  output m = %m\n",
     4, 6, 8192 + 4096, 8192 + 8192},
    /* x is three atoms, of which the outer two are read late */
    {"slices are the atoms that they cover",
     X "  %s = slice %x {start=[0,0], limit=[64,4], step=[1,1]} : f32[64,4]\n"
       "  %t = slice %x {start=[0,12], limit=[64,16], step=[1,1]} : f32[64,4]\n"
       "  %m = matmul %x, %x {ta=true} : f32[16,16]\n"
       "  %a = mul %s, %t : f32[64,4]\n"
       "  output out = %a\n  output m = %m\n",
     2, 5, 4096 + 1024, 4096 + 2048 + 1024},
    /* a product reads no slice at its place */
    {"a slice that stays",
     X W "  %s = slice %x {start=[0,0], limit=[16,16], step=[1,1]} : f32[16,16]\n"
         "  %a = matmul %s, %w : f32[16,16]\n"
         "  output out = %a\n",
     0, 0, 0, 1024 + 4096 + 1024},
    /* boxes along two dims: 3 x 3 atoms, of which the piece is the one in the middle */
    {"a crop",
     X "  %s = slice %x {start=[16,4], limit=[48,12], step=[1,1]} : f32[32,8]\n"
       "  %m = matmul %x, %x {ta=true} : f32[16,16]\n"
       "  %a = exp %s : f32[32,8]\n"
       "  output out = %a\n  output m = %m\n",
     2, 11, 4096 + 1024, 4096 + 1024 + 1024},
    /* every other row: it is made, and takes no room */
    {"a slice with steps",
     X "  %s = slice %x {start=[0,0], limit=[64,16], step=[2,1]} : f32[32,16]\n"
       "  %m = matmul %x, %x {ta=true} : f32[16,16]\n"
       "  %a = exp %s : f32[32,16]\n"
       "  output out = %a\n  output m = %m\n",
     3, 4, 4096 + 1024, 4096 + 2048 + 1024},
    /* one that covers the ends of both inputs cuts them */
    {"a slice of a concat",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = sin %x : f32[64,16]\n"
       "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
       "  %s = slice %c {start=[0,8], limit=[64,24], step=[1,1]} : f32[64,16]\n"
       "  %m = matmul %c, %c {ta=true} : f32[32,32]\n"
       "  %e = exp %s : f32[64,16]\n"
       "  output out = %e\n  output m = %m\n",
     5, 7, 8192 + 4096, 8192 + 8192},
};

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    Graph *g = graph_of(pool, "step", c->lines);
    RematMapping map;
    RematProblem *p = remat_problem_from_graph(pool, g, NULL, &map);
    const AliasedProblem *x = relax_pieces(pool, g, p, &map, RELAX_PROVEN);
    const RematProblem *r = x ? &x->problem : NULL;
    RematSchedule base = remat_base_schedule(pool, p);
    int64_t peak = remat_check(pool, p, &base).peak_bytes;
    CHECK_MSG(peak == c->old_bytes, "%s: %lld bytes with copies", c->name, (long long)peak);
    CHECK_MSG((r != NULL) == (c->nodes > 0), "%s", c->name);
    if (r) {
        base = remat_base_schedule(pool, r);
        RematFigures f = remat_check(pool, r, &base);
        CHECK_MSG(r->n_nodes == c->nodes && r->n_tensors == c->tensors, "%s: %d nodes, %d tensors",
                  c->name, r->n_nodes, r->n_tensors);
        CHECK_MSG(f.ok && f.peak_bytes == c->peak_bytes, "%s: %lld bytes: %s", c->name,
                  (long long)f.peak_bytes, f.fault);
        RematPeakBound bound = remat_peak_bound_under_time(pool, r, 0, 0);
        CHECK_MSG(bound.bytes <= f.peak_bytes, "%s: order bound %lld", c->name,
                  (long long)bound.bytes);
    }
    pool_free(pool);
}

/* concat(x, x) over and over: 2^21 pieces in all, of which no more than 2^18 are looked at: the
 * 18th and the last concat make tensors of their own, which take no room. */
static void check_doubled(void)
{
    enum { LEVELS = 20 };
    Pool *pool = pool_new();
    StrBuf lines = strbuf_new(pool);
    strbuf_put(&lines, "  %x = input {role=\"batch.x\"} : f32[1,1]\n  %c0 = exp %x : f32[1,1]\n");
    for (int k = 0; k < LEVELS; k++)
        strbuf_printf(&lines, "  %%c%d = concat %%c%d, %%c%d {axis=1} : f32[1,%d]\n", k + 1, k, k,
                      2 << k);
    strbuf_printf(&lines, "  %%e = exp %%c%d : f32[1,%d]\n  output out = %%e\n", LEVELS,
                  1 << LEVELS);
    RematMapping map;
    Graph *g = graph_of(pool, "step", lines.text);
    RematProblem *p = remat_problem_from_graph(pool, g, NULL, &map);
    const RematProblem *r = &relax_pieces(pool, g, p, &map, RELAX_PROVEN)->problem;
    RematSchedule base = remat_base_schedule(pool, r);
    RematFigures f = remat_check(pool, r, &base);
    CHECK_MSG(f.ok && f.peak_bytes <= (4 << LEVELS), "%lld bytes: %s", (long long)f.peak_bytes,
              f.fault);
    CHECK_MSG(r->n_tensors == 5, "%d tensors", r->n_tensors);
    pool_free(pool);
}

/* At a reader of the concat, whose own result need not be counted: what is reported to be
 * in memory adds up to the bound. */
static void check_report(void)
{
    Pool *pool = pool_new();
    RematMapping map;
    Graph *g = graph_of(pool, "step",
                        X "  %a = exp %x : f32[64,16]\n"
                          "  %b = sin %x : f32[64,16]\n"
                          "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
                          "  %e = exp %c : f32[64,32]\n"
                          "  %u = sin %c : f32[64,32]\n"
                          "  output e = %e\n  output u = %u\n");
    RematProblem *p = remat_problem_from_graph(pool, g, NULL, &map);
    RematReport r = {.budget_bytes = INT64_MAX};
    const SolveContext c = {.relaxed = &relax_pieces(pool, g, p, &map, RELAX_PROVEN)->problem};
    bound_report_fill(pool, p, &c, &r);
    int64_t sum = r.bound_workspace_bytes;
    for (int k = 0; k < r.n_bound_tensors; k++)
        sum += r.bound_tensors[k].bytes;
    CHECK_MSG(r.bound_workspace_bytes == 0 && sum == r.lower_bound_bytes,
              "workspace of %lld, %lld in all, bound %lld", (long long)r.bound_workspace_bytes,
              (long long)sum, (long long)r.lower_bound_bytes);
    pool_free(pool);
}

int main(void)
{
    check_report();
    check_doubled();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    return test_result();
}
