/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a weight gradient's tasks are, and which of them go together. */
#include "codegen/cpu/conv/conv.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "runtime/abi.h"

enum {
    CHANNELS_LEAST = 32, /* of a block */
    TASKS_LEAST = 6,     /* before channels are split */
    DY_BYTES = 192 * 1024
};

/* What a variant has in the place of the default. */
typedef struct WgradVariant {
    const char *name;
    int vectors; /* of the tile; 0: by its cost */
    int64_t tasks;
    int64_t dy_bytes;   /* of dy that is packed once a band, at most */
    double sums_caches; /* second-level caches that the sums of tasks together may fill */
} WgradVariant;

static const WgradVariant variants[] = {
    {"default", 0, 24, DY_BYTES, 0.5},
    {"tile1", 1, 24, DY_BYTES, 0.5},
    {"tile2", 2, 24, DY_BYTES, 0.5},
    {"tile3", 3, 24, DY_BYTES, 0.5},
    {"tile4", 4, 24, DY_BYTES, 0.5},
    {"tasks6", 0, 6, DY_BYTES, 0.5},
    {"dy_panel", 0, 24, 0, 0.5},
    {"dy_double", 0, 24, 2 * DY_BYTES, 0.5},
    {"sums_quarter", 0, 24, DY_BYTES, 0.25},
    {"sums_double", 0, 24, DY_BYTES, 1},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const char *variant_name(int index)
{
    return index < N_VARIANTS ? variants[index].name : NULL;
}

const KernelFamily conv_wgrad_family = {"conv_dw", variant_name};

int64_t conv_wgrad_x_row(const ConvWgrad *w)
{
    return conv_x_columns(&w->q) * w->channel_block;
}

bool conv_wgrad_joined(const ConvWgrad *w)
{
    return w->q.dilation[1] == 1 && w->channel_blocks == 1;
}

static int64_t block_tasks(const ConvWgrad *w)
{
    return w->panel_groups * w->q.r;
}

int64_t conv_wgrad_set(const ConvWgrad *w)
{
    return w->run_blocks * block_tasks(w);
}

int64_t conv_wgrad_tasks(const ConvWgrad *w)
{
    return w->chunks * w->q.groups * w->channel_blocks * block_tasks(w);
}

int64_t conv_wgrad_packed(const ConvWgrad *w, int lanes)
{
    return w->band_rows * w->q.ow * w->shape.vectors * lanes;
}

static int64_t scratch_bytes(const ConvWgrad *w, const Target *t)
{
    int64_t dy = (w->pack_once ? w->run_panels : 1) * conv_wgrad_packed(w, t->vector_floats);
    return 4 * (w->band_rows * conv_wgrad_x_row(w) + 64 + dy);
}

static void set_channel_blocks(ConvWgrad *w, int64_t blocks)
{
    w->channel_block = divide_up(conv_group_in(&w->q), blocks);
    w->channel_blocks = divide_up(conv_group_in(&w->q), w->channel_block);
}

/* A run has all tasks of a chunk and group where the cache has their sums; else tasks of one block
 * of channels, of all rows of the kernel at least. */
static void plan_runs(ConvWgrad *w, const Target *t, const WgradVariant *v)
{
    const ConvGeometry *q = &w->q;
    int64_t of_block = block_tasks(w), all = w->channel_blocks * of_block;
    int64_t sums = 4 * q->r * q->s * conv_group_in(q) * conv_group_out(q);
    int64_t fit = (int64_t)(v->sums_caches * (double)t->l2_bytes) * all / (sums + 1);
    bool fits = fit >= all;
    w->run_blocks = fits ? w->channel_blocks : 1;
    w->run = fits ? all : fit > of_block ? of_block : fit > q->r ? fit - fit % q->r : q->r;
    int64_t groups = w->run / q->r + 1; /* a run may begin with any row of the kernel */
    w->run_panels = fits ? w->panels : groups * divide_up(w->panels, w->panel_groups);
    if (w->run_panels > w->panels)
        w->run_panels = w->panels;
}

/* False where scratch has no room. */
static bool plan_as(ConvWgrad *w, const Target *t, const WgradVariant *v)
{
    const ConvGeometry *q = &w->q;
    int64_t channels = conv_group_in(q);
    set_channel_blocks(w, 1);
    w->shape = tile_shape_of(t, divide_up(conv_group_out(q), t->vector_floats),
                             conv_wgrad_joined(w) ? q->s * channels : channels, v->vectors);
    w->panels = divide_up(conv_group_out(q), (int64_t)w->shape.vectors * t->vector_floats);
    w->panel_groups = 1;
    w->band_rows = conv_band_rows(q);
    int64_t blocks = 1;
    while (conv_wgrad_tasks(w) < v->tasks && w->panels >= 2 * w->panel_groups)
        w->panel_groups *= 2;
    /* Whole pixels are read faster than parts of them, so channels are split last. */
    while (conv_wgrad_tasks(w) < TASKS_LEAST && channels / (2 * blocks) >= CHANNELS_LEAST)
        set_channel_blocks(w, blocks *= 2);
    while (4 * conv_wgrad_x_row(w) > CONV_BAND_BYTES && w->channel_block > 1)
        set_channel_blocks(w, blocks *= 2);
    plan_runs(w, t, v);
    w->pack_once = q->r * w->run_blocks > 1 &&
                   4 * w->run_panels * conv_wgrad_packed(w, t->vector_floats) <= v->dy_bytes;
    w->pack_once = w->pack_once && scratch_bytes(w, t) <= SCRIMP_WORK_BYTES;
    return scratch_bytes(w, t) <= SCRIMP_WORK_BYTES;
}

void conv_wgrad_plan(ConvWgrad *w, const Target *t, int variant)
{
    if (!plan_as(w, t, &variants[variant]) && !plan_as(w, t, &variants[0]))
        BUG("a weight gradient needs %lld bytes of scratch memory", (long long)scratch_bytes(w, t));
}
