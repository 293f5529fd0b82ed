/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "e2e.h"

#include <ftw.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char tmp_dir[256];
static int failures;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void check_true(bool ok, const char *file, int line, const char *what, const char *detail)
{
    if (ok)
        return;
    fprintf(stderr, "%s:%d: EXPECT failed: %s\n%s\n", file, line, what, detail ? detail : "");
    failures++;
}

char *read_text(const char *path, long *length)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = malloc((size_t)n + 1);
    n = text ? (long)fread(text, 1, (size_t)n, f) : 0;
    fclose(f);
    if (text)
        text[n] = '\0';
    if (length)
        *length = n;
    return text;
}

/* VmHWM of a running process, 0 when it is gone. */
static int64_t peak_resident(pid_t process)
{
    char path[64], line[256];
    long long kibibytes = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)process);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld", &kibibytes) == 1)
            break;
    if (f)
        fclose(f);
    return (int64_t)kibibytes * 1024;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Waits; *resident is the last peak that was seen.  wait4's figure would count the children in
 * which code is generated. */
static int wait_watching(pid_t child, int64_t *resident, double *processor_seconds)
{
    int status = 0;
    struct rusage used = {0};
    while (wait4(child, &status, WNOHANG, &used) == 0) {
        int64_t peak = peak_resident(child);
        *resident = peak ? peak : *resident;
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    *processor_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    return status;
}

static Result run_command(const char *command)
{
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/.out", tmp_dir);
    snprintf(err, sizeof err, "%s/.err", tmp_dir);
    double start = now_seconds();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen(out, "w", stdout) || !freopen(err, "w", stderr))
            _exit(125);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    int64_t resident = 0;
    double processor_seconds;
    int status = wait_watching(child, &resident, &processor_seconds);
    Result r = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                .max_resident = resident,
                .seconds = now_seconds() - start,
                .processor_seconds = processor_seconds};
    r.out = read_text(out, NULL);
    r.err = read_text(err, NULL);
    return r;
}

Result run(const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return run_command(command);
}

void result_free(Result *r)
{
    free(r->out);
    free(r->err);
}

json_t *run_json(int code, const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    Result r = run_command(command);
    char detail[12000];
    snprintf(detail, sizeof detail, "%s\nexit code %d, expected %d\n%.3000s\n%.3000s", command,
             r.code, code, r.out, r.err);
    json_t *o = r.code == code ? json_loads(r.out, 0, NULL) : NULL;
    EXPECT(r.code == code, detail);
    EXPECT(o != NULL, detail);
    result_free(&r);
    return o;
}

double json_get_number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    char detail[200];
    snprintf(detail, sizeof detail, "no number '%s' in the JSON", key);
    EXPECT(json_is_number(v), detail);
    return json_number_value(v);
}

double last_in_log(const char *path, const char *key)
{
    char *text = read_text(path, NULL), *save = NULL;
    double value = (double)NAN;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *o = json_loads(line, 0, NULL);
        EXPECT(o != NULL, line);
        const json_t *v = json_object_get(o, key);
        if (json_is_number(v))
            value = json_number_value(v);
        json_decref(o);
    }
    free(text);
    return value;
}

const char *e2e_tmp(void)
{
    return tmp_dir;
}

const char *in_tmp(const char *name)
{
    static char path[4][400];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", tmp_dir, name);
    return path[turn];
}

/* The path of a library for LD_PRELOAD; empty where sanitizers want to be first. */
static void set_library(const char *build, const char *name, const char *variable)
{
    char path[600] = "";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    snprintf(path, sizeof path, "%s/tests/e2e/libe2e_%s.so", build, name);
#else
    (void)build, (void)name;
#endif
    setenv(variable, path, 1);
}

/* $SCRIMP becomes a script that adds --device. */
static void run_on_device(const char *build, const char *program)
{
    char path[600];
    snprintf(path, sizeof path, "%s/.on-device", tmp_dir);
    FILE *f = fopen(path, "w");
    fprintf(f,
            "#!/bin/sh\nverb=$1\ncase $verb in\ntrain | eval | generate | bench | verify)\n"
            "  shift\n  exec %s $verb --device cuda --exact \"$@\" ;;\nesac\nexec %s \"$@\"\n",
            program, program);
    fclose(f);
    chmod(path, 0700);
    setenv("SCRIMP", path, 1);
    snprintf(path, sizeof path, "%s/cuda-sim", build);
    setenv("SCRIMP_CUDA_PATH", path, 1);
}

