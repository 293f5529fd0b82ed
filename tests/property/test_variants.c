/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tuning cannot change a bit: every variant of every family of kernels computes what the default
 * computes, bit for bit, whatever the grouping of tasks, and the default what the reference
 * evaluator does.  Products of all transpositions, convolutions and both gradients, with sums of
 * several blocks, with bf16 and with epilogues, in sizes at which every variant has code of its
 * own.  SCRIMP_TARGETS: of how many targets besides this machine's. */
#include "check.h"
#include "op_cases.h"
#include "op_run.h"
#include "tests/support/fused.h"
#include "tests/support/sample.h"

#include "ir/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS_MOST = 32, FAMILIES_MOST = 8 };

typedef struct Case {
    OpRun run;
    const char *name;
    Lowering *calls[VARIANTS_MOST];
} Case;

typedef struct Cases {
    Pool *pool;
    Farm farm;
    Tuning variant[VARIANTS_MOST];
    int n_variants; /* of the family that has most */
    bool has_code[FAMILIES_MOST][VARIANTS_MOST];
    VEC(Case) list;
} Cases;

/* --- graphs --- */

static OpCase new_case(Cases *all, unsigned bf16)
{
    return (OpCase){.pool = all->pool,
                    .g = graph_new(all->pool, "case"),
                    .rng = 77 + bf16,
                    .bf16 = bf16,
                    .node = NODE_NONE};
}

static void add(Cases *all, const char *name, const OpCase *made)
{
    Case c = {.name = name, .run.c = *made};
    CHECK_MSG(made->node != NODE_NONE, "no graph of %s", name);
    if (made->node == NODE_NONE)
        return;
    c.run.op = graph_node(made->g, made->node)->op;
    for (int v = 0; v < all->n_variants; v++) {
        all->farm.tuning = &all->variant[v];
        c.calls[v] = farm_lower(&all->farm, made->g);
    }
    vec_push(all->pool, &all->list, c);
}

/* chain: steps of a chain of its own; 0: it has none. */
static void add_chains(Cases *all, int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t chain,
                       unsigned bf16)
{
    OpCase c = new_case(all, bf16);
    AttrList attrs = {0};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    if (chain)
        attrs_int(&attrs, ATTR_chain, chain);
    op_normal(&c, ta ? DIMS(k, m) : DIMS(m, k));
    op_normal(&c, tb ? DIMS(n, k) : DIMS(k, n));
    op_done(&c, OP_matmul, &attrs);
    add(all,
        pool_printf(all->pool, "matmul %lldx%lldx%lld ta%d tb%d chain %lld bf16 %u", (long long)m,
                    (long long)n, (long long)k, ta, tb, (long long)chain, bf16),
        &c);
}

static void add_product(Cases *all, int64_t m, int64_t n, int64_t k, bool ta, bool tb,
                        unsigned bf16)
{
    add_chains(all, m, n, k, ta, tb, 0, bf16);
}

/* relu(op(x, w) * s + r), with s per column; behind K blocks r keeps sums from the result. */
static void add_group(Cases *all, OpKind op, const AttrList *attrs, const Type *type, Type y,
                      unsigned bf16)
{
    OpCase c = new_case(all, bf16);
    Graph *body = graph_new(all->pool, "body");
    Loc none = {0};
    const Type types[] = {type[0], type[1], DIMS(y.dim[y.rank - 1]), y};
    ValueId in[4];
    for (int i = 0; i < 4; i++)
        in[i] = op_inner(&c, body, op_normal(&c, types[i]));
    ValueId h = graph_add(body, op, in, 2, attrs, NULL, none);
    h = graph_add(body, OP_mul, (const ValueId[]){h, in[2]}, 2, NULL, NULL, none);
    h = graph_add(body, OP_add, (const ValueId[]){h, in[3]}, 2, NULL, NULL, none);
    h = graph_add(body, OP_relu, &h, 1, NULL, NULL, none);
    graph_add_output(body, "y", h);
    c.node = graph_add_fused(c.g, body, c.in, c.n_in, "%out", none);
    add(all, pool_printf(all->pool, "group of %s bf16 %u", op_name(op), bf16), &c);
}

static void add_linear_group(Cases *all, unsigned bf16, bool pairs)
{
    const Type type[] = {DIMS(2, 140, 300), DIMS(150, 300)};
    AttrList attrs = {0};
    if (pairs)
        attrs_int(&attrs, ATTR_pairs, 1);
    add_group(all, OP_linear, &attrs, type, DIMS(2, 140, 150), bf16);
}

