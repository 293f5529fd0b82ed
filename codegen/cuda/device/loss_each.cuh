/* The loss of every line, 0 where there is no label. */
DEVICE void loss_each(const Args a)
{
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    i64 tile;
    for (tile = FIRST_TILE; tile < LINES; tile += TILE_STEP) {
        const int exists = tile + LINE_OF_BLOCK < LINES;
        const i64 line = exists ? tile + LINE_OF_BLOCK : LINES - 1;
        const Line l = scan_line(a, line, SMOOTHED);
        const float loss = l.label < 0 ? 0.0f : loss_of_line(a, l, weights);
        if (exists && WRITES_FOR_LINE)
            BUF(float, OUT_BUF)[line] = loss;
    }
}
