/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mixed integer linear programs, solved by COIN-OR Cbc, an optional library that is loaded when it
 * is needed. */
#ifndef SCRIMP_IR_SUPPORT_MILP_H
#define SCRIMP_IR_SUPPORT_MILP_H

#include "ir/support/pool.h"

typedef struct Milp Milp;

bool milp_is_available(void);

/* Minimises cost * x over rows low <= sum of terms <= high; all columns have bounds. */
Milp *milp_new(Pool *pool);
int milp_column(Milp *m, double low, double high, double cost, bool integer);
int milp_row(Milp *m, double low, double high);
void milp_set_row(Milp *m, int row, double low, double high);
void milp_term(Milp *m, int row, int column, double value);
int milp_columns(const Milp *m);
int milp_terms(const Milp *m);

typedef enum MilpStatus { MILP_OPTIMAL, MILP_FEASIBLE, MILP_INFEASIBLE, MILP_LIMIT } MilpStatus;

/* FEASIBLE: x is a solution, but the limit of branch-and-bound nodes (or of seconds; 0 = none)
 * ended the proof.  LIMIT: it ended the search before any solution.  One thread, deterministic
 * unless the seconds are used up. */
MilpStatus milp_solve(const Milp *m, int max_nodes, double max_seconds, double *x);

#endif
