/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of runtime/standin*.c share. */
#ifndef SCRIMP_RUNTIME_STANDIN_INTERNAL_H
#define SCRIMP_RUNTIME_STANDIN_INTERNAL_H

#include "runtime/standin.h"

/* A stream of numbers of its own for every name and index. */
typedef struct Dice {
    uint64_t key, step, rolled;
} Dice;
Dice dice_of(const char *name, int64_t index);
/* Uniform in [0, n). */
int64_t dice_roll(Dice *d, int64_t n);
/* About normal, mean 0, deviation 1. */
double dice_normal(Dice *d);

/* MadeBytes that grow as they are written. */
typedef struct MadeBytes {
    unsigned char *data;
    int64_t n, room;
    bool failed; /* out of memory: what follows is not added */
} MadeBytes;
void made_add(MadeBytes *b, const void *data, int64_t n);
void made_text(MadeBytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* That nothing is there yet; makes its folder. */
bool made_place(const char *path, RtError *err);
/* Writes them to a file that is not there yet, makes its folder, and frees them. */
bool made_write(MadeBytes *b, const char *path, RtError *err);

/* The largest index that the model takes in the field, or `otherwise` where it says nothing. */
int64_t standin_limit(const DataSpec *spec, const char *field, int64_t otherwise);

bool standin_mnist(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_cifar10(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_imagefolder(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_audiofolder(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_npy(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_npz(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_safetensors(const DataSpec *spec, StandIn *out, RtError *err);
bool standin_csv(const DataSpec *spec, StandIn *out, RtError *err);

#endif
