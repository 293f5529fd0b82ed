/* Sums that are several chains.  Their sum so far has no room in registers; it is touched once a chain,
 * by one team after the other. */
typedef Quad Totals[OWN_ROWS * COLUMN_QUADS][TEAM];

/* is_there: of the chains of this round, one for each team; the next begin from zero. */
DEVICE void add_chains(Totals total, Sums chain, int is_there, int is_first)
{
    for (int team = 0; team < TEAMS; team++) {
        for (int i = 0; team == TEAM_NUMBER && is_there && i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++) {
                float *at = &total[i * COLUMN_QUADS + j / 4][MEMBER].x[j % 4];
                *at = is_first ? chain[i][j] : *at + chain[i][j];
            }
        if (TEAMS > 1)
            __syncthreads();
    }
    sums_zero(chain);
}

/* Result (i, j) of a tile: each team finishes some. */
#define TOTAL(i, j)    (total[(i) * COLUMN_QUADS + (j) / 4][MEMBER].x[(j) % 4])
#define IS_OURS(i, j)  (((i) * COLUMN_QUADS + (j) / 4) % TEAMS == TEAM_NUMBER)
