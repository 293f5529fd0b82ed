/* SPDX-License-Identifier: GPL-3.0-or-later */
/* arena: random buffers, placed by scrimp and swept here. */
#include "e2e.h"
#include "tests/support/random_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Buffer {
    int64_t id, lower, upper, size, offset;
} Buffer;

static char *path_of(const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", e2e_tmp(), name);
    return path;
}

/* n buffers in a time that grows with n, in a random order of columns. */
static Buffer *write_buffers(const char *path, Random *r, int n, int longest)
{
    Buffer *b = calloc((size_t)n + 1, sizeof *b);
    FILE *f = fopen(path, "wb");
    bool swapped = random_below(r, 2);
    fputs(swapped ? "size,upper,id,lower\n" : "id,lower,upper,size\n", f);
    for (int i = 0; i < n; i++) {
        int64_t lower = random_below(r, n),
                size = random_below(r, 20) ? 1 + random_below(r, 4000) : 0;
        b[i] = (Buffer){i, lower, lower + 1 + random_below(r, longest), size, -1};
        if (swapped)
            fprintf(f, "%lld,%lld,%d,%lld\n", (long long)size, (long long)b[i].upper, i,
                    (long long)lower);
        else
            fprintf(f, "%d,%lld,%lld,%lld\n", i, (long long)lower, (long long)b[i].upper,
                    (long long)size);
    }
    fclose(f);
    return b;
}

/* The offsets of the answer, whose rows must be those of the file. */
static void read_offsets(const char *before, const char *after, Buffer *b, int n)
{
    FILE *given = fopen(before, "rb"), *placed = fopen(after, "rb");
    char g[200], p[200];
    EXPECT(given && placed && fgets(g, sizeof g, given) && fgets(p, sizeof p, placed), after);
    EXPECT(strncmp(g, p, strlen(g) - 1) == 0 && strcmp(p + strlen(g) - 1, ",offset\n") == 0, p);
    for (int i = 0; i < n; i++) {
        bool both = fgets(g, sizeof g, given) && fgets(p, sizeof p, placed);
        size_t same = strlen(g) - 1;
        EXPECT(both && strncmp(g, p, same) == 0 && p[same] == ',', p);
        b[i].offset = strtoll(p + same + 1, NULL, 10);
    }
    EXPECT(!fgets(p, sizeof p, placed), "no row more");
    fclose(given);
    fclose(placed);
}

static int by_lower(const void *a, const void *b)
{
    const Buffer *x = a, *y = b;
    return (x->lower > y->lower) - (x->lower < y->lower);
}

/* Every buffer against those that are alive when it is born; the largest load and the arena. */
static void sweep(Buffer *b, int n, int64_t *arena, int64_t *bound)
{
    int *alive = calloc((size_t)n + 1, sizeof *alive), n_alive = 0;
    *arena = *bound = 0;
    qsort(b, (size_t)n, sizeof *b, by_lower);
    for (int i = 0; i < n; i++) {
        int64_t load = b[i].size, top = b[i].offset + b[i].size;
        int kept = 0;
        for (int k = 0; k < n_alive; k++) {
            const Buffer *o = &b[alive[k]];
            if (o->upper <= b[i].lower)
                continue;
            alive[kept++] = alive[k];
            load += o->size;
            EXPECT(!b[i].size || !o->size || top <= o->offset || o->offset + o->size <= b[i].offset,
                   "two buffers that live together overlap");
        }
        n_alive = kept;
        alive[n_alive++] = i;
        EXPECT(b[i].offset >= 0, "an offset is negative");
        *arena = top > *arena ? top : *arena;
        *bound = load > *bound ? load : *bound;
    }
    free(alive);
}

static double place(uint64_t seed, int n, int longest, int64_t *gap)
{
    char before[400], after[400];
    Random r = {seed};
    path_of("given.csv", before, sizeof before);
    Buffer *b = write_buffers(before, &r, n, longest);
    json_t *o = run_json(0, "$SCRIMP arena $TMP/given.csv -o $TMP/placed.csv --json");
    read_offsets(before, path_of("placed.csv", after, sizeof after), b, n);
    int64_t arena, bound;
    sweep(b, n, &arena, &bound);
    EXPECT(json_get_number(o, "arena_bytes") == (double)arena, "arena_bytes");
    EXPECT(json_get_number(o, "lower_bound_bytes") == (double)bound, "lower_bound_bytes");
    EXPECT(json_get_number(o, "gap_bytes") == (double)(arena - bound), "gap_bytes");
    EXPECT(arena <= bound + bound / 10, "far above the bound");
    double seconds = json_get_number(o, "seconds");
    *gap = arena - bound;
    json_decref(o);
    free(b);
    return seconds;
}

