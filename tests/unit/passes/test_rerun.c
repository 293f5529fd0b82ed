/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps of a few lines without their recomputation, in bytes counted by hand. */
#include "check.h"
#include "ir/verify.h"
#include "passes/rerun.h"
#include "tests/support/graph_text.h"

#include <string.h>

typedef struct Case {
    const char *name, *lines;
    RerunEffect is; /* but for its nodes */
    const char *instead;
} Case;

#define X    "  %x = input {role=\"batch.x\"} : f32[64,16]\n" /* 4096 bytes */
#define W    "  %w = input {role=\"batch.w\"} : f32[16,16]\n" /* 1024 */
#define RUNS " @remat(of=%a, by=hand)\n"

static const Case cases[] = {
    {"a tensor lives on, and cannot be written over",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = sin %a : f32[64,16]\n"
       "  %s = sum %b {axes=[0,1]} : f32[]\n"
       "  %a~1 = exp %x : f32[64,16]" RUNS "  %c = sin %a~1 : f32[64,16]\n"
       "  output s = %s\n  output c = %c\n",
     {.slot = 3,
      .before_slot = 0,
      .bytes = 4096,
      .from = 2,
      .to = 3,
      .spans_peak = true,
      .without_peak_bytes = 4096 + 4096 + 64,
      .n_instead = 1},
     "%a"},
    {"a piece whose reader reads no pieces is copied",
     X W "  %a = exp %x : f32[64,16]\n"
         "  %b = sin %x : f32[64,16]\n"
         "  %c = concat %a, %b {axis=1, joined=[0,1]} : f32[64,32]\n"
         "  %d = exp %c : f32[64,32]\n"
         "  %e = sum %d {axes=[0,1]} : f32[]\n"
         "  %a~1 = exp %x : f32[64,16]" RUNS "  %m = matmul %a~1, %w : f32[64,16]\n"
         "  output m = %m\n  output e = %e\n",
     {.slot = 5,
      .before_slot = 0,
      .bytes = 4096,
      .from = 4,
      .to = 5,
      .spans_peak = true,
      .without_peak_bytes = 4096 + 1024 + 4096 + 8192,
      .n_instead = 1},
     "%a"},
    {"a piece that is read where it lies keeps the whole",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = sin %x : f32[64,16]\n"
       "  %c = concat %a, %b {axis=1, joined=[0,1]} : f32[64,32]\n"
       "  %d = exp %c : f32[64,32]\n"
       "  %e = sum %d {axes=[0,1]} : f32[]\n"
       "  %a~1 = exp %x : f32[64,16]" RUNS "  %m = exp %a~1 : f32[64,16]\n"
       "  output m = %m\n  output e = %e\n",
     {.slot = 5,
      .before_slot = 0,
      .bytes = 8192,
      .from = 4,
      .to = 5,
      .spans_peak = true,
      .without_peak_bytes = 8192 + 8192 + 64,
      .n_instead = 1},
     "%c"},
    {"what only the run has read is gone, and its reader waits for no one",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = sin %a : f32[64,16]\n"
       "  %s = sum %b {axes=[0,1]} : f32[]\n"
       "  %a~1 = exp %x : f32[64,16]" RUNS "  %b~1 = sin %a~1 : f32[64,16] @remat(of=%b, by=hand)\n"
       "  %c = exp %b~1 : f32[64,16]\n"
       "  output s = %s\n  output c = %c\n",
     {.slot = 4,
      .before_slot = 1,
      .bytes = 4096,
      .from = 3,
      .to = 4,
      .spans_peak = false,
      .without_peak_bytes = 4096 + 64,
      .n_instead = 1},
     "%b"},
};

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    const Graph *g = graph_of(pool, "forward", c->lines);
    RerunEffects all = g ? rerun_effects(pool, g) : (RerunEffects){0};
    const char *fault = "";
    CHECK_MSG(all.n > 0, "%s", c->name);
    if (all.n > 0) {
        const RerunEffect *e = &all.effect[all.n - 1];
        CHECK_MSG(e->slot == c->is.slot && e->before_slot == c->is.before_slot, "%s", c->name);
        CHECK_MSG(e->bytes == c->is.bytes && e->from == c->is.from && e->to == c->is.to,
                  "%s: %lld bytes in [%d, %d)", c->name, (long long)e->bytes, e->from, e->to);
        CHECK_MSG(e->spans_peak == c->is.spans_peak, "%s", c->name);
        CHECK_MSG(e->without_peak_bytes == c->is.without_peak_bytes, "%s: peak %lld", c->name,
                  (long long)e->without_peak_bytes);
        CHECK_MSG(e->n_instead == c->is.n_instead &&
                      strcmp(graph_value(g, e->instead[0])->name, c->instead) == 0,
                  "%s: %s", c->name, graph_value(g, e->instead[0])->name);
        CHECK_MSG(graph_verify(rerun_without(pool, g, e->node), &fault), "%s: %s", c->name, fault);
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    return test_result();
}
