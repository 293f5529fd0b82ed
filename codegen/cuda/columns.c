/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/columns.h"

#include "codegen/cuda/text.h"
#include "ir/support/divide.h"

/* Of few columns a block has half as many: there are twice the blocks. */
enum { WAYS = 4, COLUMNS = 64, MANY = 256, VECTOR = 8 };

static int columns_of(const ColumnSums *c)
{
    return c->width < MANY ? COLUMNS / 2 : COLUMNS;
}

bool has_column_tiles(const ColumnSums *c)
{
    bool tiles = c->width >= COLUMNS / 2 && c->width % VECTOR == 0;
    for (int i = 0; i < c->images; i++)
        tiles = tiles && c->pitch[i] % VECTOR == 0;
    return tiles;
}

int column_threads(const ColumnSums *c)
{
    return WAYS * columns_of(c);
}

int64_t column_blocks(const ColumnSums *c)
{
    return c->chunks * divide_up(c->width, columns_of(c));
}

void text_columns(StrBuf *out, const ColumnSums *c)
{
    text_define(out, "COLUMNS", columns_of(c));
    text_define(out, "ROWS", c->rows);
    text_define(out, "WIDTH", c->width);
    text_define(out, "IMAGES", c->images);
    text_define(out, "PITCH_0", c->pitch[0]);
    text_define(out, "PITCH_1", c->pitch[1]);
}
