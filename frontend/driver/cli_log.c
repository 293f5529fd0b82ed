/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_log.h"

#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what stays of the log of a run that is continued --- */

typedef struct Cut {
    int64_t step;        /* rows past it go, */
    bool evaluation_due; /* and its evaluation, when it is made again */
    int64_t keep;        /* bytes that stay */
    int64_t lines;       /* that stay, */
    int64_t cut;         /* and that go */
} Cut;

/* Spaces may have come from another program. */
static bool read_row(const char *line, size_t length, long long *step)
{
    return sscanf(line, " { \"step\" : %lld", step) == 1 && length >= 2 &&
           strcmp(line + length - 2, "}\n") == 0;
}

/* What a killed run leaves at the end: the beginning of a row, or, where the machine went down,
 * zeros. */
static bool is_torn(const char *line, size_t length)
{
    static const char start[] = "{\"step\": ";
    size_t n = length < sizeof start - 1 ? length : sizeof start - 1, zeros = 0;
    while (zeros < length && line[zeros] == '\0')
        zeros++;
    return length > 0 && line[length - 1] != '\n' &&
           (zeros == length || strncmp(line, start, n) == 0);
}

/* False: a line that no run wrote. */
static bool find_cut(FILE *f, Cut *c)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool ok = true;
    while (ok && (n = getline(&line, &room, f)) > 0) {
        long long step = 0;
        bool row = read_row(line, (size_t)n, &step);
        bool past = row && (step > c->step ||
                            (step == c->step && c->evaluation_due && strstr(line, "\"val_loss\"")));
        ok = row || is_torn(line, (size_t)n);
        if (c->cut || past || !row) {
            c->cut++;
        } else {
            c->lines++;
            c->keep += n;
        }
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

static bool cut_log(Cli *cli, int64_t step, bool evaluation_due)
{
    Cut c = {.step = step, .evaluation_due = evaluation_due};
    FILE *f = fopen(cli->run.log, "r");
    if (!f)
        return errno == ENOENT || refuse(cli, "read");
    bool ok = find_cut(f, &c);
    fclose(f);
    if (!ok) {
        cli_error(cli, EXIT_USER, "E510", "give --log another file",
                  "line %lld of %s is not a training run's: nothing is written there",
                  (long long)(c.lines + c.cut), cli->run.log);
        return false;
    }
    if (!c.cut)
        return true;
    if (truncate(cli->run.log, c.keep) != 0)
        return refuse(cli, "cut");
    fprintf(stderr, "note: %s went past step %lld: cut by %lld line%s\n", cli->run.log,
            (long long)step, (long long)c.cut, c.cut == 1 ? "" : "s");
    return true;
}

/* --- writing --- */

bool train_log_open(Cli *cli, int64_t step, bool evaluation_due, TrainLog *out)
{
    struct stat st;
    *out = (TrainLog){.path = cli->run.log};
    if (!cli->run.log)
        return true;
    if (cli_is_standard_output(cli->run.log)) {
        out->file = stdout;
    } else {
        bool regular = stat(cli->run.log, &st) == 0 && S_ISREG(st.st_mode);
        if (cli->run.resume && regular && !cut_log(cli, step, evaluation_due))
            return false;
        out->file = fopen(cli->run.log, cli->run.resume ? "ae" : "we");
    }
    if (!out->file)
        return refuse(cli, "write");
    out->on_disk = fstat(fileno(out->file), &st) == 0 && S_ISREG(st.st_mode);
    return true;
}

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

void train_log_check(TrainLog *log)
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

void train_log_flush(TrainLog *log)
{
    if (log->file)
        fflush(log->file);
    train_log_check(log);
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
