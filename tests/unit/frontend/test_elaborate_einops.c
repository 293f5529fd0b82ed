/* SPDX-License-Identifier: GPL-3.0-or-later */
/* einsum and rearrange against sums and indices written out, on random patterns and sizes: the
 * lowered graph is run by the reference evaluator. */
#include "check.h"
#include "tests/support/elaborate_text.h"

#include "ir/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 6, MAX_RANK = 4 };

static uint64_t state = 20240607;

static int64_t pick(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

typedef struct Term {
    int letter[8], n;
} Term;

static void put_term(char *text, const Term *t, bool spaced)
{
    char *at = text + strlen(text);
    for (int i = 0; i < t->n; i++) {
        if (spaced && i)
            *at++ = ' ';
        *at++ = (char)('a' + t->letter[i]);
    }
    *at = 0;
}

static bool has(const Term *t, int letter)
{
    for (int i = 0; i < t->n; i++)
        if (t->letter[i] == letter)
            return true;
    return false;
}

static Term random_term(int most)
{
    Term t = {.n = 0};
    int n = 1 + (int)pick(most);
    while (t.n < n) {
        int letter = (int)pick(LETTERS);
        if (!has(&t, letter))
            t.letter[t.n++] = letter;
    }
    return t;
}

/* A random subset, in random order, of the letters that the operands have. */
static Term random_result(const Term *in, int n_in)
{
    Term all = {.n = 0};
    for (int k = 0; k < n_in; k++)
        for (int i = 0; i < in[k].n; i++)
            if (!has(&all, in[k].letter[i]))
                all.letter[all.n++] = in[k].letter[i];
    for (int i = all.n - 1; i > 0; i--) {
        int j = (int)pick(i + 1), swap = all.letter[i];
        all.letter[i] = all.letter[j];
        all.letter[j] = swap;
    }
    all.n = (int)pick(all.n + 1);
    return all;
}

static int64_t offset(const Term *t, const int64_t *size, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < t->n; i++)
        at = at * size[t->letter[i]] + index[t->letter[i]];
    return at;
}

static int64_t elements(const Term *t, const int64_t *size)
{
    int64_t n = 1;
    for (int i = 0; i < t->n; i++)
        n *= size[t->letter[i]];
    return n;
}

