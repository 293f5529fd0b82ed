/* The same by runs. */
DEVICE Line scan_line(const Args a, i64 line, int with_all)
{
    float max[EIGHT], sum[EIGHT], all[EIGHT];
    PLACE first, i;
    int u, j;
    Line l;
    l.x = BUF(const REAL(0), 0) + line * LENGTH;
    first = first_run(l.x);
    for (j = 0; j < EIGHT; j++) {
        max[j] = -INFINITE;
        sum[j] = all[j] = 0.0f;
    }
    for (i = first; i < LENGTH; i += BATCH) {
        Run_0 run[AHEAD];
        load_runs_0(l.x, i, -INFINITE, run);
        UNROLL for (u = 0; u < AHEAD; u++)
            for (j = 0; j < EIGHT; j++)
                max[j] = s_max_number(IN_WORDS(0, run[u].w, j), max[j]);
    }
    l.max = join_runs_max(max, first);
    for (i = first; i < LENGTH; i += BATCH) {
        Run_0 run[AHEAD];
        load_runs_0(l.x, i, -INFINITE, run);
        UNROLL for (u = 0; u < AHEAD; u++)
            for (j = 0; j < EIGHT; j++) {
                const PLACE k = i + u * PARTIALS + j;
                const float d = IN_WORDS(0, run[u].w, j) - l.max;
                sum[j] = sum[j] + s_exp_below(d);
                if (with_all)
                    all[j] = all[j] + (IN_LINE(k) ? d * WEIGHT(k) : 0.0f);
            }
    }
    l.sum = join_runs_sum(sum, first);
    l.all = with_all ? join_runs_sum(all, first) : 0.0f;
    l.label = label_of(a, line);
    return l;
}
