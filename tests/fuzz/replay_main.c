/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a fuzz target over files and over the files of folders: replay_NAME PATH...  Fails when
 * there is nothing to run. */
#include "fuzz_target.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int replayed;

static int replay_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    char *data = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&data, &size);
    for (int c; copy && (c = getc(in)) != EOF;)
        putc(c, copy);
    fclose(in);
    if (!copy || fclose(copy) != 0)
        return 1;
    /* An exact block, so that reading past the end is caught. */
    uint8_t *exact = malloc(size ? size : 1);
    if (exact) {
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(data);
    replayed++;
    return exact ? 0 : 1;
}

static int replay_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort), failed = n < 0;
    if (n < 0)
        perror(path);
    for (int i = 0; i < n; i++) {
        char *file = NULL;
        if (entries[i]->d_name[0] != '.' && asprintf(&file, "%s/%s", path, entries[i]->d_name) >= 0)
            failed |= replay_file(file);
        free(file);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        bool folder = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode);
        failed |= folder ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    printf("%d inputs replayed\n", replayed);
    return failed || !replayed;
}