/* By pairs. */
static void add_pairs(Cases *all, int64_t m, int64_t n, int64_t k, bool ta, bool tb, unsigned bf16)
{
    OpCase c = new_case(all, bf16);
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_pairs, 1);
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    op_normal(&c, ta ? DIMS(k, m) : DIMS(m, k));
    op_normal(&c, tb ? DIMS(n, k) : DIMS(k, n));
    op_done(&c, OP_matmul, &attrs);
    add(all,
        pool_printf(all->pool, "pairs %lldx%lldx%lld ta%d tb%d bf16 %u", (long long)m, (long long)n,
                    (long long)k, ta, tb, bf16),
        &c);
}

static void add_linear_with_bias(Cases *all)
{
    OpCase c = new_case(all, 0);
    op_normal(&c, DIMS(300, 520));
    op_normal(&c, DIMS(150, 520));
    op_normal(&c, DIMS(150));
    op_done(&c, OP_linear, &(AttrList){0});
    add(all, "linear with a bias", &c);
}

static AttrList conv_attrs(const OpConv *v)
{
    AttrList a = {0};
    attrs_ints(&a, ATTR_stride, v->stride, 2);
    attrs_ints(&a, ATTR_padding, v->padding, 2);
    attrs_ints(&a, ATTR_dilation, v->dilation, 2);
    attrs_int(&a, ATTR_groups, v->groups);
    attrs_int(&a, ATTR_nhwc, 1);
    return a;
}

static void add_conv(Cases *all, const OpConv *v, OpKind op, unsigned bf16)
{
    OpCase c = new_case(all, bf16);
    AttrList attrs = conv_attrs(v);
    op_normal(&c, op == OP_conv2d_dgrad ? op_conv_output(v) : op_conv_input(v));
    op_normal(&c, op == OP_conv2d_wgrad ? op_conv_output(v) : op_filter(v));
    if (op == OP_conv2d_dgrad)
        attrs_ints(&attrs, ATTR_hw, (const int64_t[]){v->h, v->w}, 2);
    if (op == OP_conv2d_wgrad)
        attrs_ints(&attrs, ATTR_hw, (const int64_t[]){v->r, v->s}, 2);
    op_done(&c, op, &attrs);
    add(all,
        pool_printf(all->pool, "%s %lldx%lldx%lld, %lldx%lld to %lld, bf16 %u", op_name(op),
                    (long long)v->h, (long long)v->w, (long long)(v->in * v->groups),
                    (long long)v->r, (long long)v->s, (long long)v->out, bf16),
        &c);
}

enum { FORWARD = 1, DGRAD = 2, WGRAD = 4 };

/* Each is for variants that others have no code for. */
static const struct {
    OpConv conv;
    int parts;
} convs[] = {
    {{.n = 2, .in = 24, .h = 20, .w = 20, .out = 70, .r = 3, .s = 3, .padding = {1, 1}}, 7},
    {{.n = 2, .in = 64, .h = 40, .w = 40, .out = 64, .r = 3, .s = 3, .padding = {1, 1}},
     FORWARD | WGRAD},
    {{.n = 3, .in = 16, .h = 44, .w = 44, .out = 24, .r = 3, .s = 3, .padding = {1, 1}}, FORWARD},
    {{.n = 2, .in = 3, .h = 61, .w = 61, .out = 64, .r = 3, .s = 3, .stride = {2, 2}}, WGRAD},
    {{.n = 2, .in = 16, .h = 31, .w = 31, .out = 40, .r = 3, .s = 3, .stride = {2, 2}}, DGRAD},
    {{.n = 1, .in = 3, .h = 33, .w = 33, .out = 320, .r = 2, .s = 2}, WGRAD},
    {{.n = 2, .in = 20, .h = 17, .w = 15, .out = 66, .r = 1, .s = 5, .groups = 2}, WGRAD},
    {{.n = 1, .in = 128, .h = 9, .w = 9, .out = 24, .r = 3, .s = 3, .padding = {1, 1}}, WGRAD},
    {{.n = 2, .in = 40, .h = 19, .w = 19, .out = 33, .r = 3, .s = 2, .dilation = {2, 2}}, DGRAD},
    {{.n = 2, .in = 64, .h = 7, .w = 9, .out = 260, .r = 3, .s = 3, .padding = {1, 1}}, WGRAD},
    {{.n = 1, .in = 1024, .h = 3, .w = 4, .out = 16, .r = 3, .s = 3, .padding = {1, 1}}, WGRAD},
    {{.n = 1, .in = 1, .h = 2, .w = 235000, .out = 128, .r = 2, .s = 1, .stride = {1, 800}}, WGRAD},
};
enum { N_CONVS = sizeof convs / sizeof *convs };

