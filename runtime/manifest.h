/* SPDX-License-Identifier: GPL-3.0-or-later */
/* trainer.json, which names the files of a checkpoint: reading, writing, and the names themselves.
 * Called by checkpoint. */
#ifndef SCRIMP_RUNTIME_MANIFEST_H
#define SCRIMP_RUNTIME_MANIFEST_H

#include "runtime/trainer_state.h"

enum { CHECKPOINT_ROLES = 2 };

/* One tensor file of a set. */
typedef struct SetFile {
    char name[80];
    int64_t bytes;
    uint32_t crc32;
} SetFile;

/* Contents of trainer.json; state.vocab and state.settings are only written. */
typedef struct Manifest {
    TrainerState state;
    SetFile file[CHECKPOINT_ROLES];
} Manifest;

extern const char manifest_file[]; /* "trainer.json" */
extern const char *const checkpoint_role_names[CHECKPOINT_ROLES];

/* From parsed JSON; false with a message when it is no checkpoint's, or damaged. */
bool manifest_from_json(const struct json_t *root, Manifest *m, RtError *err);
/* The vocabulary in parsed JSON (which may be NULL): false, without a message when it has none. */
bool manifest_vocab(const struct json_t *root, Vocab *vocab, RtError *err);
/* The text of the file, freed by the caller; NULL when out of memory. */
char *manifest_text(const Manifest *m);

bool manifest_exists(const char *dir);
/* The parsed file of a folder, json_decref'd by the caller, or NULL with a message. */
struct json_t *manifest_load(const char *dir, RtError *err);
bool manifest_read(const char *dir, Manifest *m, RtError *err);
bool manifest_write(const char *dir, const Manifest *m, RtError *err);

/* Names for the files of `step` in next->file: not those that `now` names, which must stay readable
 * until trainer.json is switched. */
void manifest_choose_names(const Manifest *now, int64_t step, Manifest *next);
/* True for names that manifest_choose_names makes, and for temporary names left by a process that
 * was killed. */
bool manifest_owns(const char *name);
/* Both name the same files with the same contents. */
bool manifest_same_set(const Manifest *a, const Manifest *b);

#endif
