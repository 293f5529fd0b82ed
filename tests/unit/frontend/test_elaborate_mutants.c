/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mutated examples: words exchanged, dropped, doubled, numbers changed.  Whatever the text, the
 * elaborator ends, with errors or with a graph that the verifier accepts (elaborated_finish
 * checks).
 */
#include "check.h"
#include "tests/support/elaborate_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 14, MAX_WORDS = 4096 };

static uint64_t state;

static size_t pick(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((state >> 33) % n);
}

typedef struct Words {
    const char *at[MAX_WORDS];
    size_t length[MAX_WORDS];
    size_t n;
} Words;

/* Names, numbers, runs of spaces, single characters. */
static void cut(const char *text, Words *w)
{
    w->n = 0;
    while (*text && w->n < MAX_WORDS) {
        size_t n = 1;
        if (isalnum((unsigned char)*text) || *text == '_')
            while (isalnum((unsigned char)text[n]) || text[n] == '_')
                n++;
        w->at[w->n] = text;
        w->length[w->n++] = n;
        text += n;
    }
}

static const char *const strange[] = {"0",          "-1",   "1",      "9223372036854775807",
                                      "1e308",      "[]",   "\"\"",   "x",
                                      "relu",       "none", "true",   "..",
                                      "_",          "(",    ")",      "{",
                                      "}",          "seq",  "shared", "return",
                                      "f32",        "40%",  "8GiB",   "$x",
                                      "@keep",      ":",    ",",      "|>",
                                      "1000000000", "2**62"};

static size_t put(char *text, size_t at, const char *word, size_t n)
{
    if (at + n + 1 >= MAX_TEXT)
        return at;
    memcpy(text + at, word, n);
    return at + n;
}

static void mutate(const Words *w, char *out)
{
    size_t at = 0, n_changes = 1 + pick(4), where[4], how[4];
    for (size_t i = 0; i < n_changes; i++) {
        where[i] = pick(w->n);
        how[i] = pick(5);
    }
    for (size_t k = 0; k < w->n; k++) {
        size_t change = 5, other = pick(w->n);
        for (size_t i = 0; i < n_changes; i++)
            if (where[i] == k)
                change = how[i];
        const char *odd = strange[pick(sizeof strange / sizeof strange[0])];
        if (change == 0)
            continue;
        if (change == 1)
            at = put(out, at, w->at[k], w->length[k]);
        if (change == 2)
            at = put(out, at, w->at[other], w->length[other]);
        else if (change == 3)
            at = put(out, at, odd, strlen(odd));
        else if (change == 4)
            k = other > k ? (other < k + 20 ? other : k) : k;
        else
            at = put(out, at, w->at[k], w->length[k]);
    }
    out[at] = 0;
}

static char *read_example(const char *name)
{
    char path[512], *text = calloc(1, MAX_TEXT);
    const char *root = getenv("SCRIMP_SOURCE");
    snprintf(path, sizeof path, "%s/examples/%s.scrimp", root ? root : ".", name);
    FILE *in = fopen(path, "r");
    CHECK_MSG(in, "%s", path);
    if (in) {
        CHECK(fread(text, 1, MAX_TEXT - 1, in) > 0);
        fclose(in);
    }
    return text;
}

int main(int argc, char **argv)
{
    static const char *const examples[] = {"mlp",  "convnet", "resnet",  "chargpt",  "gpt2",
                                           "demo", "ffn",     "nascell", "lstm_ptb", "pspnet"};
    static const FrontendMode modes[] = {FRONTEND_TRAIN, FRONTEND_EVAL, FRONTEND_INFER,
                                         FRONTEND_PREDICT};
    static Words words;
    int rounds = argc > 1 ? atoi(argv[1]) : 150, graphs = 0;
    uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
    char *mutant = malloc(MAX_TEXT);
    for (size_t e = 0; e < sizeof examples / sizeof examples[0]; e++) {
        char *text = read_example(examples[e]);
        cut(text, &words);
        for (int i = 0; i < rounds; i++) {
            state = seed * 1000003 + (uint64_t)i * 7919 + e;
            mutate(&words, mutant);
            Elaborated r = elaborate_text(mutant, modes[i % 4]);
            graphs += r.graph != NULL;
            elaborated_free(&r);
            if (check_failures) {
                fprintf(stderr, "%s, round %d:\n%s\n", examples[e], i, mutant);
                return test_result();
            }
        }
        free(text);
    }
    free(mutant);
    CHECK_MSG(graphs > rounds, "only %d mutants are still models", graphs);
    return test_result();
}