/* The rows of a plan: they fill the arena behind the persistent tensors, and `arena` reads them. */
static void test_plan_rows(const char *model)
{
    char path[400], line[300];
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --arena-csv $TMP/plan.csv --json", model);
    int64_t persistent = (int64_t)json_get_number(o, "persistent_bytes"), arena, bound;
    enum { MOST = 10000 };
    Buffer *b = calloc(MOST, sizeof *b);
    int n = 0;
    FILE *f = fopen(path_of("plan.csv", path, sizeof path), "rb");
    EXPECT(f && fgets(line, sizeof line, f), "a heading");
    EXPECT(strcmp(line, "id,lower,upper,size,planned_offset\n") == 0, line);
    for (; n < MOST && fgets(line, sizeof line, f); n++) {
        long long lower, upper, size, offset;
        EXPECT(sscanf(line, "%*[^,],%lld,%lld,%lld,%lld", &lower, &upper, &size, &offset) == 4,
               line);
        b[n] = (Buffer){n, lower, upper, size, offset - persistent};
    }
    fclose(f);
    EXPECT(n > 100, "buffers");
    sweep(b, n, &arena, &bound);
    EXPECT(persistent + arena == (int64_t)json_get_number(o, "arena_bytes"), "arena_bytes");
    EXPECT(persistent + bound == (int64_t)json_get_number(o, "arena_lower_bound_bytes"), "bound");
    json_t *again = run_json(0, "$SCRIMP arena $TMP/plan.csv --json");
    EXPECT((int64_t)json_get_number(again, "lower_bound_bytes") == bound, "arena's bound");
    json_decref(o);
    json_decref(again);
    free(b);
}

static void expect_refused(const char *command, const char *part)
{
    Result r = run("%s", command);
    EXPECT(r.code == 1 && strstr(r.err, "E407") && strstr(r.err, part), r.err);
    result_free(&r);
}

/* "-" is standard output, which has room for one. */
static void test_dash(void)
{
    Result r = run("cd $TMP && $SCRIMP plan $EXAMPLES/mlp.scrimp --arena-csv rows.csv > table && "
                   "$SCRIMP plan $EXAMPLES/mlp.scrimp --arena-csv - | cmp - rows.csv && "
                   "$SCRIMP plan $EXAMPLES/mlp.scrimp --arena-csv - | $SCRIMP arena - -o - | wc -l "
                   "&& $SCRIMP train $EXAMPLES/ffn.scrimp -D width=16 -D layers=2 --steps 2 -q "
                   "--log - | grep -c loss; test ! -e -");
    EXPECT(r.code == 0, r.err);
    EXPECT(strstr(r.out, "\n2\n"), r.out);
    result_free(&r);
    expect_refused("$SCRIMP plan $EXAMPLES/mlp.scrimp --arena-csv - --json", "--arena-csv a file");
    expect_refused("$SCRIMP arena $TMP/given.csv -o - --json", "--out a file");
    expect_refused("$SCRIMP compile $EXAMPLES/mlp.scrimp -o -", "--out -");
    expect_refused("$SCRIMP compile $EXAMPLES/mlp.scrimp --header -", "--header -");
    expect_refused("$SCRIMP train $EXAMPLES/mlp.scrimp --out -", "--out -");
}

int main(void)
{
    int64_t gap;
    e2e_begin();
    for (uint64_t seed = 1; seed <= 120; seed++)
        place(seed, (int)(seed * seed % 400), 1 + (int)(seed % 60), &gap);
    double seconds = place(2026, 20000, 40, &gap);
    printf("20000 buffers: %.2f s, %lld bytes above the bound\n", seconds, (long long)gap);
    Result r = run("$SCRIMP arena - < $TMP/given.csv | cmp - $TMP/placed.csv");
    EXPECT(r.code == 0, "standard output has what --out has");
    result_free(&r);
    test_dash();
    test_plan_rows("chargpt.scrimp --budget 60%");
    test_plan_rows("googlenet.scrimp -D N=2");
    Result wrong = run("$SCRIMP plan $EXAMPLES/mlp.scrimp --sweep 3 --arena-csv $TMP/plan.csv");
    EXPECT(wrong.code == 1 && strstr(wrong.err, "E407"), wrong.err);
    result_free(&wrong);
    return e2e_end();
}
