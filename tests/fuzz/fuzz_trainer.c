/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as trainer.json: refused with a message, or names that stay in the folder and a state
 * that is written and read back without a change. */
#include "fuzz_target.h"

#include "runtime/manifest.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check_names(const Manifest *m)
{
    for (int r = 0; r < CHECKPOINT_ROLES; r++) {
        const SetFile *f = &m->file[r];
        expect(f->bytes >= 0 && f->name[0] && f->name[0] != '.' && !strchr(f->name, '/') &&
               memchr(f->name, 0, sizeof f->name));
    }
    /* The next set has names of its own, which a later save may remove. */
    Manifest next = {0};
    manifest_choose_names(m, m->state.step, &next);
    for (int r = 0; r < CHECKPOINT_ROLES; r++)
        expect(strcmp(next.file[r].name, m->file[r].name) != 0 && manifest_owns(next.file[r].name));
}

static bool same_vocab(const Vocab *a, const Vocab *b)
{
    return a->chars == b->chars && a->size == b->size &&
           (!a->size || memcmp(a->code, b->code, (size_t)a->size * sizeof *a->code) == 0);
}

static void check_back(const Manifest *m, const char *text)
{
    RtError err = {{0}};
    Manifest back = {0};
    Vocab vocab = {0};
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    expect(root && manifest_from_json(root, &back, &err) && manifest_same_set(m, &back));
    expect(back.state.step == m->state.step && back.state.seed == m->state.seed &&
           back.state.data_position == m->state.data_position &&
           back.state.model_hash == m->state.model_hash &&
           back.state.evaluation_due == m->state.evaluation_due &&
           memcmp(&back.state.epoch, &m->state.epoch, sizeof back.state.epoch) == 0);
    expect(manifest_vocab(root, &vocab, &err) == (m->state.vocab && m->state.vocab->chars));
    expect(!vocab.chars || same_vocab(&vocab, m->state.vocab));
    expect(json_equal(json_object_get(root, "settings"), m->state.settings) || !m->state.settings);
    vocab_free(&vocab);
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    RtError err = {{0}};
    Manifest m = {0};
    Vocab vocab = {0};
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!root)
        return 0;
    bool ok = manifest_from_json(root, &m, &err);
    expect(ok || err.message[0]);
    err.message[0] = 0;
    bool chars = manifest_vocab(root, &vocab, &err);
    expect(chars || !json_object_get(root, "vocabulary") || err.message[0]);
    if (ok) {
        check_names(&m);
        m.state.vocab = chars ? &vocab : NULL;
        m.state.settings = json_object_get(root, "settings");
        char *text = manifest_text(&m);
        expect(text != NULL);
        check_back(&m, text);
        free(text);
    }
    vocab_free(&vocab);
    json_decref(root);
    return 0;
}
