/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that import others: each once, in order, and what cannot be. */
#include "check.h"
#include "tests/support/parse_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/scrimp-parse-XXXXXX";

static char *write_file(const char *name, const char *text)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    FILE *out = fopen(path, "w");
    CHECK(out);
    if (out) {
        fputs(text, out);
        fclose(out);
    }
    return path;
}

static Parsed parse_path(const char *path)
{
    Parsed p = {.pool = pool_new()};
    p.diag = diag_new(p.pool);
    p.ast = frontend_parse(p.pool, p.diag, path);
    return p;
}

static void check_imported(const char *main_path)
{
    Parsed p = parse_path(main_path);
    CHECK(p.ast);
    if (!p.ast) {
        diag_print(p.diag, stderr, false);
    } else {
        CHECK(p.ast->n_blocks == 3 && p.ast->n_options == 1);
        CHECK(!strcmp(p.ast->blocks[0].name.text, "c") && p.ast->blocks[0].imported);
        CHECK(!strcmp(p.ast->blocks[1].name.text, "b") && p.ast->blocks[1].imported);
        CHECK(!strcmp(p.ast->blocks[2].name.text, "m") && !p.ast->blocks[2].imported);
        CHECK(p.ast->train && p.ast->train->body.stmts[0]->assign.value->int_value == 1);
        CHECK(!p.ast->remat);
    }
    pool_free(p.pool);
}

static void check_path_errors(const char *path, const char *expected)
{
    Parsed p = parse_path(path);
    char *got = errors_of(&p);
    CHECK_MSG(!p.ast && !strcmp(got, expected), "got %s, expected %s", got, expected);
    free(got);
    pool_free(p.pool);
}

static void test_imports(void)
{
    char *sub = NULL;
    CHECK(mkdtemp(folder));
    if (asprintf(&sub, "%s/sub", folder) < 0)
        abort();
    CHECK(mkdir(sub, 0700) == 0);
    char *files[] = {
        write_file("main.scrimp", "import \"sub/b.scrimp\"\nimport \"c.scrimp\"\n"
                                  "model m(x) { }\ntrain { steps = 1 }\n"),
        write_file("sub/b.scrimp", "import \"../c.scrimp\"\nblock b(x) { }\ntrain { steps = 2 }\n"
                                   "remat { budget = 1% }\n"),
        write_file("c.scrimp", "option o = 1\nblock c(x) { }\n"),
        write_file("loop.scrimp", "\n  import \"sub/loop2.scrimp\"\n"),
        write_file("sub/loop2.scrimp", "import \"../sub/../loop.scrimp\"\n"),
        write_file("missing.scrimp", "block b(x) { }\nimport \"sub/none.scrimp\"\n"),
        write_file("twice.scrimp", "import \"c.scrimp\"\nblock c(y) { }\n"),
        write_file("self.scrimp", "import \"self.scrimp\"\n"),
        write_file("sub/above.scrimp", "block b(x) { }\nimport \"../c.scrimp\"\n"),
        write_file("sub/far.scrimp", "import \"/etc/passwd\"\n"),
        write_file("sub/linked.scrimp", "import \"link.scrimp\"\n"),
        write_file("library.scrimp", "import \"std/all\"\nimport \"std/norms\"\n"
                                     "block rmsnorm(x) { return x }\nimport \"std/none\"\n"),
        write_file("no_library.scrimp", "import \"std/norms.scrimp\"\n"),
    };
    check_imported(files[0]);
    check_path_errors(files[3], "E021@1:1");
    check_path_errors(files[5], "E020@2:1");
    check_path_errors(files[6], "E016@2:7");
    check_path_errors(files[7], "E021@1:1");
    check_path_errors(files[11], "E020@4:1"); /* a name of the library's is free */
    check_path_errors(files[12], "E020@1:1"); /* a file beside this one */
    /* not out of the main file's folder, by no way */
    char *link = NULL;
    CHECK(asprintf(&link, "%s/link.scrimp", sub) > 0 && symlink(files[2], link) == 0);
    check_path_errors(files[8], "E020@2:1");
    check_path_errors(files[9], "E020@1:1");
    check_path_errors(files[10], "E020@1:1");
    CHECK(unlink(link) == 0);
    free(link);
    check_path_errors(sub, "E020@0:0");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        unlink(files[i]);
        free(files[i]);
    }
    rmdir(sub);
    rmdir(folder);
    free(sub);
}

int main(void)
{
    test_imports();
    return test_result();
}
