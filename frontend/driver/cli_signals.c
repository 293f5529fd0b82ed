/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALLED = 128 }; /* what shells add to the number of a signal */
static const double IMPATIENT_SECONDS = 0.5;

static bool pipe_was_ignored;
static volatile sig_atomic_t caught;
static struct timespec caught_at; /* only the handler looks at it */

/* The wrong way round: reading from 0 and writing to 1 and 2 fail as they did. */
static void hold_descriptor(int wanted)
{
    if (fcntl(wanted, F_GETFD) >= 0 || errno != EBADF)
        return;
    int fd = open("/dev/null", wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (fd < 0 || fd == wanted)
        return;
    dup2(fd, wanted);
    close(fd);
}

static bool is_ignored(int number)
{
    struct sigaction old;
    return sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

void signals_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        hold_descriptor(fd);
    pipe_was_ignored = is_ignored(SIGPIPE);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
    return (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
}

static void on_signal(int number)
{
    int kept = errno;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!caught) {
        caught = number;
        caught_at = now;
    } else if (number == SIGINT && seconds_between(&caught_at, &now) >= IMPATIENT_SECONDS) {
        signal(number, SIG_DFL);
        raise(number); /* delivered when the handler returns */
    }
    errno = kept;
}

void signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&action.sa_mask, numbers[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!is_ignored(numbers[i]))
            sigaction(numbers[i], &action, NULL);
}

int signals_caught(void)
{
    return caught;
}

_Noreturn void signals_end_by(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(SIGNALLED + number);
}

bool signals_pipe_ends(void)
{
    return !pipe_was_ignored;
}

bool signals_reader_left(int descriptor)
{
    struct pollfd p = {.fd = descriptor, .events = POLLOUT};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP)) != 0;
}
