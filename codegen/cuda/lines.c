/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/lines.h"

#include "codegen/cuda/text.h"
#include "ir/support/divide.h"

enum { MOST_BLOCKS = 4096 };

int64_t lines_blocks(AxisShape a)
{
    int64_t lines = a.outer * a.inner;
    int64_t blocks = a.inner == 1 ? lines : divide_up(lines, LINE_THREADS);
    if (a.length == 0)
        return 0;
    return blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

void text_lines(StrBuf *out, AxisShape a)
{
    text_define(out, "OUTER", a.outer);
    text_define(out, "LENGTH", a.length);
    text_define(out, "INNER", a.inner);
    text_include(out, "lines");
}
