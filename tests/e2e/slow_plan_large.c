/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long large graphs take a processor: 2,000 nodes at most 20 seconds, 20,000 nodes 60 seconds,
 * and 2 GB. */
#include "e2e.h"
#include "tests/support/random_step.h"

#include <stdio.h>

static void write_node(FILE *f, int n, int time, int64_t bytes, int n_in, const int *in)
{
    fprintf(f, "%s\n{\"time\":%d,\"inputs\":[", n > 0 ? "," : "", time);
    for (int k = 0; k < n_in; k++)
        fprintf(f, "%s[%d,0]", k > 0 ? "," : "", in[k]);
    fprintf(f, "],\"outputs\":[{\"bytes\":%lld}]}", (long long)bytes);
}

/* A chain with a skip over eight nodes at every eighth. */
static void write_chain(FILE *f, int n, Random *r)
{
    for (int i = 0; i < n; i++) {
        int in[2] = {i - 1, i - 8};
        write_node(f, i, random_below(r, 4) ? 1 : 10, 64 * (100 + random_below(r, 1900)),
                   i == 0 ? 0 : 1 + (i % 8 == 0 && i > 8), in);
    }
}

/* Layers in which a node reads one to three of the layers before. */
static void write_layers(FILE *f, int n, int width, Random *r)
{
    int in[64];
    for (int i = 0; i < n - 1; i++) {
        int layer = i / width, n_in = layer == 0 ? 0 : 1 + random_below(r, 3);
        for (int k = 0; k < n_in; k++) {
            int back = layer > 6 && random_below(r, 7) == 0 ? 2 + random_below(r, 5) : 1;
            in[k] = (layer - back) * width + (random_below(r, width / 3) * 3 + k) % width;
        }
        write_node(f, i, 1 + random_below(r, 10), 64 * (100 + random_below(r, 1900)), n_in, in);
    }
    for (int k = 0; k < width; k++)
        in[k] = n - 1 - width + k;
    write_node(f, n - 1, 1, 64, width, in);
}

/* Forward graphs: the step has twice the nodes. */
static void test_graph(int n, int width, double most_seconds)
{
    char path[600], what[300];
    snprintf(path, sizeof path, "%s/graph.json", e2e_tmp());
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL, path);
    Random r = {(uint64_t)n};
    fprintf(f, "{\"format\":\"scrimp.graph.1\",\"kind\":\"forward\",\"nodes\":[");
    if (width == 1)
        write_chain(f, n, &r);
    else
        write_layers(f, n, width, &r);
    fprintf(f, "]}\n");
    EXPECT(fclose(f) == 0, path);
    Result run_of =
        run("exec $SCRIMP plan --graph $TMP/graph.json --budget 50%% --json --no-cache");
    snprintf(what, sizeof what, "%d nodes, width %d: exit code %d, %.1f s, %lld bytes", 2 * n,
             width, run_of.code, run_of.processor_seconds, (long long)run_of.max_resident);
    printf("%s\n", what);
    EXPECT(run_of.code == 0, what);
    EXPECT(run_of.processor_seconds <= most_seconds && run_of.max_resident <= (int64_t)2 << 30,
           what);
    result_free(&run_of);
}

int main(void)
{
    e2e_begin();
    test_graph(150, 1, 20);
    test_graph(150, 5, 20);
    test_graph(1000, 1, 20);
    test_graph(1000, 10, 20);
    test_graph(10000, 1, 60);
    test_graph(10000, 20, 60);
    return e2e_end();
}
