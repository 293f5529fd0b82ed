/* SPDX-License-Identifier: GPL-3.0-or-later */
/* arena: offsets for buffers with known lives. */
#include "frontend/driver/cli_file.h"

#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "passes/memplan/buffer_csv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool write_rows(Cli *cli, const char *path, const BufferCsv *csv, const MemLayout *layout)
{
    bool named = path && !cli_is_standard_output(path);
    FILE *f = named ? fopen(path, "wb") : stdout;
    bool ok = f != NULL;
    if (f)
        buffer_csv_write(csv, layout->offset, f);
    if (f && named) { /* main looks at standard output */
        ok = !ferror(f);
        ok = fclose(f) == 0 && ok;
    }
    if (!ok)
        cli_error(cli, EXIT_USER, "E411", NULL, "cannot write %s: %s", path, strerror(errno));
    return ok;
}

static void print_figures(const MemLayout *layout, double seconds)
{
    json_t *o = json_object();
    int64_t gap = layout->arena_bytes - layout->lower_bound_bytes;
    json_object_set_new(o, "arena_bytes", json_integer(layout->arena_bytes));
    json_object_set_new(o, "lower_bound_bytes", json_integer(layout->lower_bound_bytes));
    json_object_set_new(o, "gap_bytes", json_integer(gap));
    json_object_set_new(o, "seconds", json_real(seconds));
    cli_print_json(o);
}

ExitCode verb_arena(Cli *cli)
{
    size_t length;
    BufferCsv csv;
    if (!cli_one_writes_output(cli, "--out", cli->output.out))
        return EXIT_USER;
    const char *text = cli_read_file(cli, cli->file, CLI_TEXT_BYTES, &length), *fault;
    if (!text)
        return EXIT_USER;
    if (!buffer_csv_read(cli->pool, text, length, &csv, &fault))
        return cli_error(cli, EXIT_USER, "E410", NULL, "%s: %s", cli->file, fault);
    double begin = clock_seconds();
    MemLayout layout = memplan_place(cli->pool, csv.buffer, csv.n, 1);
    double seconds = clock_seconds() - begin;
    if (!memplan_check(cli->pool, csv.buffer, csv.n, &layout, &fault))
        BUG("the placement is wrong: %s", fault);
    if ((cli->output.out || !cli->output.json) && !write_rows(cli, cli->output.out, &csv, &layout))
        return EXIT_USER;
    if (cli->output.json)
        print_figures(&layout, seconds);
    return EXIT_OK;
}