static OpConv conv_of(int i)
{
    OpConv v = convs[i].conv;
    v.nhwc = true;
    v.groups = v.groups ? v.groups : 1;
    for (int a = 0; a < 2; a++) {
        v.stride[a] = v.stride[a] ? v.stride[a] : 1;
        v.dilation[a] = v.dilation[a] ? v.dilation[a] : 1;
    }
    return v;
}

static void add_conv_group(Cases *all, int i)
{
    OpConv v = conv_of(i);
    AttrList attrs = conv_attrs(&v);
    const Type type[] = {op_conv_input(&v), op_filter(&v)};
    add_group(all, OP_conv2d, &attrs, type, op_conv_output(&v), 0);
}

static void add_cases(Cases *all)
{
    for (int t = 0; t < 4; t++)
        add_product(all, 300, 150, 520, t & 1, t & 2, 0);
    add_product(all, 512, 1100, 260, false, false, 0); /* runs of less than a row of panels */
    add_product(all, 70, 130, 1024, false, true, 0);   /* rows of A collide in a cache */
    add_product(all, 512, 70, 40, true, false, 0);     /* steps of A do */
    add_product(all, 400, 1024, 8, false, false, 0);   /* rows of B do */
    add_chains(all, 300, 150, 520, true, false, 20, 0);
    add_chains(all, 530, 70, 300, true, false, 12, 3);
    for (unsigned bf16 = 1; bf16 < 3; bf16++)
        add_product(all, 530, 70, 300, bf16 == 2, bf16 == 1, bf16);
    add_linear_with_bias(all);
    add_linear_group(all, 0, false);
    add_linear_group(all, 3, false);
    add_linear_group(all, 1, true);
    add_pairs(all, 530, 70, 330, false, true, 1);
    add_pairs(all, 150, 530, 96, true, false, 3);
    add_pairs(all, 70, 300, 1100, true, true, 2);
    for (int i = 0; i < N_CONVS; i++) {
        OpConv v = conv_of(i);
        if (convs[i].parts & FORWARD)
            add_conv(all, &v, OP_conv2d, i == 1 ? 3 : 0);
        if (convs[i].parts & DGRAD)
            add_conv(all, &v, OP_conv2d_dgrad, 0);
        if (convs[i].parts & WGRAD)
            add_conv(all, &v, OP_conv2d_wgrad, 0);
    }
    add_conv_group(all, 6);
}

/* --- what is compared --- */

static bool same_code(const Lowering *a, const Lowering *b)
{
    bool same = a->calls.len == b->calls.len;
    for (size_t i = 0; same && i < a->calls.len; i++)
        same = strcmp(a->calls.data[i].key, b->calls.data[i].key) == 0 &&
               a->calls.data[i].n_tasks == b->calls.data[i].n_tasks;
    return same;
}

static bool seen_before(const Case *c, int variant)
{
    for (int v = 0; v < variant; v++)
        if (same_code(c->calls[v], c->calls[variant]))
            return true;
    return false;
}

static char *result_of(const Cases *all, Case *c, int variant, int64_t group, char *scratch)
{
    OpRun *r = &c->run;
    ValueId out = graph_node(r->c.g, r->c.node)->out[0];
    size_t bytes = (size_t)type_bytes(value_type(r->c.g, out));
    char *copy = malloc(bytes + 1);
    if (!copy)
        abort();
    r->calls = c->calls[variant];
    op_run_calls(&all->farm, r, group, group == 1, scratch);
    memcpy(copy, r->value[out].data, bytes);
    return copy;
}

/* The family of a case: all calls of a node are of one problem. */
static void note_code(Cases *all, const Case *c, int variant)
{
    const Lowering *l = c->calls[variant];
    for (size_t i = 0; i < l->calls.len; i++)
        for (int f = 0; cpu_backend.families[f]; f++) {
            const char *name = cpu_backend.families[f]->name, *of = l->calls.data[i].problem;
            size_t n = strlen(name);
            if (of && strncmp(of, name, n) == 0 && of[n] == ' ')
                all->has_code[f][variant] = true;
        }
}

