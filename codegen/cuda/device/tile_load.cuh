/* Panels that come from memory four elements at a time, where these are neighbours at an address of 16
 * bytes. */
#define QUADS(rows) ((rows) * STEPS / 4 / TEAM) /* of a panel, that a thread brings */

/* Quad e of those lies along the steps, or along the rows: */
#define QUAD_STEP(e, along_steps, rows)                                                            \
    ((along_steps) ? (MEMBER + TEAM * (e)) % (STEPS / 4) * 4 : (MEMBER + TEAM * (e)) / ((rows) / 4))
#define QUAD_ROW(e, along_steps, rows)                                                             \
    ((along_steps) ? (MEMBER + TEAM * (e)) / (STEPS / 4) : (MEMBER + TEAM * (e)) % ((rows) / 4) * 4)

#define IS_WIDE(p, bf16) (!(bf16) && ((i64)(p) & 15) == 0)

/* Elements at, at + step, ..., of which n are there, then `none`.  wide: all or none are, and they are
 * floats that may be read at once. */
DEVICE Quad load_quad(const void *p, int bf16, int wide, i64 at, i64 step, int n,
                      float none)
{
    Quad q = {{none, none, none, none}};
    if (wide) {
        if (n > 0)
            q = *(const Quad *)((const float *)p + at);
    } else {
        for (int i = 0; i < 4; i++)
            if (i < n)
                q.x[i] = real_at(p, bf16, at + i * step);
    }
    return q;
}

/* A thread's quads of a panel that begins at x, of which so many rows and steps are there. */
DEVICE void load_panel(Quad *mine, int rows, const void *x, int bf16, int wide, i64 row_stride,
                       i64 step_stride, int rows_there, int steps_there, float none)
{
    const int along = step_stride == 1;
    for (int e = 0; e < QUADS(rows); e++) {
        const int row = QUAD_ROW(e, along, rows), step = QUAD_STEP(e, along, rows);
        const int inside = along ? row < rows_there : step < steps_there;
        mine[e] = load_quad(x, bf16, wide, row * row_stride + step * step_stride,
                            along ? step_stride : row_stride,
                            !inside ? 0 : along ? steps_there - step : rows_there - row, none);
    }
}

DEVICE void store_panel(float *panel, int rows, int along, const Quad *mine)
{
    for (int e = 0; e < QUADS(rows); e++) {
        float *at = panel + QUAD_STEP(e, along, rows) * (rows + 4) + QUAD_ROW(e, along, rows);
        if (along)
            for (int i = 0; i < 4; i++)
                at[i * (rows + 4)] = mine[e].x[i];
        else
            *(Quad *)at = mine[e];
    }
}
