/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel cache as its users meet it: whose folder it is, what others could write, several
 * processes at once, what goes and when, and `scrimp cache`.  (Damage: test_promise_compiler.c.) */
#include "e2e.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRAIN "$SCRIMP train $TMP/tiny.scrimp -q"

static void write_models(void)
{
    static const char *const sizes[] = {"tiny", "24", "other", "40"};
    for (int i = 0; i < 4; i += 2) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s.scrimp", e2e_tmp(), sizes[i]);
        FILE *f = fopen(path, "w");
        fprintf(f,
                "model m(x: f32[8, 16]) { return x |> fc1: linear(%s) |> tanh() |> fc2: "
                "linear(10) }\n"
                "train {\n"
                "  batch = synthetic(x = f32[8, 16], label = i32[8])\n"
                "  loss  = cross_entropy(m(batch.x), batch.label)\n"
                "  optim = sgd(lr = 0.1)\n"
                "  steps = 12\n"
                "}\n",
                sizes[i + 1]);
        fclose(f);
    }
}

static bool is_root(const char *what)
{
    if (geteuid() == 0)
        return true;
    printf("skipped, as this is not root: %s\n", what);
    return false;
}

/* --- whose folder it is --- */

static void test_modes(void)
{
    expect_ok("umask 0; " TRAIN " --cache $TMP/new/cache --out $TMP/reference");
    expect_ok("test \"$(stat -c %a $TMP/new) $(stat -c %a $TMP/new/cache)\" = '700 700'");
    expect_ok("! find $TMP/new/cache -type f ! -perm 600 | grep .");
    expect_ok("chmod 777 $TMP/new/cache");
    expect_run(1, "others may write it (mode 0777)", TRAIN " --cache $TMP/new/cache");
    expect_run(1, "chmod go-w", TRAIN " --cache $TMP/new/cache");
    expect_run(0, "plans are not kept",
               "$SCRIMP plan $TMP/tiny.scrimp --budget min --cache $TMP/new/cache > $TMP/o");
    expect_run(1, "others may write it", "$SCRIMP cache show --cache $TMP/new/cache");
    expect_ok("chmod 1777 $TMP/new/cache"); /* nobody may remove, but anybody may add */
    expect_run(1, "others may write it", TRAIN " --cache $TMP/new/cache");
    expect_ok("chmod 755 $TMP/new/cache && " TRAIN " --cache $TMP/new/cache");
}

/* A file that others could have written is made again. */
static void test_files(void)
{
    expect_ok("chmod 666 $TMP/new/cache/*.so");
    expect_run(0, "others may write it (mode 0666)); it is made again",
               TRAIN " --cache $TMP/new/cache --out $TMP/again");
    expect_ok("cd $TMP && cmp again/model.safetensors reference/model.safetensors && rm -r again");
    expect_ok("! find $TMP/new/cache -type f ! -perm 600 | grep .");
    expect_ok("rm $TMP/new/cache/*.so; chmod 602 $TMP/new/cache/*.o");
    expect_run(0, "they are compiled again", TRAIN " --cache $TMP/new/cache");
    expect_ok("cd $TMP/new/cache; f=$(ls *.so); mv $f ../kept; ln -s ../kept $f");
    expect_run(0, "it is made again", TRAIN " --cache $TMP/new/cache");
    expect_ok("! find $TMP/new/cache -type l | grep .");
}

static void test_parents_and_links(void)
{
    expect_ok("mkdir -p $TMP/open/in && chmod 777 $TMP/open");
    expect_run(1, "lies on the way: others may write it", TRAIN " --cache $TMP/open/in");
    expect_ok("chmod 1777 $TMP/open && " TRAIN " --cache $TMP/open/in"); /* as /tmp */
    expect_ok("ln -s new/cache $TMP/link && " TRAIN " --cache $TMP/link");
    expect_ok("ln -s open $TMP/way && chmod 777 $TMP/open");
    expect_run(1, "lies on the way", TRAIN " --cache $TMP/way/in");
    expect_ok("chmod 755 $TMP/open");
}

