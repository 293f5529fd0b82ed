/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/lines.h"

#include "codegen/cuda/text.h"
#include "ir/support/divide.h"

enum { MOST_BLOCKS = 4096 };

int64_t lines_blocks(AxisShape a, int block_lines)
{
    int64_t lines = a.outer * a.inner, at_once = block_lines * (a.inner == 1 ? 1 : LINE_THREADS);
    int64_t blocks = divide_up(lines, at_once), most = MOST_BLOCKS / block_lines;
    if (a.length == 0)
        return 0;
    return blocks < most ? blocks : most;
}

void text_lines(StrBuf *out, AxisShape a, const char *sharing)
{
    text_define(out, "OUTER", a.outer);
    text_define(out, "LENGTH", a.length);
    text_define(out, "INNER", a.inner);
    strbuf_printf(out, "#define PLACE %s\n", a.length < INT32_MAX / 2 ? "int" : "i64");
    text_include(out, sharing);
    text_include(out, "lines");
}
