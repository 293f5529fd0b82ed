#include "real.cuh"
/* out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], finished by epilogue().  Every result is the
 * sum that codegen/forms/product.h describes: chains of K_BLOCK fused multiply-adds, each from zero,
 * added in order.  While a panel is multiplied, the next one is on its way from memory. */
#include "tile_load.cuh"
#if CHAINS > 1
#include "tile_chains.cuh"
#else
#define TOTAL(i, j)   chain[i][j]
#define IS_OURS(i, j) 1
#endif

#define AT_MOST(a, b) ((a) < (b) ? (a) : (b))
/* Panels of a chain; each team goes through the chains of its number in every ROUNDS. */
#define CHAIN_PANELS (K_BLOCK / STEPS)
#define ROUNDS       (((i64)CHAINS + TEAMS - 1) / TEAMS)

typedef struct Operands {
    const REAL(A_BUF) *a; /* of the tile, at the team's first step */
    const REAL(B_BUF) *b;
    int rows, columns, wide_a, wide_b;
} Operands;

typedef struct Next {
    Quad a[QUADS(TILE_ROWS)], b[QUADS(TILE_COLUMNS)];
} Next;

/* The panels at step k; `end` is where steps end. */
DEVICE void load_panels(Next *next, const Operands *o, i64 k, i64 end)
{
    const int steps = (int)AT_MOST(end - k, (i64)STEPS);
    load_panel(next->a, TILE_ROWS, o->a + k * A_K, IS_BF16(A_BUF), o->wide_a, A_ROW, A_K, o->rows, steps,
               NO_STEP_A);
    load_panel(next->b, TILE_COLUMNS, o->b + k * B_K, IS_BF16(B_BUF), o->wide_b, B_N, B_K, o->columns,
               steps, NO_STEP_B);
}

DEVICE void product(const Args a)
{
#if CHAINS > 1
    SHARED Totals total;
#endif
    SHARED PanelA panel_a[TEAMS][2];
    SHARED PanelB panel_b[TEAMS][2];
    const i64 tiles_m = (M + TILE_ROWS - 1) / TILE_ROWS, tiles_n = (N + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const i64 tile = (i64)blockIdx.x % (tiles_n * tiles_m), batch = (i64)blockIdx.x / (tiles_n * tiles_m);
    const i64 row0 = tile / tiles_n * TILE_ROWS, column0 = tile % tiles_n * TILE_COLUMNS;
    const int rows = (int)AT_MOST(M - row0, (i64)TILE_ROWS);
    const int columns = (int)AT_MOST(N - column0, (i64)TILE_COLUMNS);
    const i64 first = (i64)TEAM_NUMBER * K_BLOCK;
    Operands o = {BUF(const REAL(A_BUF), A_BUF) + a_batch(batch) + row0 * A_ROW + first * A_K,
                  BUF(const REAL(B_BUF), B_BUF) + b_batch(batch) + column0 * B_N + first * B_K, rows,
                  columns, 0, 0};
    Next next;
    Sums chain;
    o.wide_a = A_WIDE && IS_WIDE(o.a, IS_BF16(A_BUF));
    o.wide_b = B_WIDE && IS_WIDE(o.b, IS_BF16(B_BUF));
    load_panels(&next, &o, 0, K - first);
    sums_zero(chain);
    for (i64 round = 0, turn = 0; round < ROUNDS; round++) {
        const i64 k0 = round * TEAMS * K_BLOCK;
        const int panels = (int)AT_MOST((K - k0 + STEPS - 1) / STEPS, (i64)CHAIN_PANELS);
        for (int i = 0; i < panels; i++, turn ^= 1) {
            const i64 k = i + 1 < panels ? k0 + (i + 1) * STEPS : k0 + TEAMS * K_BLOCK;
            store_panel(&panel_a[TEAM_NUMBER][turn][0][0], TILE_ROWS, A_K == 1, next.a);
            store_panel(&panel_b[TEAM_NUMBER][turn][0][0], TILE_COLUMNS, B_K == 1, next.b);
            __syncthreads();
            load_panels(&next, &o, k, K - first);
            add_steps(chain, panel_a[TEAM_NUMBER][turn], panel_b[TEAM_NUMBER][turn]);
        }
#if CHAINS > 1
        add_chains(total, chain, k0 + first < K, k0 + first == 0);
#endif
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            if (IS_OURS(i, j) && OWN_ROW(i) < rows && OWN_COLUMN(j) < columns)
                epilogue(a, batch * M + row0 + OWN_ROW(i), column0 + OWN_COLUMN(j), TOTAL(i, j));
}