void e2e_begin(void)
{
    const char *source = getenv("SCRIMP_SOURCE"), *build = getenv("SCRIMP_BUILD");
    char text[600];
    if (!source || !build) {
        fputs("run this through ctest\n", stderr);
        exit(2);
    }
    const char *base = getenv("TMPDIR");
    snprintf(tmp_dir, sizeof tmp_dir, "%s/scrimp-e2e-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(tmp_dir)) {
        perror(tmp_dir);
        exit(2);
    }
    setenv("TMP", tmp_dir, 1);
    set_library(build, "no_links", "NO_LINKS");
    set_library(build, "late_disk", "LATE_DISK");
    snprintf(text, sizeof text, "%s/scrimp", build);
    setenv("SCRIMP", text, 1);
    setenv("SCRIMP_HOST", text, 1);
    if (getenv("SCRIMP_ON_DEVICE"))
        run_on_device(build, text);
    snprintf(text, sizeof text, "%s/examples", source);
    setenv("EXAMPLES", text, 1);
    setenv("NO_COLOR", "1", 1);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

int e2e_end(void)
{
    nftw(tmp_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (failures)
        fprintf(stderr, "%d expectation(s) failed\n", failures);
    return failures ? 1 : 0;
}

static uint32_t random_state = 12345;

static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static void put_be32(FILE *f, uint32_t x)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(x >> shift & 255), f);
}

/* A digit is a bar at an angle of its own, shifted and noisy. */
static void put_digit(FILE *f, int digit)
{
    int shift = (int)(random_bits() % 5) - 2;
    for (int y = 0; y < 28; y++)
        for (int x = 0; x < 28; x++) {
            int along = (x - 14) * (digit - 5) + (y - 14 + shift) * (digit % 3 + 1) * 2;
            int on = along > -14 && along < 14;
            fputc((int)((on ? 180u : 0u) + random_bits() % 70), f);
        }
}

void make_digits(int64_t n)
{
    char path[400];
    snprintf(path, sizeof path, "%s/idx", tmp_dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/idx/train-images-idx3-ubyte", tmp_dir);
    FILE *images = fopen(path, "wb");
    snprintf(path, sizeof path, "%s/idx/train-labels-idx1-ubyte", tmp_dir);
    FILE *labels = fopen(path, "wb");
    put_be32(images, 0x803);
    put_be32(images, (uint32_t)n);
    put_be32(images, 28);
    put_be32(images, 28);
    put_be32(labels, 0x801);
    put_be32(labels, (uint32_t)n);
    for (int64_t i = 0; i < n; i++) {
        int digit = (int)(random_bits() % 10);
        fputc(digit, labels);
        put_digit(images, digit);
    }
    fclose(images);
    fclose(labels);
}

void make_text(const char *path, int64_t n)
{
    static const char *const words[] = {"the ", "cat ",  "sat ",  "on ",
                                        "a ",   "mat, ", "and\n", "slept. "};
    FILE *f = fopen(path, "wb");
    for (int64_t written = 0; written < n;) {
        const char *w = words[random_bits() % 8];
        fputs(w, f);
        written += (int64_t)strlen(w);
    }
    fclose(f);
}

void make_tokens(const char *path, int n)
{
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < n; i++) {
        int token = i * i % 300;
        fputc(token % 256, f);
        fputc(token / 256, f);
    }
    fclose(f);
}

/* --- expectations of a command --- */

static void expect_text(int code, const char *text, const char *command, bool in_output)
{
    char detail[4000];
    Result r = run("%s", command);
    bool says = !text || strstr(r.err, text) || (in_output && strstr(r.out, text));
    snprintf(detail, sizeof detail,
             "%s\nexit code %d, expected %d, saying \"%s\"\n%.1000s\n%.1500s", command, r.code,
             code, text ? text : "", r.out, r.err);
    EXPECT(r.code == code, detail);
    EXPECT(says, detail);
    result_free(&r);
}

void expect_run(int code, const char *error, const char *command)
{
    expect_text(code, error, command, false);
}

void expect_there(int code, const char *error, const char *command)
{
    char there[4096];
    if (snprintf(there, sizeof there, "cd $TMP && %s", command) >= (int)sizeof there)
        abort();
    expect_run(code, error, there);
}

void expect_said(int code, const char *said, const char *command)
{
    expect_text(code, said, command, true);
}

void expect_ok(const char *command)
{
    expect_run(0, NULL, command);
}
