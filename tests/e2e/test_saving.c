/* Saving as a user meets it: file systems without links. */
#include "tiny_model.h"

#include <stdlib.h>
#include <unistd.h>

static void expect_run(int code, const char *command)
{
    char detail[2048];
    Result r = run("%s", command);
    snprintf(detail, sizeof detail, "%s\nexit code %d, expected %d\n%.1500s", command, r.code, code,
             r.err);
    EXPECT(r.code == code, detail);
    result_free(&r);
}

/* Training, resuming and reading are the same where a second name has to be a copy. */
static void test_no_links(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/tests/e2e/libe2e_no_links.so", getenv("SCRIMP_BUILD"));
    if (access(path, R_OK) != 0) /* sanitizers want to be loaded first */
        return;
    setenv("NO_LINKS", path, 1);
    write_tiny_model(8, 2);
    expect_run(0, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/links -q");
    expect_run(0,
               "LD_PRELOAD=$NO_LINKS $SCRIMP train $TMP/tiny.scrimp --out $TMP/none --steps 4 -q");
    expect_run(0,
               "LD_PRELOAD=$NO_LINKS $SCRIMP train $TMP/tiny.scrimp --out $TMP/none --resume -q");
    expect_run(0, "cmp $TMP/links/model.safetensors $TMP/none/model.safetensors");
    expect_run(0, "test $(stat -c %h $TMP/none/model.safetensors) = 1"); /* no link indeed */
    expect_run(0, "test $(stat -c %h $TMP/links/model.safetensors) = 2");
}

int main(void)
{
    e2e_begin();
    test_no_links();
    return e2e_end();
}
