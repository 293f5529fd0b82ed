/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promises 12 and 13 through the command line: killed at any moment, disk full at any byte. */
#include "e2e.h"
#include "equal_runs.h"
#include "kill_and_resume.h"
#include "tiny_model.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Files may not grow past a limit, as on a full disk: the run ends with an error, and what it had
 * saved before is whole and resumes to the undisturbed run's bits. */
static void test_full_disk(void)
{
    write_tiny_model(12, 1);
    Result r = run("$SCRIMP train $TMP/tiny.scrimp --out $TMP/undisturbed -q");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    r = run(
        "LD_PRELOAD=$LATE_DISK $SCRIMP train $TMP/tiny.scrimp --out $TMP/full --steps 12 -q --log "
        "$TMP/log & pid=$!; while [ ! -e $TMP/full/trainer.json ]; do sleep 0.005; done; kill "
        "-TERM $pid; wait $pid; "
        "test $? = 143");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    /* The limit is in blocks of 512 bytes; neither large file fits, messages do. */
    for (int blocks = 2; blocks <= 18; blocks += 4) {
        r = run("ulimit -f %d; $SCRIMP train $TMP/tiny.scrimp --out $TMP/full "
                "--resume -q",
                blocks);
        char detail[1200];
        snprintf(detail, sizeof detail, "%d blocks: exit code %d\n%.1000s", blocks, r.code, r.err);
        EXPECT(r.code == 1 && strstr(r.err, "error"), detail);
        result_free(&r);
        r = run("ls $TMP/full | grep -c -e tmp -e '~'");
        EXPECT(r.code == 1, r.out); /* no half-written file stays */
        result_free(&r);
    }
    r = run("$SCRIMP train $TMP/tiny.scrimp --out $TMP/full --resume -q");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    expect_equal_runs("undisturbed", "full");
}

/* A folder that cannot be written is found before training, or at the first save, with a message.
 */
static void test_bad_folders(void)
{
    Result r = run("touch $TMP/file; $SCRIMP train $TMP/tiny.scrimp --out $TMP/file -q");
    EXPECT(r.code == 1 && strstr(r.err, "file"), r.err);
    result_free(&r);
    r = run("$SCRIMP train $TMP/tiny.scrimp --out $TMP/none --resume -q");
    EXPECT(r.code == 1 && strstr(r.err, "none"), r.err);
    result_free(&r);
    r = run("echo '{' > $TMP/full/trainer.json; $SCRIMP train $TMP/tiny.scrimp --out $TMP/full "
            "--resume -q");
    EXPECT(r.code == 1 && strstr(r.err, "trainer.json"), r.err);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    kill_and_resume(25, 40);
    test_full_disk();
    test_bad_folders();
    return e2e_end();
}