static void check_variant(Cases *all, Case *c, int variant, const char *want, char *scratch)
{
    const Graph *g = c->run.c.g;
    const Type *t = value_type(g, graph_node(g, c->run.c.node)->out[0]);
    note_code(all, c, variant);
    static const int64_t groups[] = {1, 5, INT64_MAX}; /* of tasks that are called together */
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        char *got = result_of(all, c, variant, groups[i], scratch);
        int64_t at = op_first_difference(t, want, got);
        CHECK_MSG(at == type_elements(t),
                  "%s: element %lld of variant %d differs from the default's", c->name,
                  (long long)at, variant);
        free(got);
    }
}

static double element(const Type *t, const char *data, int64_t i)
{
    float f = 0;
    if (t->dtype == DTYPE_BF16)
        memcpy((char *)&f + 2, data + 2 * i, 2);
    else
        memcpy(&f, data + 4 * i, 4);
    return (double)f;
}

static void check_reference(const Case *c, const char *got)
{
    const OpCase *o = &c->run.c;
    ValueId out = graph_node(o->g, o->node)->out[0];
    const Type *t = value_type(o->g, out);
    EvalState *s = eval_new(o->pool, o->g);
    for (int i = 0; i < o->n_in; i++)
        eval_set(s, o->in[i], o->data[i]);
    eval_run(s, false);
    const double *want = eval_get(s, out);
    bool bf16 = o->bf16 != 0; /* so may be what is between the operations of a group */
    double largest = 0, relative = bf16 ? 0x1p-7 : 1e-6, scale = bf16 ? 0x1p-8 : 4e-6;
    int64_t n = type_elements(t), wrong = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        wrong +=
            !(fabs(element(t, got, i) - want[i]) <= relative * fabs(want[i]) + scale * largest);
    CHECK_MSG(!wrong && largest > 1, "%s: %lld of %lld elements are not the reference's", c->name,
              (long long)wrong, (long long)n);
}

static void check_case(Cases *all, Case *c, char *scratch)
{
    op_run_buffers(&c->run);
    char *want = result_of(all, c, 0, INT64_MAX, scratch);
    check_reference(c, want);
    for (int v = 1; v < all->n_variants; v++)
        if (!seen_before(c, v))
            check_variant(all, c, v, want, scratch);
    free(want);
    op_run_free_buffers(&c->run);
}

/* Else a variant would be one in name only, or none of the cases would reach it. */
static void check_all_have_code(const Cases *all)
{
    for (int f = 0; cpu_backend.families[f]; f++)
        for (int v = 1; v < family_variants(cpu_backend.families[f]); v++)
            CHECK_MSG(all->has_code[f][v], "%s: no case has code of its own for %s",
                      cpu_backend.families[f]->name, cpu_backend.families[f]->variant_name(v));
}

static void find_variants(Cases *all)
{
    for (int f = 0; cpu_backend.families[f]; f++) {
        int n = family_variants(cpu_backend.families[f]);
        CHECK(f < FAMILIES_MOST && n <= VARIANTS_MOST);
        all->n_variants = n > all->n_variants ? n : all->n_variants;
    }
    for (int v = 0; v < all->n_variants; v++)
        all->variant[v] = (Tuning){.chosen = map_new(all->pool), .all = v};
}

static void test_target(const Target *target, bool all_have_code)
{
    Cases all = {.pool = pool_new()};
    void *scratch = NULL;
    all.farm = farm_new(all.pool, target);
    all.farm.optimization = 2;
    find_variants(&all);
    add_cases(&all);
    bool ready = farm_compile(&all.farm) && farm_load(&all.farm);
    CHECK_MSG(ready, "%s: kernels do not compile", target->name);
    if (posix_memalign(&scratch, 64, SCRIMP_SCRATCH_BYTES))
        abort();
    for (size_t i = 0; ready && check_failures < 20 && i < all.list.len; i++)
        check_case(&all, &all.list.data[i], scratch);
    if (ready && all_have_code)
        check_all_have_code(&all);
    printf("%s: %zu cases, %zu kernels\n", target->name, all.list.len, all.farm.kernels.len);
    free(scratch);
    farm_free(&all.farm);
    pool_free(all.pool);
}

int main(void)
{
    Target here = *target_find(NULL);
    here.l2_bytes = 1024 * 1024; /* on every machine: the cases' sizes are around it */
    here.amx = false;            /* products by matrix registers have no variants */
    int others = sample_number("SCRIMP_TARGETS", 0);
    test_target(&here, here.vector_registers >= 16);
    for (const char *const *name = target_names(); *name && others > 0; name++)
        if (target_runs_here(target_find(*name)) && strcmp(*name, here.name) != 0) {
            test_target(target_find(*name), false);
            others--;
        }
    return test_result();
}