static void test_other_owners(void)
{
    if (!is_root("folders, files and links of another user"))
        return;
    expect_ok("cp -r $TMP/new/cache $TMP/ann && chown 12345 $TMP/ann");
    expect_run(1, "it belongs to user 12345", TRAIN " --cache $TMP/ann");
    expect_ok("chown 0 $TMP/ann && chown 12345 $TMP/ann/*.so");
    expect_run(0, "it belongs to user 12345); it is made again", TRAIN " --cache $TMP/ann");
    expect_ok("chmod 1777 $TMP/open; ln -s $TMP/ann $TMP/open/trap; chown -h 12345 $TMP/open/trap");
    expect_run(1, "lies on the way: it belongs to user 12345", TRAIN " --cache $TMP/open/trap");
    expect_ok("ln -s open/trap $TMP/chain && ln -s $TMP/chain $TMP/longer");
    expect_run(1, "lies on the way: it belongs to user 12345", TRAIN " --cache $TMP/chain");
    expect_run(1, "lies on the way: it belongs to user 12345", TRAIN " --cache $TMP/longer");
    expect_ok("mkdir $TMP/home && chmod 755 $TMP $TMP/home && chown 12345 $TMP/home");
    /* sudo keeps HOME */
    expect_ok("env -u SCRIMP_CACHE -u XDG_CACHE_HOME HOME=$TMP/home $SCRIMP cache show --json > "
              "$TMP/o; ! grep $TMP/home $TMP/o");
    expect_ok("! ls -A $TMP/home | grep .");
}

/* --- several at once --- */

/* As in containers that share a folder: every process has the number 1, its children 2, 3, ... */
static void test_same_numbers(void)
{
    const char *own = run("unshare -p -f true").code == 0 ? "unshare -p -f" : "";
    if (!*own)
        printf("skipped: processes of the same number (unshare -p is not permitted)\n");
    Result r = run("for i in 1 2 3 4 5 6; do timeout 500 %s $SCRIMP train $TMP/tiny.scrimp -q "
                   "--cache $TMP/shared --out $TMP/same$i & p=\"$p $!\"; done; "
                   "for q in $p; do wait $q || exit 1; done",
                   own);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    expect_ok("for i in 1 2 3 4 5 6; do cmp $TMP/same$i/model.safetensors "
              "$TMP/reference/model.safetensors || exit 1; done; rm -r $TMP/same*");
    expect_ok("! ls $TMP/shared | grep tmp && $SCRIMP cache verify --cache $TMP/shared");
}

/* What a running process uses may be cut or removed: it has its own. */
static void test_under_a_running_process(void)
{
    static const char *const harm[] = {"for f in *; do truncate -s 100 $f; done",
                                       "$SCRIMP cache clear --cache ."};
    for (int i = 0; i < 2; i++) {
        Result r =
            run("cd $TMP/shared; env --default-signal $SCRIMP train $TMP/tiny.scrimp -q --steps "
                "10000000 --log "
                "$TMP/log --cache . & pid=$!; while ! test -s $TMP/log; do sleep 0.02; done; "
                "%s > $TMP/o; sleep 0.3; kill -INT $pid; wait $pid; test $? = 130",
                harm[i]);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
        expect_ok(TRAIN " --cache $TMP/shared; rm $TMP/log");
    }
}

/* --- a parent's signals, and what an interrupted compiler leaves --- */

static void test_ignored_children(void)
{
    expect_ok("timeout 400 env --ignore-signal=CHLD " TRAIN " --no-cache");
    expect_ok("timeout 400 env --ignore-signal=CHLD $SCRIMP dump $TMP/tiny.scrimp --stage=asm > "
              "$TMP/o");
}

/* Waits for the first object of the compiler $pid, or its end. */
#define FIRST_OBJECT "while kill -0 $pid && ! ls $TMP/t/*/*.o; do sleep 0.01; done > $TMP/o 2>&1; "
/* On a busy machine a signal may come when all is compiled: nine more attempts. */
#define ATTEMPTS "for i in 1 2 3 4 5 6 7 8 9 10; do "

static void interrupt(const char *signal, int code)
{
    Result r = run("mkdir -p $TMP/t; export TMPDIR=$TMP/t; " ATTEMPTS "env --default-signal " TRAIN
                   " --jobs 2 --no-cache & pid=$!; " FIRST_OBJECT
                   "children=$(cat /proc/$pid/task/$pid/children); kill -%s $pid; wait $pid; "
                   "code=$?; test $code = 0 || break; done; echo $code; "
                   "for c in $children; do kill -0 $c && echo alive; done; ls $TMP/t",
                   signal);
    char expected[20], detail[2000];
    snprintf(expected, sizeof expected, "%d\n", code);
    snprintf(detail, sizeof detail, "%s: %.800s%.800s", signal, r.out, r.err);
    EXPECT(strcmp(r.out, expected) == 0, detail);
    result_free(&r);
}

