/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuDNN is asked in a child process: it may start the driver of a device that is here, and a
 * process that has done so must not fork, as compiling does.  Opening the library takes a second,
 * an answer a few milliseconds: the child answers question after question, and ends when this
 * process does, or when nobody asks for a while. */
#include "codegen/cuda/library/cudnn_ask.h"

#include "codegen/cuda/library/cudnn_device.h"
#include "runtime/cuda/find.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDLE_MS = 5000, ANSWER_MS = 120000 };

typedef struct Question {
    CudnnProblem problem;
    int64_t arch; /* 90 for sm_90 */
} Question;

typedef struct Answer {
    int64_t ok, lacks_driver;
    CudnnChoice choice;
} Answer;

/* --- messages --- */

static bool wait_for(int fd, int milliseconds)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, milliseconds);
    while (n < 0 && errno == EINTR)
        n = poll(&p, 1, milliseconds);
    return n > 0;
}

static bool receive(int fd, void *message, size_t bytes, int milliseconds)
{
    for (char *at = message; bytes;) {
        ssize_t n = wait_for(fd, milliseconds) ? recv(fd, at, bytes, 0) : 0;
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n < 0 ? 0 : n;
        bytes -= n < 0 ? 0 : (size_t)n;
    }
    return true;
}

static bool send_all(int fd, const void *message, size_t bytes)
{
    for (const char *at = message; bytes;) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n < 0 ? 0 : n;
        bytes -= n < 0 ? 0 : (size_t)n;
    }
    return true;
}

/* --- the child --- */

/* Engines of attention are compiled by NVRTC when a plan is made; cuDNN knows of none where it
 * could not load what was compiled, though it does not do that here. */
static bool lacks_driver(void)
{
    static void *driver;
    if (!driver)
        driver = cuda_find_driver_or_stub();
    return !driver;
}

static void answer(const Cudnn *cudnn, const Question *q, Answer *out)
{
    char json[1024];
    *out = (Answer){.lacks_driver = cudnn_is_attention(&q->problem) && lacks_driver()};
    if (out->lacks_driver || !cudnn_device_json(json, sizeof json, q->arch, cudnn->version))
        return;
    const CudnnPlanner by = {.cudnn = cudnn, .device = cudnn_device(cudnn, json, NULL)};
    if (!by.device)
        return;
    out->ok = cudnn_choose(&by, &q->problem, &out->choice, NULL);
    cudnn->object_destroy(by.device);
}

static void serve(int fd)
{
    Question q;
    Answer a;
    const Cudnn *cudnn = cudnn_api(NULL);
    while (cudnn && receive(fd, &q, sizeof q, IDLE_MS)) {
        answer(cudnn, &q, &a);
        if (!send_all(fd, &a, sizeof a))
            break;
    }
    _exit(0);
}

static int channel = -1;
static pid_t child, owner; /* who started it */

static void stop(void)
{
    if (channel >= 0)
        close(channel);
    channel = -1;
    if (child <= 0 || owner != getpid() || waitpid(child, NULL, WNOHANG) != 0)
        return; /* its number may be another process's by now */
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    child = 0;
}

static bool start(void)
{
    int end[2];
    if (!owner)
        atexit(stop);
    owner = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0)
        return false;
    child = fork();
    if (child == 0) {
        close(end[0]);
        serve(end[1]);
    }
    close(end[1]);
    channel = end[0];
    return child > 0;
}

/* One that ended because it was idle is started again. */
static bool converse(const Question *q, Answer *out)
{
    if (owner != getpid()) /* processes that were forked do not share one */
        stop();
    for (int attempt = 0; attempt < 2; attempt++) {
        if (channel < 0 && !start())
            return false;
        if (send_all(channel, q, sizeof *q) && receive(channel, out, sizeof *out, ANSWER_MS))
            return true;
        stop();
    }
    return false;
}

/* --- what was asked --- */

typedef struct Known {
    Question question;
    Answer answer;
} Known;

static Known *known;
static size_t n_known, room;

static const Answer *find(const Question *q)
{
    for (size_t i = 0; i < n_known; i++)
        if (memcmp(&known[i].question, q, sizeof *q) == 0)
            return &known[i].answer;
    return NULL;
}

static void keep(const Question *q, const Answer *a)
{
    if (n_known == room) {
        size_t more = room ? 2 * room : 64;
        Known *larger = realloc(known, more * sizeof *known);
        if (!larger)
            return;
        known = larger;
        room = more;
    }
    known[n_known++] = (Known){*q, *a};
}

static RtError missing, attention_missing;
static bool failed;

/* It would give the next questions no answer either, in minutes. */
static bool fail(const char *why)
{
    failed = true;
    return rt_error(&missing, "%s", why);
}

bool cudnn_ask(const CudnnProblem *p, const char *arch, CudnnChoice *out)
{
    char json[1024];
    int number = 0;
    Answer a;
    sscanf(arch, "sm_%d", &number);
    const Question q = {.problem = *p, .arch = number};
    const Answer *had = find(&q);
    if (had)
        *out = had->choice;
    if (had)
        return had->ok;
    if (cudnn_missing())
        return false;
    if (!cudnn_device_json(json, sizeof json, q.arch, cudnn_version()))
        return fail("it cannot be asked for an architecture of which scrimp knows no device");
    if (!converse(&q, &a))
        return fail("cuDNN ended the process that asked it, or did not answer");
    keep(&q, &a);
    if (a.lacks_driver)
        rt_error(&attention_missing,
                 "cuDNN plans attention where a driver is, or the stub of one "
                 "(lib64/stubs/libcuda.so): install CUDA's toolkit, or set CUDA_HOME to it");
    *out = a.choice;
    return a.ok;
}

int64_t cudnn_workspace(const CudnnProblem *p, const char *archs)
{
    int64_t most = 0;
    for (const char *at = archs; most >= 0 && *at; at += strcspn(at, ","), at += *at == ',') {
        CudnnChoice choice;
        if (!cudnn_ask(p, at, &choice))
            most = -1;
        else if (choice.workspace > most)
            most = choice.workspace;
    }
    return most;
}

int64_t cudnn_version(void)
{
    const Cudnn *cudnn = failed ? NULL : cudnn_api(&missing);
    return cudnn ? cudnn->version : 0;
}

const char *cudnn_missing(void)
{
    return cudnn_version() ? NULL : missing.message;
}

const char *cudnn_attention_missing(void)
{
    const char *what = cudnn_missing();
    return what || !attention_missing.message[0] ? what : attention_missing.message;
}
