/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls in turns, strip by strip: a kernel that reads what another one writes follows it while a
 * strip is still in a core's cache, not when all of it has gone to memory.  No kernel knows of
 * this, and no bit depends on it: which tasks there are, and what each of them computes, stays the
 * same; when a task runs, and in which thread, does not. */
#ifndef SCRIMP_CODEGEN_BUILD_STRIPS_H
#define SCRIMP_CODEGEN_BUILD_STRIPS_H

#include "codegen/build/program.h"
#include "codegen/jit/jit.h"

/* Chains among p->calls, whose order changes where a call comes next behind the one that it
 * follows: fills in p->strips.chains.  cache: bytes that a core keeps. */
void strips_find(StepProgram *p, int64_t cache);
/* Once it is known which kernels they are: fills in p->strips.words. */
void strips_describe(StepProgram *p);
/* How many spans of which a note is kept that they are done, of a chain at most. */
int64_t strips_notes(const StepProgram *p);

/* Code of a step: two functions with the ABI of a kernel.  `run` does the tasks of a chain's first
 * call, and what of the others follows from those of one thread alone; `rest` what is left of one
 * of the others, whose tasks are its spans.  Arguments: the chain's place in the words, the number
 * of the call in the chain, then what the calls have, one behind another.  Behind all that a call
 * may have come pointers, those of StripSlot; the notes are zero before the first chain. */
enum { STRIP_PLACE, STRIP_CALL, STRIP_ARGUMENTS };
typedef enum StripSlot { STRIP_WORDS, STRIP_KERNELS, STRIP_NOTES, STRIP_SLOTS } StripSlot;
typedef struct StripCode {
    JitFunction run, rest;
} StripCode;
StripCode strips_emit(Jit *j);

#endif