/* The definition: sum over every index of the product of the operands. */
static void expected_sum(const Term *in, int n_in, const Term *out, const int64_t *size,
                         double *const *data, double *result)
{
    int64_t index[LETTERS] = {0};
    memset(result, 0, (size_t)elements(out, size) * sizeof *result);
    for (;;) {
        double product = 1;
        for (int k = 0; k < n_in; k++)
            product *= data[k][offset(&in[k], size, index)];
        result[offset(out, size, index)] += product;
        int i = LETTERS - 1;
        for (; i >= 0; i--) {
            bool used = false;
            for (int k = 0; k < n_in; k++)
                used |= has(&in[k], i);
            if (used && ++index[i] < size[i])
                break;
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}

static void shape_of(char *text, const Term *t, const int64_t *size)
{
    strcat(text, "f32[");
    for (int i = 0; i < t->n; i++)
        sprintf(text + strlen(text), "%s%lld", i ? "," : "", (long long)size[t->letter[i]]);
    strcat(text, "]");
}

static void run_and_compare(const char *text, const char *const *inputs, double *const *data,
                            int n_in, const double *expected, int64_t n)
{
    Elaborated r = elaborate_text(text, FRONTEND_INFER);
    CHECK_MSG(r.graph != NULL, "%s\n%s", text, r.errors);
    if (r.graph) {
        EvalState *s = eval_new(r.pool, r.graph);
        for (int k = 0; k < n_in; k++)
            eval_set(s, graph_find(r.graph, inputs[k]), data[k]);
        eval_run(s, false);
        ValueId v = graph_output(r.graph, "logits");
        CHECK_MSG(type_elements(value_type(r.graph, v)) == n, "%s", text);
        for (int64_t i = 0; i < n && type_elements(value_type(r.graph, v)) == n; i++)
            CHECK_MSG(fabs(eval_get(s, v)[i] - expected[i]) < 1e-9, "%s element %lld", text,
                      (long long)i);
    }
    elaborated_free(&r);
}

static double *random_data(int64_t n)
{
    double *d = malloc((size_t)n * sizeof *d);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)pick(2001) / 1000 - 1;
    return d;
}

static void check_einsum(void)
{
    static const char *const inputs[] = {"%p", "%q", "%r"};
    int n_in = 1 + (int)pick(3);
    int64_t size[LETTERS];
    Term in[3], out;
    char text[512] = "model m(", pattern[128] = "";
    double *data[3] = {NULL};
    bool spaced = pick(2);
    for (int i = 0; i < LETTERS; i++)
        size[i] = 1 + pick(4);
    for (int k = 0; k < n_in; k++) {
        in[k] = random_term(MAX_RANK);
        sprintf(text + strlen(text), "%s%s: ", k ? ", " : "", inputs[k] + 1);
        shape_of(text, &in[k], size);
        strcat(pattern, k ? "," : "");
        put_term(pattern, &in[k], spaced);
        data[k] = random_data(elements(&in[k], size));
    }
    out = random_result(in, n_in);
    strcat(pattern, " -> ");
    put_term(pattern, &out, spaced);
    sprintf(text + strlen(text), ") { return einsum(\"%s\"", pattern);
    for (int k = 0; k < n_in; k++)
        sprintf(text + strlen(text), ", %s", inputs[k] + 1);
    strcat(text, ") }\n");
    double *expected = malloc((size_t)elements(&out, size) * sizeof *expected);
    expected_sum(in, n_in, &out, size, data, expected);
    run_and_compare(text, inputs, data, n_in, expected, elements(&out, size));
    free(expected);
    for (int k = 0; k < n_in; k++)
        free(data[k]);
}

/* Groups neighbours of a term at random: "(a b) c". */
static void put_groups(char *text, const Term *t)
{
    bool open = false;
    for (int i = 0; i < t->n; i++) {
        if (!open && i + 1 < t->n && pick(3) == 0) {
            strcat(text, " (");
            open = true;
        } else
            strcat(text, " ");
        sprintf(text + strlen(text), "%c", 'a' + t->letter[i]);
        if (open && (i + 1 == t->n || pick(2))) {
            strcat(text, ")");
            open = false;
        }
    }
}

/* Groups change no bytes: only the order of the letters matters to the result's data. */
static void check_rearrange(void)
{
    static const char *const inputs[] = {"%p"};
    int64_t size[LETTERS], index[LETTERS] = {0};
    Term in = random_term(LETTERS), out;
    char from[128] = "", text[512] = "model m(p: ";
    for (int i = 0; i < LETTERS; i++)
        size[i] = 1 + pick(3);
    do
        out = random_result(&in, 1);
    while (out.n != in.n);
    put_groups(from, &in);
    /* the declared type has one dimension for each group */
    strcat(text, "f32[");
    int64_t dim = 1;
    for (char *c = from, *first = text + strlen(text); *c; c++) {
        static bool inside;
        if (*c == '(')
            inside = true, dim = 1;
        else if (*c >= 'a' && *c <= 'z')
            dim = inside ? dim * size[*c - 'a'] : size[*c - 'a'];
        if (*c == ')' || (!inside && *c >= 'a' && *c <= 'z'))
            sprintf(text + strlen(text), "%s%lld", *first ? "," : "", (long long)dim);
        if (*c == ')')
            inside = false;
    }
    sprintf(text + strlen(text), "]) { return rearrange(p, \"%s ->", from);
    put_groups(text, &out);
    strcat(text, "\"");
    for (int i = 0; i < LETTERS; i++)
        if (has(&in, i))
            sprintf(text + strlen(text), ", %c = %lld", 'a' + i, (long long)size[i]);
    strcat(text, ") }\n");
    int64_t n = elements(&in, size);
    double *data[] = {random_data(n)}, *expected = malloc((size_t)n * sizeof *expected);
    for (int64_t done = 0; done < n; done++) {
        expected[offset(&out, size, index)] = data[0][offset(&in, size, index)];
        for (int i = in.n - 1; i >= 0 && ++index[in.letter[i]] == size[in.letter[i]]; i--)
            index[in.letter[i]] = 0;
    }
    run_and_compare(text, inputs, data, 1, expected, n);
    free(data[0]);
    free(expected);
}

/* Attention must need no transposes, and a tied head is a linear layer. */
static void check_forms(void)
{
    Elaborated r =
        elaborate_text("model m(q: f32[2,3,4,5], k: f32[2,3,6,5], w: f32[7,5], u: f32[5,7]) {\n"
                       "  a = einsum(\"b h t d, b h s d -> b h t s\", q, k)\n"
                       "  return a, einsum(\"t d, v d -> t v\", q[0, 0], w), einsum(\"t d, d v "
                       "-> t v\", q[0, 1], u)\n}\n",
                       FRONTEND_INFER);
    CHECK_MSG(count_ops(&r, OP_transpose) == 0 && count_ops(&r, OP_matmul) == 1 &&
                  count_ops(&r, OP_linear) == 2,
              "%s", r.errors);
    elaborated_free(&r);
}

int main(void)
{
    for (int i = 0; i < 400; i++)
        check_einsum();
    for (int i = 0; i < 300; i++)
        check_rearrange();
    check_forms();
    return test_result();
}
