/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a matrix product is cut into tiles, blocks and tasks. */
#include "codegen/cpu/gemm/gemm.h"

#include "codegen/cpu/gemm/gemm_amx.h"
#include "codegen/cpu/gemm/gemm_image.h"
#include "codegen/cpu/gemm/gemm_run.h"
#include "codegen/cpu/point/prologue.h"
#include "ir/product.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "runtime/abi.h"

enum {
    BF16_ROWS = 256,      /* of a task where A is always packed: scratch has room for sums, too */
    TASK_TILES_LEAST = 4, /* rows that share a packed panel, */
    TASKS_LEAST = 4,      /* unless that makes fewer tasks */
    TASK_FLOPS_LEAST = 2000000,
    IN_PLACE_TILES = 20, /* of rows that may read a panel of B that is a line wide, or whose rows
                            collide in caches; */
    NARROW_TILES = 8,    /* one that is both, or a line wide that begins within lines */
    FEW_ROWS = 8,        /* of a tile: the next one reads the same lines of a transposed A */
    FAR_STEP = 512,      /* elements */
    FAR_COLUMNS = 96,
    NEAR_COLUMNS = 192,
    WIDE_FAR_COLUMNS = 192, /* the same where a tile has more rows */
    WIDE_NEAR_COLUMNS = 384,
    TURNED_COLUMNS = 192,       /* most, of vectors of a whole line */
    PARTIAL_BYTES = 256 * 1024, /* of scratch */
    ONE_RUN_ROWS_LEAST = 128
};

/* Whether A is packed. */
typedef enum PackA { PACK_COLLIDING, PACK_ALWAYS, PACK_NEVER } PackA;

/* Whether panels of B are packed.  They never are where one tile has all rows. */
typedef enum PackB { PACK_B_FAR, PACK_B_ALWAYS, PACK_B_NEVER } PackB;

/* Whether the transpose of the product is computed, where either is possible. */
typedef enum Turn { TURN_BROAD, TURN_ALWAYS, TURN_NEVER } Turn;

/* What a variant has in the place of the default. */
typedef struct GemmVariant {
    const char *name;
    int vectors;       /* of the tile; 0: by its cost */
    PackA pack_a;      /* where either is possible */
    int64_t rows;      /* of a task: a block of A is packed once for all panels of a task */
    int64_t tasks;     /* 12 split evenly over 2, 3, 4 and 6 threads; more tasks pack more often */
    double run_caches; /* bytes of the result of a run, in second-level caches: more would not stay
                          there between K blocks */
    PackB pack_b;
    bool no_prefetch;
    Turn turn;
} GemmVariant;

