/* Fuzz target of the IR reader: what it accepts must verify, and print to a text that reads back
 * byte for byte. With -DFUZZ_REPLAY the program has a main of its own that runs the files and
 * folders it is given. */
#include "ir/print.h"
#include "ir/support/bug.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *print_of(Pool *pool, const Graph *g)
{
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){0}, &b);
    return b.text;
}

/* The cost rules must bear any shape that the reader accepts. */
static void ask_costs(const Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (node_workspace_bytes(g, n) < 0 || node_bytes_moved(g, n) < 0 ||
            !(node_flops(g, n) >= 0))
            BUG("negative costs");
        for (int i = 0; i < n->n_in * n->n_out; i++)
            node_may_overwrite(g, n, i / n->n_in, i % n->n_in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Pool *pool = pool_new();
    if (!pool)
        return 0;
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "fuzz", (const char *)data, size, diag);
    if ((g == NULL) != (diag_error_count(diag) > 0))
        BUG("a graph and an error, or neither");
    if (g) {
        const char *once = print_of(pool, g);
        Graph *again = graph_read(pool, "again", once, strlen(once), diag);
        if (!again || strcmp(print_of(pool, again), once) != 0)
            BUG("does not read back:\n%s", once);
        ask_costs(g);
        StrBuf dot = strbuf_new(pool);
        graph_print_dot(g, &dot);
    }
    pool_free(pool);
    return 0;
}

#ifdef FUZZ_REPLAY
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t length = 0, n;
    char block[4096];
    if (!f)
        return -1;
    FILE *memory = open_memstream(&text, &length);
    while (memory && (n = fread(block, 1, sizeof block, f)) > 0)
        fwrite(block, 1, n, memory);
    fclose(f);
    if (!memory || fclose(memory) != 0)
        return -1;
    LLVMFuzzerTestOneInput((const uint8_t *)text, length);
    free(text);
    return 1;
}

/* How many files were run; -1 when one could not be read. */
static int replay(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    if (!dir)
        return replay_file(path);
    for (const struct dirent *e; count >= 0 && (e = readdir(dir));) {
        char inner[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        int n = replay(inner);
        count = n < 0 ? n : count + n;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }
        total += n;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 1;
}
#endif
