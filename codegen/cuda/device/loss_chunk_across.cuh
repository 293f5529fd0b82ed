#include "loss_partial.cuh"
/* Losses of a chunk of the outer elements, summed in order: one partial result a block, with a
 * thread a line.  LANES neighbouring lines are folded half onto half, and what becomes of them is
 * added in double. */
#define GROUPS (THREADS / LANES)
#define GROUPS_OF_OUTER ((INNER + LANES - 1) / LANES)

DEVICE void fold_lanes(float *s)
{
    const int t = threadIdx.x;
    int half;
    for (half = LANES / 2; half > 0; half /= 2) {
        if (t % LANES < half)
            s[t] = s[t] + s[t + half];
        __syncthreads();
    }
}

/* The loss of line `lane` of a group of the chunk, and what its label counts; both 0 where there is
 * none. */
DEVICE float loss_of_lane(const Args a, i64 outer, i64 lane, float weights, float *one)
{
    const int exists = lane < INNER;
    const i64 line = outer * INNER + (exists ? lane : 0);
    Line l;
    *one = 0.0f;
    if (!exists || label_of(a, line) < 0)
        return 0.0f;
    l = scan_line(a, line, SMOOTHED);
    *one = WEIGHT(l.label);
    return loss_of_line(a, l, weights);
}

DEVICE void loss_chunk_across(const Args a)
{
    SHARED float loss[THREADS], one[THREADS];
    const int t = threadIdx.x;
    const i64 from = part_start(blockIdx.x, OUTER, CHUNKS) * GROUPS_OF_OUTER;
    const i64 to = part_start((i64)blockIdx.x + 1, OUTER, CHUNKS) * GROUPS_OF_OUTER;
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    double sum = 0;
    COUNT count = 0;
    i64 group;
    int k;
    for (group = from; group < to; group += GROUPS) {
        const i64 mine = group + t / LANES, lane = mine % GROUPS_OF_OUTER * LANES + t % LANES;
        loss[t] = one[t] = 0.0f;
        if (mine < to)
            loss[t] = loss_of_lane(a, mine / GROUPS_OF_OUTER, lane, weights, &one[t]);
        __syncthreads();
        fold_lanes(loss);
        fold_lanes(one);
        for (k = 0; k < GROUPS && group + k < to; k++) {
            sum = sum + (double)loss[k * LANES];
            count = count + (COUNT)one[k * LANES];
        }
        __syncthreads();
    }
    if (t == 0)
        store_partial(a, sum, count);
}
