/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "op_cases.h"

OpCaseMake *const op_case_table[OP_COUNT] = {
#define CASE(name) [OP_##name] = op_##name,
#include "op_cases.def"
#undef CASE
};
