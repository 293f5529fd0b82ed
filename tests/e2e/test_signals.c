/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a user's terminal, shell and scheduler do to a training run: it saves when it is told to
 * end, and goes on when only a reader of its messages does. */
#include "e2e.h"
#include "tiny_model.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double PATIENCE = 120; /* seconds; a hang, not a measurement */
enum { STEPS = 2000000 };           /* more than a test waits for */

static void pause_seconds(double s)
{
    nanosleep(&(struct timespec){(time_t)s, (long)(1e9 * (s - (double)(time_t)s))}, NULL);
}

/* In a child: whoever started the tests (nohup, a shell's background job) may ignore some. */
static void default_signals(void)
{
    static const int numbers[] = {SIGINT, SIGHUP, SIGTERM, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], SIG_DFL);
}

/* A shell in a process group of its own, with the signals of a terminal's foreground job. */
static pid_t start(const char *command)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        default_signals();
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    setpgid(child, child);
    return child;
}

/* Exit code, or -signal. */
static int end_of(pid_t child)
{
    int status = 0;
    for (double waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 0.01) {
        if (waited > PATIENCE) {
            kill(-child, SIGKILL);
            EXPECT(false, "it does not end");
        }
        pause_seconds(0.01);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Ended, but still to be waited for. */
static bool has_ended(pid_t child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* Waits until the file has this text. */
static void wait_for(const char *path, const char *text)
{
    bool found = false;
    for (double waited = 0; !found && waited < PATIENCE; waited += 0.01) {
        char *now = read_text(path, NULL);
        found = now && strstr(now, text);
        free(now);
        if (!found)
            pause_seconds(0.01);
    }
    EXPECT(found, text);
}

static bool has_text(const char *path, const char *text)
{
    char *now = read_text(path, NULL);
    bool found = now && strstr(now, text);
    free(now);
    return found;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static int64_t saved_step(const char *run_name)
{
    json_t *o = json_load_file(in_tmp(run_name), 0, NULL);
    int64_t step = json_integer_value(json_object_get(o, "step"));
    json_decref(o);
    return step;
}

/* --- readers that leave --- */

/* Ctrl-C goes to every process of the pipe; the trap keeps the shell that writes the exit code. */
static void test_tee(void)
{
    pid_t job = start("(trap : INT; $SCRIMP train $TMP/tiny.scrimp --threads 1 --out $TMP/tee; "
                      "echo $? > $TMP/tee.code) 2>&1 | tee $TMP/tee.log");
    wait_for(in_tmp("tee.log"), "step 1/");
    kill(-job, SIGINT);
    end_of(job);
    wait_for(in_tmp("tee.code"), "\n");
    EXPECT(has_text(in_tmp("tee.code"), "130"), "not ended by the signal");
    EXPECT(saved_step("tee/trainer.json") > 0, "not saved");
}

/* The reader of its messages is gone long before the run is told to end. */
static void test_interrupt_without_reader(void)
{
    int ends[2];
    EXPECT(pipe(ends) == 0, "no pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        default_signals();
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c",
              "exec $SCRIMP train $TMP/tiny.scrimp --threads 1 --out $TMP/gone --log $TMP/gone.log",
              (char *)NULL);
        _exit(126);
    }
    close(ends[0]);
    close(ends[1]);
    wait_for(in_tmp("gone.log"), "\"step\": 9");
    kill(child, SIGTERM);
    EXPECT(end_of(child) == -SIGTERM, "not ended by the signal");
    EXPECT(saved_step("gone/trainer.json") > 0, "not saved");
}

/* The run comes to its end, and its exit code is 0.  Its log is more than a pipe holds: it has not
 * ended when the reader leaves. */
static void test_readers_leave(void)
{
    Result r =
        run("($SCRIMP train $TMP/short.scrimp --threads 1 --out $TMP/a; echo $? > $TMP/code) 2>&1 "
            "| head -n 1; cat $TMP/code");
    EXPECT(strstr(r.out, "\n0\n"), r.out);
    result_free(&r);
    r = run("($SCRIMP train $TMP/short.scrimp --steps 1500 --threads 1 --out $TMP/b --log -; "
            "echo $? > $TMP/code) | head -n 1; cat $TMP/code");
    EXPECT(strstr(r.out, "\n0\n"), r.out);
    EXPECT(strstr(r.err, "the reader of --log - has left"), r.err);
    result_free(&r);
    expect_ok("$SCRIMP train $TMP/short.scrimp --threads 1 --out $TMP/c -q && "
              "cmp $TMP/a/model.safetensors $TMP/c/model.safetensors");
    expect_ok("$SCRIMP train $TMP/short.scrimp --steps 1500 --threads 1 --out $TMP/d -q --log "
              "$TMP/d.log && test $(wc -c < $TMP/d.log) -gt 120000 && "
              "cmp $TMP/b/model.safetensors $TMP/d/model.safetensors");
}

/* What only writes for its reader ends with it, quietly, as other programs do; a reader of messages
 * does not count. */
static void test_data_verbs(void)
{
    static const char *const endless[] = {
        "generate $EXAMPLES/chargpt.scrimp --threads 1 -D L=2 --checkpoint $TMP/gpt --tokens "
        "100000000",
        "plan $EXAMPLES/mlp.scrimp --sweep 10000 -q",
        "dump $EXAMPLES/resnet.scrimp -D depth=101 --stage=ir",
    };
    Result r = run("$SCRIMP train $EXAMPLES/chargpt.scrimp --threads 1 -D N=4 -D L=2 --data "
                   "$TMP/text --steps 2 "
                   "--out $TMP/gpt -q");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    for (int i = 0; i < 3; i++) {
        r = run("(timeout 300 $SCRIMP %s; echo $? > $TMP/code) | head -c 50 > /dev/null; "
                "cat $TMP/code",
                endless[i]);
        EXPECT(strcmp(r.out, "141\n") == 0, r.out);
        EXPECT(*r.err == '\0', r.err);
        result_free(&r);
    }
    r = run("(trap '' PIPE; $SCRIMP %s; echo $? > $TMP/code) | head -c 50 > /dev/null; "
            "cat $TMP/code",
            endless[2]);
    EXPECT(strcmp(r.out, "1\n") == 0 && strstr(r.err, "standard output"), r.err);
    result_free(&r);
    r = run("(sleep 0.2; $SCRIMP verify $TMP/short.scrimp --threads 1 --steps 1 --budget 1 2>&1 > "
            "/dev/null; "
            "echo $? > $TMP/code) | true; cat $TMP/code");
    EXPECT(strcmp(r.out, "3\n") == 0, r.out);
    result_free(&r);
}

/* --- signals --- */

/* The terminal is closed: the kernel sends HUP to the session's leader, and so does a shell. */
static void test_closed_terminal(void)
{
    int master;
    char seen[65536] = "";
    size_t n = 0;
    fflush(NULL);
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child < 0) {
        printf("skipped, as there are no terminals: %s\n", strerror(errno));
        return;
    }
    if (child == 0) {
        default_signals();
        execl("/bin/sh", "sh", "-c",
              "exec $SCRIMP train $TMP/tiny.scrimp --threads 1 --out $TMP/closed", (char *)NULL);
        _exit(126);
    }
    while (n + 1 < sizeof seen && !strstr(seen, "step 1/")) {
        ssize_t got = read(master, seen + n, sizeof seen - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        seen[n] = '\0';
    }
    EXPECT(strstr(seen, "step 1/"), seen);
    close(master);
    EXPECT(end_of(child) == -SIGHUP, "not ended by the signal");
    EXPECT(saved_step("closed/trainer.json") > 0, "not saved");
}

/* nohup, and a shell's background jobs. */
static void test_ignored(void)
{
    pid_t job =
        start("trap '' HUP INT TERM; exec $SCRIMP train $TMP/short.scrimp --threads 1 --out "
              "$TMP/ignored 2> $TMP/ignored.err");
    wait_for(in_tmp("ignored.err"), "step 1/");
    kill(job, SIGHUP);
    kill(job, SIGINT);
    kill(job, SIGTERM);
    EXPECT(end_of(job) == 0, "ended by a signal that was ignored");
    EXPECT(!has_text(in_tmp("ignored.err"), "interrupted"), "a signal that was ignored");
}

/* Asleep: neither running nor waiting for a processor or a disk. */
static bool sleeps(pid_t process)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f))
        *line = '\0';
    if (f)
        fclose(f);
    const char *name_end = strrchr(line, ')'); /* "PID (NAME) STATE ..." */
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

/* A run that cannot leave its step: nobody takes what it writes to its log.  Returns it and the
 * open log. */
static pid_t start_held(const char *name, int *log)
{
    char command[600];
    mkfifo(in_tmp("fifo"), 0600);
    snprintf(command, sizeof command,
             "exec $SCRIMP train $TMP/tiny.scrimp --threads 1 --out $TMP/%s -q --log $TMP/fifo",
             name);
    *log = open(in_tmp("fifo"), O_RDONLY | O_NONBLOCK); /* does not wait for the run */
    int room = fcntl(*log, F_SETPIPE_SZ, getpagesize());
    pid_t job = start(command);
    int written = 0, seen = 0;
    for (double waited = 0; seen < 5 && waited < PATIENCE; waited += 0.01) {
        bool full = ioctl(*log, FIONREAD, &written) == 0 && written > room / 2;
        seen = full && sleeps(job) ? seen + 1 : 0;
        pause_seconds(0.01);
    }
    EXPECT(seen == 5, "it does not write its log");
    fcntl(*log, F_SETFL, 0);
    return job;
}

static void drain(int log)
{
    char bytes[4096];
    while (read(log, bytes, sizeof bytes) > 0) {
    }
    close(log);
}

/* Sends both signals and lets the run go on; true when it has saved and ended by the first. */
static bool ends_by_first(int first, int second)
{
    int log;
    pid_t job = start_held("twice", &log);
    kill(job, first);
    pause_seconds(0.1);
    kill(job, second);
    pause_seconds(0.1);
    drain(log);
    bool ended = end_of(job) == -first && saved_step("twice/trainer.json") > 0;
    expect_ok("rm -rf $TMP/twice");
    return ended;
}

/* A closing terminal and `timeout` send their signal twice; a double Ctrl-C may be one keystroke
 * that came along two ways.  On a busy machine the second may be half a second late: that would be
 * somebody who does not want to wait, and is tried again. */
static void test_twice(int first, int second)
{
    bool ended = false;
    for (int attempt = 0; !ended && attempt < 5; attempt++)
        ended = ends_by_first(first, second);
    EXPECT(ended, "not ended by the first signal, or not saved");
}

/* Somebody who presses Ctrl-C again, and again, does not want to wait. */
static void test_impatience(void)
{
    int log;
    pid_t job = start_held("impatient", &log);
    for (int pressed = 0; pressed < 20 && !has_ended(job); pressed++) {
        kill(job, SIGINT);
        pause_seconds(0.8);
    }
    EXPECT(end_of(job) == -SIGINT, "not ended by a later signal");
    EXPECT(!is_there(in_tmp("impatient/trainer.json")), "it was not to be saved");
    close(log);
}

/* What a log says, but for the time it took. */
static char *log_without_seconds(const char *path)
{
    char command[600];
    snprintf(command, sizeof command, "sed 's/, \"seconds\": [^}]*//' %s", path);
    Result r = run("%s", command);
    free(r.err);
    return r.out;
}

/* A signal does not wait for the evaluation to end; the run that continues makes it. */
static void test_during_evaluation(void)
{
    static const char options[] = "-D N=4 -D L=2 --data $TMP/long --steps 2";
    Result r =
        run("sed 's/^train {/train {\\n  eval_every = 1/; s/held_out *= .*/held_out = 90%%/; "
            "/eval_every *= [^1]/d' $EXAMPLES/chargpt.scrimp > $TMP/eval.scrimp");
    result_free(&r);
    make_text(in_tmp("long"), 90000);
    r = run("$SCRIMP train $TMP/eval.scrimp --threads 1 %s -q --log $TMP/eval.whole", options);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    char command[600];
    snprintf(
        command, sizeof command,
        "exec $SCRIMP train $TMP/eval.scrimp --threads 1 %s --out $TMP/eval --log $TMP/eval.log 2> "
        "$TMP/eval.err",
        options);
    pid_t job = start(command);
    wait_for(in_tmp("eval.err"), "step 1/");
    kill(job, SIGTERM);
    EXPECT(end_of(job) == -SIGTERM, "not ended by the signal");
    EXPECT(!has_text(in_tmp("eval.log"), "val_loss"), "the evaluation went on");
    EXPECT(has_text(in_tmp("eval/trainer.json"), "evaluation_due"), "the evaluation is lost");
    r = run("$SCRIMP train $TMP/eval.scrimp --threads 1 %s --out $TMP/eval -q --resume --log "
            "$TMP/eval.log",
            options);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    char *whole = log_without_seconds(in_tmp("eval.whole")),
         *parts = log_without_seconds(in_tmp("eval.log"));
    EXPECT(strcmp(whole, parts) == 0, parts);
    free(whole);
    free(parts);
}

/* --- the log --- */

/* Killed while its log is ahead of its checkpoint, and continued: every row once. */
static void test_log_after_kill(void)
{
    Result r = run("$SCRIMP train $TMP/short.scrimp --threads 1 -q --log $TMP/log.whole");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    for (int i = 0; i < 4; i++) {
        pid_t job =
            start(i == 0 ? "exec $SCRIMP train $TMP/short.scrimp --threads 1 --out $TMP/log.run -q "
                           "--log $TMP/log.parts"
                         : "exec $SCRIMP train $TMP/short.scrimp --threads 1 --out $TMP/log.run -q "
                           "--log $TMP/log.parts --resume");
        for (double w = 0; w < PATIENCE && !is_there(in_tmp("log.run/trainer.json")); w += 0.001)
            pause_seconds(0.001);
        pause_seconds(0.02 + 0.013 * i);
        kill(job, SIGKILL);
        end_of(job);
    }
    /* As a kill in the middle of a write leaves it, and as it is when the checkpoint is older.  The
     * kill above may have left half a line of its own: what is appended is not to continue it. */
    r = run("sed -i -e '${/}$/!d}' -e '$a\\' $TMP/log.parts; "
            "printf '{\"step\": 9999, \"loss\": 2}\\n{\"step\": 10000, \"lo' >> $TMP/log.parts; "
            "$SCRIMP train $TMP/short.scrimp --threads 1 --out $TMP/log.run -q --resume --log "
            "$TMP/log.parts");
    EXPECT(r.code == 0 && strstr(r.err, "went past step"), r.err);
    result_free(&r);
    char *whole = log_without_seconds(in_tmp("log.whole")),
         *parts = log_without_seconds(in_tmp("log.parts"));
    EXPECT(strcmp(whole, parts) == 0, "rows are missing, doubled or damaged");
    free(whole);
    free(parts);
}

/* What is no log is not cut, and not written to. */
static void test_foreign_log(void)
{
    static const char *const texts[] = {"dear diary\\n", "dear diary", "{\"a\": 1}\\n",
                                        "{\"step\": 1}\\nx\\n{\"step\": 2}\\n"};
    for (int i = 0; i < 4; i++) {
        Result r =
            run("printf '%s' > $TMP/notes; cp $TMP/notes $TMP/notes.before; "
                "$SCRIMP train $TMP/short.scrimp --threads 1 --out $TMP/log.run -q --resume --log "
                "$TMP/notes",
                texts[i]);
        EXPECT(r.code == 1 && strstr(r.err, "E510"), r.err);
        result_free(&r);
        r = run("cmp $TMP/notes $TMP/notes.before");
        EXPECT(r.code == 0, r.out);
        result_free(&r);
    }
}

/* --- descriptors and limits --- */

/* No file gets the number of a standard stream. */
static void test_closed_descriptors(void)
{
    static const char *const closed[] = {"2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"};
    for (int i = 0; i < 3; i++) {
        Result r =
            run("$SCRIMP train $TMP/short.scrimp --threads 1 --steps 20 --log $TMP/closed.log %s; "
                "echo $?; grep -vc '^{\"step\": .*}$' $TMP/closed.log",
                closed[i]);
        EXPECT(strcmp(r.out, "0\n0\n") == 0, r.out);
        result_free(&r);
    }
    Result r = run("$SCRIMP summary $TMP/short.scrimp >&-");
    EXPECT(r.code == 1 && strstr(r.err, "cannot write to standard output"), r.err);
    result_free(&r);
}

/* A wide layer: weights and a log that are larger than the code. */
static void write_wide_model(void)
{
    FILE *f = fopen(in_tmp("wide.scrimp"), "w");
    EXPECT(f, "no model");
    fputs("model wide(x: f32[4, 256]) {\n"
          "  return x |> hidden: linear(1024) |> out: linear(4)\n"
          "}\n"
          "train {\n"
          "  batch = synthetic(x = f32[4, 256], label = i32[4])\n"
          "  loss  = cross_entropy(wide(batch.x), batch.label)\n"
          "  optim = sgd(lr = 0.001)\n"
          "  steps = 6000\n"
          "}\n",
          f);
    fclose(f);
}

/* A limit of the size of files (blocks of 512 or 1,024 bytes) is an error of the write. */
static void test_file_size_limit(void)
{
    write_wide_model();
    Result r = run("$SCRIMP train $TMP/wide.scrimp --steps 1 -q"); /* code comes from the cache */
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    r = run("ulimit -f 512; $SCRIMP train $TMP/wide.scrimp --steps 1 --out $TMP/limit -q");
    EXPECT(r.code == 1 && strstr(r.err, "File too large") && strstr(r.err, "E502"), r.err);
    result_free(&r);
    r = run("ulimit -f 512; $SCRIMP train $TMP/wide.scrimp --threads 1 -q --log $TMP/limit.log");
    EXPECT(r.code == 1 && strstr(r.err, "File too large") && strstr(r.err, "E510"), r.err);
    result_free(&r);
    r = run("ls $TMP/limit | grep -e tmp");
    EXPECT(r.code == 1, r.out);
    result_free(&r);
    r = run("ulimit -f 1; $SCRIMP dump $TMP/short.scrimp --stage=grad > $TMP/limit.ir");
    EXPECT(r.code == 1 && strstr(r.err, "cannot write to standard output"), r.err);
    result_free(&r);
}

/* Code that does not fit the limit is not used, but it is not the cache's fault. */
static void test_limit_below_code(void)
{
    Result r = run("$SCRIMP train $TMP/wide.scrimp --steps 1 -q --cache $TMP/limited");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    r = run("ulimit -f 1; $SCRIMP train $TMP/wide.scrimp --steps 1 -q --cache $TMP/limited");
    EXPECT(r.code == 1 && strstr(r.err, "File too large") && strstr(r.err, "E801"), r.err);
    result_free(&r);
    r = run("ls $TMP/limited/*.so && $SCRIMP cache verify --cache $TMP/limited");
    EXPECT(r.code == 0, r.out);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    write_tiny_model(300, 100);
    Result r = run("mv $TMP/tiny.scrimp $TMP/short.scrimp");
    result_free(&r);
    write_tiny_model(STEPS, STEPS);
    make_text(in_tmp("text"), 30000);
    test_tee();
    test_interrupt_without_reader();
    test_readers_leave();
    test_data_verbs();
    test_closed_terminal();
    test_ignored();
    test_twice(SIGTERM, SIGTERM);
    test_twice(SIGHUP, SIGHUP);
    test_twice(SIGHUP, SIGTERM);
    test_twice(SIGINT, SIGINT);
    test_impatience();
    test_during_evaluation();
    test_log_after_kill();
    test_foreign_log();
    test_closed_descriptors();
    test_file_size_limit();
    test_limit_below_code();
    return e2e_end();
}