static const GemmVariant variants[] = {
    {"default", 0, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"tile1", 1, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"tile2", 2, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"tile3", 3, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"tile4", 4, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"rows128", 0, PACK_COLLIDING, 128, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"rows256", 0, PACK_COLLIDING, 256, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"tasks4", 0, PACK_COLLIDING, 512, 4, 1, PACK_B_FAR, false, TURN_BROAD},
    {"tasks24", 0, PACK_COLLIDING, 512, 24, 1, PACK_B_FAR, false, TURN_BROAD},
    {"run_quarter", 0, PACK_COLLIDING, 512, 12, 0.25, PACK_B_FAR, false, TURN_BROAD},
    {"run_four", 0, PACK_COLLIDING, 512, 12, 4, PACK_B_FAR, false, TURN_BROAD},
    {"pack", 0, PACK_ALWAYS, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"in_place", 0, PACK_NEVER, 512, 12, 1, PACK_B_FAR, false, TURN_BROAD},
    {"pack_b", 0, PACK_COLLIDING, 512, 12, 1, PACK_B_ALWAYS, false, TURN_BROAD},
    {"b_in_place", 0, PACK_COLLIDING, 512, 12, 1, PACK_B_NEVER, false, TURN_BROAD},
    {"no_prefetch", 0, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, true, TURN_BROAD},
    {"turned", 0, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_ALWAYS},
    {"straight", 0, PACK_COLLIDING, 512, 12, 1, PACK_B_FAR, false, TURN_NEVER},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const char *variant_name(int index)
{
    return index < N_VARIANTS ? variants[index].name : NULL;
}

const KernelFamily gemm_family = {"gemm", variant_name};

static int64_t panel_floats(const Gemm *g, const Target *t)
{
    return (int64_t)g->shape.vectors * t->vector_floats;
}

static void drop_batch_dim(Gemm *g, int d)
{
    for (int i = d; i + 1 < g->n_batch; i++) {
        g->batch[i] = g->batch[i + 1];
        g->a_batch[i] = g->a_batch[i + 1];
        g->b_batch[i] = g->b_batch[i + 1];
    }
    g->n_batch--;
}

/* Dims of size 1 go; the innermost dim joins the rows when B does not depend on it and A's rows go
 * on evenly; neighbours that lie evenly become one. */
static void merge_batch(Gemm *g)
{
    for (int d = g->n_batch - 1; d >= 0; d--)
        if (g->batch[d] == 1)
            drop_batch_dim(g, d);
    while (g->n_batch && g->b_batch[g->n_batch - 1] == 0 &&
           (g->a_batch[g->n_batch - 1] == g->m * g->a_row || g->m == 1)) {
        if (g->m == 1)
            g->a_row = g->a_batch[g->n_batch - 1];
        g->m *= g->batch[--g->n_batch];
    }
    for (int d = g->n_batch - 2; d >= 0; d--)
        if (g->a_batch[d] == g->a_batch[d + 1] * g->batch[d + 1] &&
            g->b_batch[d] == g->b_batch[d + 1] * g->batch[d + 1]) {
            g->batch[d + 1] *= g->batch[d];
            drop_batch_dim(g, d);
        }
    for (int d = g->n_batch; d < TYPE_MAX_RANK; d++) /* equal products have equal bytes */
        g->batch[d] = g->a_batch[d] = g->b_batch[d] = 0;
}

static void swap_counts(int64_t *a, int64_t *b)
{
    int64_t c = *a;
    *a = *b;
    *b = c;
}

/* The sum alone is stored, as f32. */
static bool can_turn(const Gemm *g)
{
    const Epilogue *e = &g->epilogue;
    return g->batches == 1 && !g->image.channels && e->bias_buf < 0 && !e->body &&
           e->out.dtype == DTYPE_F32 && !g->a_made;
}

static void turn(Gemm *g)
{
    int buf = g->a_buf;
    bool bf16 = g->a_bf16;
    swap_counts(&g->m, &g->n);
    swap_counts(&g->a_row, &g->b_n);
    swap_counts(&g->a_k, &g->b_k);
    g->a_buf = g->b_buf;
    g->b_buf = buf;
    g->a_bf16 = g->b_bf16;
    g->b_bf16 = bf16;
    g->turned = !g->turned;
}

/* Both operands lie by columns: that of the tiles' rows is packed, which should be the smaller one,
 * unless a line has all of it, or the sums between blocks of K leave the second-level cache.  With
 * vectors of a whole line it pays while the smaller one has few columns, the other twice as many.
 */
static bool wants_turn(const Gemm *g, const Target *t, Turn turn)
{
    if (turn != TURN_BROAD)
        return turn == TURN_ALWAYS;
    bool narrow = t->vector_floats < TILE_LINE || (g->n <= TURNED_COLUMNS && g->m >= 2 * g->n);
    return g->a_row == 1 && g->b_n == 1 && g->m > g->n && g->n > TILE_LINE &&
           4 * g->m * g->n <= t->l2_bytes && narrow;
}

/* Rows a multiple of 2 KiB apart fall into one or two sets of a first-level cache.  Two are enough
 * for a tile of many rows where the second level has all of A. */
static bool rows_collide(const Gemm *g, const Target *t)
{
    bool near = g->shape.rows > FEW_ROWS && 4 * g->m * g->k <= t->l2_bytes;
    return g->a_row * 4 % (near ? 4096 : 2048) == 0;
}

/* So do steps.  Where the next tiles read the same lines, four sets are too few to keep them;
 * packed, they are read once, which pays for columns enough, sooner where a step is farther than
 * half a page and none that the hardware foresees. */
static bool steps_collide(const Gemm *g)
{
    bool far = g->a_k > FAR_STEP;
    if (g->shape.rows > FEW_ROWS)
        return g->a_k * 4 % 2048 == 0 || g->n >= (far ? WIDE_FAR_COLUMNS : WIDE_NEAR_COLUMNS);
    return g->a_k * 4 % 1024 == 0 || g->n >= (far ? FAR_COLUMNS : NEAR_COLUMNS);
}

/* Packing needs one stride of 1 to copy by vectors. */
static bool wants_packed_a(const Gemm *g, const Target *t, PackA pack)
{
    if (g->a_bf16 || g->pairs)
        return true;
    if (pack != PACK_COLLIDING)
        return pack == PACK_ALWAYS && (g->a_k == 1 || g->a_row == 1);
    if (g->rows.tiles * g->shape.rows < 2 * g->shape.rows || g->k < 16)
        return false;
    if (g->a_k == 1)
        return g->shape.rows >= 6 && rows_collide(g, t);
    return g->a_row == 1 && steps_collide(g);
}

static void plan_k(Gemm *g)
{
    g->k_block = product_k_block(g->k);
    int64_t unit = g->pairs ? g->pairs : g->chain ? g->chain : 1;
    g->k_block = divide_up(g->k_block, unit) * unit;
    if (g->image.channels)
        g->k_block = gemm_image_block(&g->image, PRODUCT_CHAIN);
    g->inner_chains = g->chain && g->chain < g->k_block;
    g->k_blocks = g->k_block ? divide_up(g->k, g->k_block) : 1;
}

static int64_t packed_b_floats(const Gemm *g, const Target *t)
{
    return (g->k_block + 1) * panel_floats(g, t) * GEMM_PACK_PANELS;
}

static int64_t packed_a_floats(const Gemm *g, int64_t rows)
{
    return (rows + GEMM_A_PAD) * (g->k_block + GEMM_A_PAD) + 64;
}

/* Rows of a task whose sums of all columns fit into scratch beside the packed A, which is packed
 * again for every run; 0: they are too few to share panels of B, or all may stay in the result. */
static int64_t rows_of_one_run(const Gemm *g, const Target *t)
{
    if (!g->private_partial || !g->pack_a)
        return 0;
    int64_t a_row = g->k_block + GEMM_A_PAD, columns = g->panels * panel_floats(g, t);
    int64_t rest = SCRIMP_WORK_BYTES / 4 - packed_b_floats(g, t) - packed_a_floats(g, 0) -
                   GEMM_A_PAD * columns;
    int64_t rows = rest / (a_row + columns) / g->shape.rows * g->shape.rows;
    return rows >= ONE_RUN_ROWS_LEAST ? rows : 0;
}

/* Panels of a run: their sums between K blocks fit into scratch, with the rows of whole tiles, or
 * stay in a cache, where a row more or less makes no second run of it. */
static int64_t most_panels(const Gemm *g, const Target *t, const GemmVariant *v)
{
    int64_t rows = divide_up(g->m, g->row_blocks);
    if (g->private_partial)
        rows = divide_up(g->rows.tiles, g->row_blocks) * g->shape.rows;
    if (rows <= rows_of_one_run(g, t))
        return g->panels;
    int64_t bytes =
        g->private_partial ? PARTIAL_BYTES : (int64_t)(v->run_caches * (double)t->l2_bytes);
    int64_t fit = bytes / (4 * rows * panel_floats(g, t));
    return fit < 1 ? 1 : fit < g->panels ? fit : g->panels;
}

/* Blocks of rows of a run, where one run has all columns: a block of K of B, and each line of a
 * transposed A, is read once for all of them. */
static int64_t most_blocks(const Gemm *g, const Target *t, const GemmVariant *v)
{
    if (g->panel_groups > 1 || g->k_blocks == 1 || g->pack_a || g->private_partial)
        return 1;
    int64_t rows = divide_up(g->rows.tiles, g->row_blocks) * g->shape.rows;
    int64_t fit = (int64_t)(v->run_caches * (double)t->l2_bytes) / (4 * rows * g->n);
    return fit < 1 ? 1 : fit < g->row_blocks ? fit : g->row_blocks;
}

/* Groups of panels, each at most as wide as a run may be. */
static void plan_runs(Gemm *g, const Target *t, const GemmVariant *v)
{
    int64_t most = most_panels(g, t, v), least_groups = divide_up(g->panels, most);
    if (g->panel_groups < least_groups)
        g->panel_groups = least_groups;
    g->run_groups = most * g->panel_groups / g->panels;
    g->run_blocks = most_blocks(g, t, v);
}

/* Down to single panels, then to single tiles; false where nothing is left to split. */
static bool split_further(Gemm *g)
{
    if (g->panel_groups < g->panels) {
        g->panel_groups = g->panels;
        return true;
    }
    if (g->row_blocks >= g->rows.tiles)
        return false;
    g->row_blocks *= 2;
    return true;
}

/* Rows of a piece of A.  B is read again with each of them: a B that does not stay in a cache, with
 * fewer. */
static int64_t rows_made(const Gemm *g, const Target *t)
{
    bool is_near = 4 * g->k * g->n <= t->l2_bytes / 4;
    return (is_near ? PROLOGUE_AT_ONCE : PROLOGUE_TOGETHER) / g->k;
}

/* Threads share out the making of A by its columns, which are rows of the result. */
static bool shares_columns(const Gemm *g)
{
    return g->a_made && g->a_k != 1;
}

/* Splits the longer side until there are tasks enough; the columns while a B that lies by rows
 * would be transposed for every block of rows. */
static void plan_tasks(Gemm *g, const Target *t, const GemmVariant *v)
{
    bool packs = g->a_bf16 || g->pairs;
    int64_t most = packs && v->rows > BF16_ROWS ? BF16_ROWS : v->rows;
    if (g->a_made && g->a_k == 1 && rows_made(g, t) < most)
        most = rows_made(g, t);
    int64_t one_run = rows_of_one_run(g, t);
    g->row_blocks = divide_up(g->m, one_run && one_run < most ? one_run : most);
    g->panel_groups = 1;
    while (g->batches * g->row_blocks * g->panel_groups < v->tasks &&
           gemm_task_flops(g) > TASK_FLOPS_LEAST) {
        int64_t rows = g->m / g->row_blocks, columns = g->n / g->panel_groups;
        bool more_rows = g->rows.tiles >= 2 * TASK_TILES_LEAST * g->row_blocks;
        bool more_groups = g->panels >= 2 * g->panel_groups;
        bool wide = g->b_n != 1 || (columns > rows / 2 && !shares_columns(g));
        if (more_groups && (wide || !more_rows))
            g->panel_groups *= 2;
        else if (more_rows)
            g->row_blocks *= 2;
        else
            break;
    }
    while (g->batches * g->row_blocks * g->panel_groups < TASKS_LEAST &&
           gemm_task_flops(g) > TASK_FLOPS_LEAST && split_further(g))
        ;
    if (g->row_blocks > g->rows.tiles)
        g->row_blocks = g->rows.tiles;
    plan_runs(g, t, v);
}

static bool fits_scratch(const Gemm *g, const Target *t)
{
    int64_t rows = divide_up(g->rows.tiles, g->row_blocks) * g->shape.rows;
    int64_t floats = packed_b_floats(g, t);
    if (g->pack_a)
        floats += packed_a_floats(g, rows);
    if (g->private_partial)
        floats += rows * divide_up(g->panels * g->run_groups, g->panel_groups) * panel_floats(g, t);
    return floats * 4 <= SCRIMP_WORK_BYTES;
}

/* How many tiles may read a panel of B in place.  Rows a multiple of 4 KiB apart fall into few sets
 * of a second-level cache, too.  A panel of one line has few multiply-adds a line that it reads, or
 * two where rows begin within lines. */
static int64_t in_place_tiles(const Gemm *g, const Target *t)
{
    bool far = g->b_k * 4 % 4096 == 0;
    if (panel_floats(g, t) > TILE_LINE)
        return far ? IN_PLACE_TILES : INT64_MAX;
    return far || g->b_k % TILE_LINE != 0 ? NARROW_TILES : IN_PLACE_TILES;
}

static bool reads_b_in_place(const Gemm *g, const Target *t, const GemmVariant *v)
{
    int64_t tiles = divide_up(g->rows.tiles, g->row_blocks);
    if (g->b_bf16 || g->pairs || g->b_n != 1 || (v->pack_b == PACK_B_ALWAYS && tiles > 1))
        return false;
    return v->pack_b == PACK_B_NEVER || tiles <= in_place_tiles(g, t);
}

/* Where one tile of two vectors or more can have all rows of B read in place, it does: that costs
 * less than a better tile whose vectors do not divide the columns. */
static TileShape choose_shape(const Gemm *g, const Target *t, const GemmVariant *v)
{
    int64_t n_vectors = divide_up(g->n, t->vector_floats);
    int vectors = v->vectors;
    if (!vectors && g->b_n == 1 && !g->b_bf16 && !g->pairs)
        vectors = tile_wide_vectors(t, n_vectors, g->m);
    return tile_shape_of(t, n_vectors, g->m, vectors);
}

/* The rest, once batches are merged; false where scratch has no room. */
static bool plan_as(Gemm *g, const Target *t, const GemmVariant *v)
{
    if (g->turned)
        turn(g);
    if (can_turn(g) && wants_turn(g, t, v->turn))
        turn(g);
    g->shape = choose_shape(g, t, v);
    g->rows = tile_split(g->m, g->shape.rows);
    g->panels = divide_up(g->n, panel_floats(g, t));
    plan_k(g);
    g->private_partial = g->k_blocks > 1 && (g->turned || epilogue_may_alias(&g->epilogue) ||
                                             dtype_bytes(g->epilogue.out.dtype) != 4);
    g->pack_a = wants_packed_a(g, t, v->pack_a);
    g->no_prefetch = v->no_prefetch;
    plan_tasks(g, t, v);
    g->direct_b = reads_b_in_place(g, t, v);
    return fits_scratch(g, t);
}

void gemm_plan(Gemm *g, const Target *t, int variant)
{
    merge_batch(g);
    g->batches = 1;
    for (int d = 0; d < g->n_batch; d++)
        g->batches *= g->batch[d];
    if (!g->m || !g->n || !g->batches) {
        g->batches = 0;
        return;
    }
    if (gemm_amx_takes(g, t)) {
        gemm_amx_plan(g, t);
        return;
    }
    GemmVariant in_place = variants[0];
    in_place.pack_a = PACK_NEVER;
    if (!plan_as(g, t, &variants[variant]) && !plan_as(g, t, &variants[0]) &&
        !plan_as(g, t, &in_place))
        BUG("matrix product %lld x %lld x %lld needs more scratch than there is", (long long)g->m,
            (long long)g->n, (long long)g->k);
}

int64_t gemm_tasks(const Gemm *g)
{
    return g->batches ? g->batches * g->row_blocks * g->panel_groups : 0;
}
