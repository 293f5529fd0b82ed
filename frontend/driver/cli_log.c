/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_log.h"

#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_log_format.h"
#include "frontend/driver/cli_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what stays of the log of a run that is continued --- */

typedef struct Cut {
    const LogFormat *format;
    const char *header;
    int64_t step;        /* rows past it go, */
    bool evaluation_due; /* and its evaluation, when it is made again */
    int64_t keep;        /* bytes that stay */
    int64_t lines;       /* that stay, */
    int64_t cut;         /* and that go */
    bool other_columns;
} Cut;

/* What a killed run leaves at the end: the beginning of a line, or, where the machine went down,
 * zeros. */
static bool is_torn(const Cut *c, const char *line, size_t length)
{
    size_t zeros = 0;
    while (zeros < length && line[zeros] == '\0')
        zeros++;
    return length > 0 && line[length - 1] != '\n' &&
           (zeros == length || c->format->begins(line, length) ||
            (c->lines == 0 && strncmp(line, c->header, length) == 0));
}

/* Whether the line is one that a run writes; *stays: in front of what is repeated. */
static bool read_line(Cut *c, const char *line, size_t length, bool *stays)
{
    LogPlace at;
    *stays = false;
    if (is_torn(c, line, length))
        return true;
    if (c->lines == 0 && *c->header) {
        c->other_columns = strncmp(line, "step,", 5) == 0 && strcmp(line, c->header) != 0;
        return *stays = strcmp(line, c->header) == 0;
    }
    if (!c->format->read(line, length, &at))
        return false;
    *stays = !c->cut &&
             (at.step < c->step || (at.step == c->step && !(at.evaluation && c->evaluation_due)));
    return true;
}

/* False: a line that no run wrote. */
static bool find_cut(FILE *f, Cut *c)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool ok = true, stays;
    while (ok && (n = getline(&line, &room, f)) > 0) {
        ok = read_line(c, line, (size_t)n, &stays);
        c->cut += !stays;
        c->lines += stays;
        c->keep += stays ? n : 0;
    }
    free(line);
    return ok && !ferror(f);
}

static bool refuse(Cli *cli, const char *what)
{
    cli_error(cli, EXIT_USER, "E510", NULL, "cannot %s %s: %s", what, cli->run.log,
              strerror(errno));
    return false;
}

static bool refuse_text(Cli *cli, const Cut *c)
{
    if (c->other_columns)
        cli_error(cli, EXIT_USER, "E510", "give --log another file",
                  "%s has other columns than this run: nothing is written there", cli->run.log);
    else
        cli_error(cli, EXIT_USER, "E510", "give --log another file",
                  "line %lld of %s is not a training run's: nothing is written there",
                  (long long)(c->lines + c->cut), cli->run.log);
    return false;
}

static bool cut_log(Cli *cli, Cut *c)
{
    FILE *f = fopen(cli->run.log, "r");
    if (!f)
        return errno == ENOENT || refuse(cli, "read");
    bool ok = find_cut(f, c);
    fclose(f);
    if (!ok)
        return refuse_text(cli, c);
    if (!c->cut)
        return true;
    if (truncate(cli->run.log, c->keep) != 0)
        return refuse(cli, "cut");
    fprintf(stderr, "note: %s went past step %lld: cut by %lld line%s\n", cli->run.log,
            (long long)c->step, (long long)c->cut, c->cut == 1 ? "" : "s");
    return true;
}

/* --- writing --- */

/* Standard output stays open, and leads nowhere. */
static bool close_file(FILE *f)
{
    if (f != stdout)
        return fclose(f) == 0;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        dup2(fd, STDOUT_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
    clearerr(f);
    return true;
}

static void check(TrainLog *log)
{
    if (!log->file || !ferror(log->file))
        return;
    int why = errno;
    if (signals_reader_left(fileno(log->file))) {
        fprintf(stderr, "note: the reader of --log %s has left; training goes on without it\n",
                log->path);
    } else {
        log->lost = true;
        fprintf(stderr, "warning: cannot write %s: %s; training goes on without a log\n", log->path,
                strerror(why));
    }
    close_file(log->file);
    log->file = NULL;
}

static bool open_log(Cli *cli, Cut *c, TrainLog *out)
{
    struct stat st;
    if (cli_is_standard_output(cli->run.log)) {
        out->file = stdout;
    } else {
        bool regular = stat(cli->run.log, &st) == 0 && S_ISREG(st.st_mode);
        if (cli->run.resume && regular && !cut_log(cli, c))
            return false;
        out->file = fopen(cli->run.log, cli->run.resume ? "ae" : "we");
    }
    if (!out->file)
        return refuse(cli, "write");
    out->on_disk = fstat(fileno(out->file), &st) == 0 && S_ISREG(st.st_mode);
    return true;
}

bool train_log_open(Cli *cli, const LogColumns *columns, int64_t step, bool evaluation_due,
                    TrainLog *out)
{
    *out = (TrainLog){.path = cli->run.log, .columns = *columns};
    if (!cli->run.log)
        return true;
    out->format = log_format_of(cli->run.log);
    Cut c = {.format = out->format,
             .header = out->format->header(cli->pool, columns),
             .step = step,
             .evaluation_due = evaluation_due};
    if (!open_log(cli, &c, out))
        return false;
    if (c.lines == 0)
        fputs(c.header, out->file);
    check(out);
    return true;
}

void train_log_row(TrainLog *log, const LogRow *row)
{
    if (!log->file)
        return;
    log->format->put(log->file, &log->columns, row);
    check(log);
}

void train_log_flush(TrainLog *log)
{
    if (log->file)
        fflush(log->file);
    check(log);
}

bool train_log_close(Cli *cli, TrainLog *log)
{
    train_log_flush(log);
    if (log->file && log->file != stdout && fclose(log->file) != 0)
        log->lost = true;
    log->file = NULL;
    if (log->lost)
        cli_error(cli, EXIT_USER, "E510", NULL, "rows are missing in %s", log->path);
    return !log->lost;
}