static void test_interrupted(void)
{
    interrupt("INT", 130);
    interrupt("TERM", 143);
    interrupt("HUP", 129);
    /* nohup */
    expect_ok("export TMPDIR=$TMP/t; env --default-signal --ignore-signal=HUP " TRAIN
              " --no-cache & pid=$!; " FIRST_OBJECT
              "kill -HUP $pid; wait $pid && ! ls $TMP/t | grep .");
    /* Nobody can tidy up after KILL but the next one, when the last child is gone, too. */
    expect_ok("export TMPDIR=$TMP/t; " ATTEMPTS "env --default-signal " TRAIN
              " --no-cache & pid=$!; " FIRST_OBJECT
              "kill -KILL $pid; wait $pid; ls $TMP/t | grep scrimp-build && exit 0; done; exit 1");
    expect_ok("mkdir $TMP/t/scrimp-other; export TMPDIR=$TMP/t; " ATTEMPTS TRAIN
              " --no-cache; test \"$(ls $TMP/t)\" = scrimp-other && exit 0; sleep 1; done; exit 1");
}

/* --- what goes --- */

static void expect_files(const char *what, int least, int most)
{
    json_t *o = run_json(0, "$SCRIMP cache --json --cache $TMP/trim");
    int n = (int)json_get_number(o, "files");
    char detail[200];
    snprintf(detail, sizeof detail, "%s: %d files, expected %d to %d", what, n, least, most);
    EXPECT(n >= least && n <= most, detail);
    json_decref(o);
}

#define OTHER "$SCRIMP train $TMP/other.scrimp -q --cache $TMP/trim"

static void test_eviction(void)
{
    expect_ok(TRAIN " --cache $TMP/trim; cd $TMP/trim; echo mine > notes.txt; echo x > main.o; "
                    "ls *.o *.so | wc -l > $TMP/n; for f in *; do touch -d '40 days ago' $f; done");
    json_t *o = run_json(0, "$SCRIMP cache show --json --cache $TMP/trim");
    int n = (int)json_get_number(o, "files"); /* kernels, and the step */
    EXPECT(n > 5, "kernels are kept");
    json_decref(o);
    expect_ok("SCRIMP_CACHE_DAYS=0 " OTHER "; cp -a $TMP/trim $TMP/both");
    expect_files("no limit of age", n + 2, 3 * n);
    expect_ok("rm $TMP/trim/*.so; " OTHER);
    expect_files("what is old and was not used goes", 1, n + 5);
    expect_ok(OTHER " && cd $TMP/trim && cat notes.txt main.o"); /* not ours */
    expect_ok("rm -r $TMP/trim; mv $TMP/both $TMP/trim; rm $TMP/trim/*.so; "
              "for f in $TMP/trim/*; do touch -d '2 days ago' $f; done; "
              "SCRIMP_CACHE_SIZE=1 " OTHER);
    expect_files("the size counts; but what this run has used stays", 5, n + 5);
    expect_run(1, "SCRIMP_CACHE_SIZE=lots: write bytes", "SCRIMP_CACHE_SIZE=lots " OTHER);
    expect_run(1, "SCRIMP_CACHE_DAYS=-1: write a number", "SCRIMP_CACHE_DAYS=-1 " OTHER);
    /* What a killed writer left. */
    expect_ok("cd $TMP/trim; so=$(ls *.so); cp $so $so.77.tmp; cp $so $so.78.tmp; rm $so; "
              "touch -d '2 hours ago' $so.77.tmp; " OTHER
              "; ! test -e $so.77.tmp && rm $so.78.tmp");
}

static void test_verb(void)
{
    expect_ok("$SCRIMP cache clear --cache $TMP/none && ! test -e $TMP/none");
    expect_ok("$SCRIMP cache verify --cache $TMP/trim");
    expect_ok("cd $TMP/trim; for f in *.o; do touch -d '3 days ago' $f; done; "
              "f=$(ls *.so); printf x | dd of=$f bs=1 seek=900 conv=notrunc 2> $TMP/o");
    json_t *o = run_json(1, "$SCRIMP cache verify --json --cache $TMP/trim");
    EXPECT(json_array_size(json_object_get(o, "damaged")) == 1, "one file was changed");
    json_decref(o);
    o = run_json(0, "$SCRIMP cache clear --older 2 --json --cache $TMP/trim");
    EXPECT(json_get_number(o, "removed_files") > 3, "objects were not used for 3 days");
    json_decref(o);
    expect_ok("cd $TMP/trim && ls *.so && test \"$(ls *.o)\" = main.o");
    expect_ok("$SCRIMP cache clear --cache $TMP/trim");
    expect_ok("test \"$(ls $TMP/trim | tr '\\n' ' ')\" = 'main.o notes.txt '");
    expect_run(1, "write show, verify or clear", "$SCRIMP cache foo");
    expect_run(1, "says what `clear` removes", "$SCRIMP cache show --older 2");
}

int main(void)
{
    e2e_begin();
    write_models();
    test_modes();
    test_files();
    test_parents_and_links();
    test_other_owners();
    test_same_numbers();
    test_under_a_running_process();
    test_ignored_children();
    test_interrupted();
    test_eviction();
    test_verb();
    return e2e_end();
}
