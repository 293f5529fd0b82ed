/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_file.h"

#include "runtime/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_CHUNK = 1 << 16 };

/* What the file system says of a file's length; 0 of a pipe or device. */
static bool too_long(FILE *f, size_t most)
{
    struct stat info;
    return fstat(fileno(f), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > (off_t)most;
}

/* Reads one byte more than `most` at the most. */
static bool read_chunks(Cli *cli, FILE *f, size_t most, StrBuf *text)
{
    char *chunk = pool_alloc(cli->pool, READ_CHUNK);
    for (size_t n = 1; n > 0 && text->len <= most;) {
        size_t left = most + 1 - text->len;
        n = fread(chunk, 1, left < READ_CHUNK ? left : READ_CHUNK, f);
        strbuf_putn(text, chunk, n);
    }
    return !ferror(f);
}

const char *cli_read_file(Cli *cli, const char *path, size_t most, size_t *length)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    StrBuf text = strbuf_new(cli->pool);
    bool ok = f != NULL, fits = !f || !too_long(f, most);
    ok = ok && (!fits || read_chunks(cli, f, most, &text));
    if (!ok)
        cli_error(cli, EXIT_USER, "E020", NULL, "cannot read %s: %s", path, strerror(errno));
    if (f && f != stdin)
        fclose(f);
    fits = fits && text.len <= most;
    if (ok && !fits)
        cli_error(cli, EXIT_USER, "E020", NULL, "cannot read %s: larger than %zuMiB", path,
                  most >> 20);
    *length = text.len;
    return ok && fits ? text.text : NULL;
}

bool cli_is_standard_output(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

bool cli_one_writes_output(Cli *cli, const char *option, const char *path)
{
    if (!cli->output.json || !cli_is_standard_output(path))
        return true;
    cli_error(cli, EXIT_USER, "E407",
              pool_printf(cli->pool, "give %s a file, or leave one of them out", option),
              "%s - and --json both write to standard output", option);
    return false;
}

bool cli_needs_file(Cli *cli, const char *option, const char *path)
{
    if (!cli_is_standard_output(path))
        return true;
    cli_error(cli, EXIT_USER, "E407", "give it a path; ./- is one, too",
              "%s - : this is not written to standard output", option);
    return false;
}

static const char *folder_of(Pool *pool, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : pool_strndup(pool, path, (size_t)(slash - path));
}

bool cli_can_write(Cli *cli, const char *path)
{
    struct stat info;
    if (!path || cli_is_standard_output(path))
        return true;
    bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        errno = EISDIR;
    else if (there && !S_ISREG(info.st_mode))
        return true;
    else if (access(folder_of(cli->pool, path), W_OK | X_OK) == 0)
        return true;
    cli_error(cli, EXIT_USER, "E411", NULL, "cannot write %s: %s", path, strerror(errno));
    return false;
}

/* A pipe, a device, or a link, which may lead to one, as /dev/stdout does. */
static bool is_written_in_place(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static ExitCode write_in_place(Cli *cli, const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fputs(text, f) >= 0;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (ok)
        return EXIT_OK;
    return cli_error(cli, EXIT_USER, "E411", NULL, "cannot write %s: %s", path, strerror(errno));
}

ExitCode cli_write_file(Cli *cli, const char *path, const char *text)
{
    RtError err;
    if (cli_is_standard_output(path)) { /* main looks at it */
        fputs(text, stdout);
        return EXIT_OK;
    }
    if (is_written_in_place(path))
        return write_in_place(cli, path, text);
    if (file_replace(path, text, (int64_t)strlen(text), &err))
        return EXIT_OK;
    return cli_error(cli, EXIT_USER, "E411", NULL, "%s", err.message);
}
