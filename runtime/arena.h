/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tensor memory of a step: exactly the planned bytes, mapped and touched before step 1, so that
 * running out of memory happens there, with a message, or never.  Called by the trainer. */
#ifndef SCRIMP_RUNTIME_ARENA_H
#define SCRIMP_RUNTIME_ARENA_H

#include "runtime/status.h"

typedef struct Arena {
    char *base;     /* page aligned; 2 MiB aligned when the arena is large */
    int64_t bytes;  /* as asked for */
    int64_t mapped; /* bytes rounded up to pages; a guard page follows */
} Arena;

/* Maps and touches bytes (zeros).  False, with the numbers and a way out in err, when the address
 * limit, the machine or the control group has not that much left. */
bool arena_map(Arena *arena, int64_t bytes, RtError *err);
/* The same without touching: what is never written takes no memory.  For the image of an arena that
 * lies elsewhere. */
bool arena_reserve(Arena *arena, int64_t bytes, RtError *err);
/* Whether arena_map would do it now; nothing is touched. */
bool arena_fits(int64_t bytes, RtError *err);
void arena_unmap(Arena *arena);

/* Fills [offset, offset + bytes) with NaNs (0x7fc5ca1a): a stale read then shows in every result.
 * Offsets and sizes in bytes, multiples of 4 (the last word may be partial). */
void arena_poison(Arena *arena, int64_t offset, int64_t bytes);
/* Offset just past the last word that is not poison: what the steps since arena_poison(all) used.
 */
int64_t arena_high_water(const Arena *arena);
/* True when nothing was written between bytes and the end of the last page. */
bool arena_tail_clean(const Arena *arena);

/* Peak resident set of this process in bytes (VmHWM), 0 when unknown. */
int64_t rt_peak_resident_bytes(void);
/* Bytes the machine and this process's control group could still give, INT64_MAX when unknown. */
int64_t rt_available_bytes(void);

#endif
