/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/milp.h"

#include "ir/support/vec.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Term {
    int row, column;
    double value;
} Term;

struct Milp {
    Pool *pool;
    VEC(double) low, high, cost, row_low, row_high;
    VEC(bool) integer;
    VEC(Term) term;
};

Milp *milp_new(Pool *pool)
{
    Milp *m = POOL_NEW(pool, Milp);
    m->pool = pool;
    return m;
}

int milp_column(Milp *m, double low, double high, double cost, bool integer)
{
    vec_push(m->pool, &m->low, low);
    vec_push(m->pool, &m->high, high);
    vec_push(m->pool, &m->cost, cost);
    vec_push(m->pool, &m->integer, integer);
    return (int)m->cost.len - 1;
}

int milp_row(Milp *m, double low, double high)
{
    vec_push(m->pool, &m->row_low, low);
    vec_push(m->pool, &m->row_high, high);
    return (int)m->row_low.len - 1;
}

void milp_set_row(Milp *m, int row, double low, double high)
{
    m->row_low.data[row] = low;
    m->row_high.data[row] = high;
}

void milp_term(Milp *m, int row, int column, double value)
{
    vec_push(m->pool, &m->term, (Term){row, column, value});
}

int milp_columns(const Milp *m)
{
    return (int)m->cost.len;
}

int milp_terms(const Milp *m)
{
    return (int)m->term.len;
}

/* Cbc's C interface (Cbc_C_Interface.h of version 2.10).  The library is loaded when it is first
 * needed, so that scrimp starts without it and the libraries it needs. */
typedef struct Cbc {
    void *(*new_model)(void);
    void (*load)(void *model, int columns, int rows, const int *start, const int *index,
                 const double *value, const double *low, const double *high, const double *cost,
                 const double *row_low, const double *row_high);
    void (*set_integer)(void *model, int column);
    void (*set_parameter)(void *model, const char *name, const char *value);
    int (*solve)(void *model);
    int (*is_optimal)(void *model);
    int (*is_infeasible)(void *model);
    const double *(*solution)(void *model);
    const double *(*best)(void *model);
    void (*delete_model)(void *model);
} Cbc;

/* A function pointer from dlsym's object pointer, as POSIX has it. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool open_cbc(Cbc *c)
{
    void *library = dlopen("libCbcSolver.so.3", RTLD_NOW | RTLD_LOCAL); /* stays open */
    return library && find(library, "Cbc_newModel", &c->new_model) &&
           find(library, "Cbc_loadProblem", &c->load) &&
           find(library, "Cbc_setInteger", &c->set_integer) &&
           find(library, "Cbc_setParameter", &c->set_parameter) &&
           find(library, "Cbc_solve", &c->solve) &&
           find(library, "Cbc_isProvenOptimal", &c->is_optimal) &&
           find(library, "Cbc_isProvenInfeasible", &c->is_infeasible) &&
           find(library, "Cbc_getColSolution", &c->solution) &&
           find(library, "Cbc_bestSolution", &c->best) &&
           find(library, "Cbc_deleteModel", &c->delete_model);
}

bool milp_is_available(void)
{
    Cbc cbc;
    return open_cbc(&cbc);
}

/* Rows of terms become the columns that Cbc takes. */
static void load(Pool *pool, const Milp *m, const Cbc *cbc, void *model)
{
    size_t n = m->cost.len, n_terms = m->term.len;
    int *start = POOL_ARRAY(pool, n + 2, int), *row = POOL_ARRAY(pool, n_terms + 1, int);
    double *value = POOL_ARRAY(pool, n_terms + 1, double);
    for (size_t k = 0; k < n_terms; k++)
        start[m->term.data[k].column + 2]++;
    for (size_t c = 2; c < n + 2; c++)
        start[c] += start[c - 1];
    for (size_t k = 0; k < n_terms; k++) {
        int at = start[m->term.data[k].column + 1]++;
        row[at] = m->term.data[k].row;
        value[at] = m->term.data[k].value;
    }
    cbc->load(model, (int)n, (int)m->row_low.len, start, row, value, m->low.data, m->high.data,
              m->cost.data, m->row_low.data, m->row_high.data);
    for (size_t c = 0; c < n; c++)
        if (m->integer.data[c])
            cbc->set_integer(model, (int)c);
}

static MilpStatus read_answer(const Cbc *cbc, void *model, size_t n, double *x)
{
    bool proven = cbc->is_optimal(model);
    if (!proven && cbc->is_infeasible(model))
        return MILP_INFEASIBLE;
    const double *best = proven ? cbc->solution(model) : cbc->best(model);
    if (!best)
        return MILP_LIMIT;
    memcpy(x, best, n * sizeof *x);
    return proven ? MILP_OPTIMAL : MILP_FEASIBLE;
}

/* Of some problems the library prints what it finds before it looks at its log level: standard
 * output is the program's.  Returns what to give back to show_output; -1: nothing is hidden. */
static int hide_output(void)
{
    fflush(stdout);
    int shown = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (shown >= 0 && nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0)
        close(nowhere);
    return shown;
}

static void show_output(int shown)
{
    fflush(stdout); /* what the library wrote into the buffer */
    if (shown < 0)
        return;
    dup2(shown, STDOUT_FILENO);
    close(shown);
}

MilpStatus milp_solve(const Milp *m, int max_nodes, double max_seconds, double *x)
{
    Cbc cbc;
    if (!open_cbc(&cbc))
        return MILP_LIMIT;
    Pool *pool = pool_new_child(m->pool);
    void *model = cbc.new_model();
    load(pool, m, &cbc, model);
    cbc.set_parameter(model, "log", "0");
    cbc.set_parameter(model, "maxNodes", pool_printf(pool, "%d", max_nodes));
    if (max_seconds > 0)
        cbc.set_parameter(model, "seconds", pool_printf(pool, "%.3f", max_seconds));
    int shown = hide_output();
    cbc.solve(model);
    show_output(shown);
    MilpStatus status = read_answer(&cbc, model, m->cost.len, x);
    cbc.delete_model(model);
    pool_free(pool);
    return status;
}
