/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers that meet tensors: an element type that does not hold one is an error at its place, and
 * arithmetic on compile-time numbers ends in a number. */
#include "check.h"
#include "tests/support/elaborate_text.h"

#include <string.h>

typedef struct NumberCase {
    const char *expression;
    const char *expected; /* what the message holds; NULL: accepted without a word */
} NumberCase;

/* y is f32[4,4], k i32[4], u u8[4], b bool[4] */
static const NumberCase cases[] = {
    {"k < 2147483647", NULL},
    {"k < 2147483648", "test.scrimp:3:11: error[E104]: 2147483648 does not fit a tensor of i32"},
    {"k < 3000000000", "i32 holds -2147483648 to 2147483647"},
    {"k >= -2147483648", NULL},
    {"k >= -2147483649", "test.scrimp:3:12: error[E104]: -2147483649"},
    {"k * 4294967297", "E104"},
    {"4294967296 - k", "test.scrimp:3:7: error[E104]"},
    {"maximum(k, 4000000000)", "E104"},
    {"select(k > 0, k, 4000000000)", "E104"},
    {"select(k > 0, k, 0.5)", "0.5 does not fit a tensor of i32"},
    {"k * 0.5", "|> to_f32()"},
    {"k * 2.0", "|> to_f32()"},
    {"k == inf", "E104"},
    {"u == 255", NULL},
    {"u == 256", "u8 holds 0 to 255"},
    {"u > -1", "E104"},
    {"b == 1", NULL},
    {"b == 2", "E104"},
    {"full([2], 4000000000, dtype = i32)", "E104"},
    {"full([2], -1, dtype = u8)", "E104"},
    {"full([2], 0.5, dtype = i32)", "E104"},
    {"full([2], inf, dtype = i32)", "E104"},
    {"full([2], 1e39)", "f32 ends at 3.4e38"},
    {"full([2], inf)", NULL},
    {"pad(k, [1], value = 1e10)", "E104"},
    {"pad(y, [1, 1], value = 1e39)", "E104"},
    {"pad(y, [1, 1], value = -inf)", NULL},
    {"iota(2147483648)", "E105"},
    {"cross_entropy(y, k, ignore_index = 4294967196)", "E104"},
    {"y * 3.4e38", NULL},
    {"y * 3.5e38", "E104"},
    {"y - 1e300", "E104"},
    {"y * 1e-46", "W203"},
    {"y * 1e-45", NULL},
    {"y / inf", NULL},
    {"layernorm(y, eps = 1e39, affine = false)", "eps = 1e+39 is too large for f32"},
    {"y + 1e200 * 1e200", "E209"},
    {"y + (inf - inf)", "E209"},
    {"y + (-8.0) ** 0.5", "E209"},
    {"y + 1e300 / 1e-300", "E209"},
    {"y + 9223372036854775807 * 2", "E209"},
    {"y + 10 ** 400", "E209"},
    {"y + int(1e300)", "E209"},
};

static void check_case(const NumberCase *c)
{
    Pool *pool = pool_new();
    const char *text = pool_printf(pool,
                                   "model m(x: f32[4, 8], k: i32[4], u: u8[4], b: bool[4]) {\n"
                                   "  y = x |> fc: linear(4)\n"
                                   "  q = %s\n"
                                   "  return y, q\n"
                                   "}\n",
                                   c->expression);
    Elaborated r = elaborate_text(text, FRONTEND_INFER);
    if (c->expected)
        CHECK_MSG(strstr(r.errors, c->expected), "%s: %s", c->expression, r.errors);
    else
        CHECK_MSG(!*r.errors, "%s: %s", c->expression, r.errors);
    elaborated_free(&r);
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    return test_result();
}
