/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Made-up data: every source reads what was written for it, the bytes are the same each time, and
 * what is there is never written over. */
#include "runtime/file.h"
#include "runtime/standin.h"

#include "check.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const DataField label = {.name = "label", .dtype = RT_I32, .label = true, .max_id = 2};
static const DataField image = {.name = "image", .dtype = RT_F32, .rank = 3, .dim = {3, 8, 8}};

typedef struct Case {
    DataSpec spec;
    const char *name, *file; /* where it goes, and one of its files */
    int64_t train, held;
} Case;

static Case cases[] = {
    {{.kind = "mnist", .batch = 4, .n_fields = 1}, "m", "m/train-images-idx3-ubyte", 4000, 1000},
    {{.kind = "cifar10", .batch = 4, .n_fields = 1}, "c", "c/data_batch_1.bin", 2000, 500},
    {{.kind = "imagefolder", .batch = 4, .size = 24, .resize = 27, .std = {1, 1, 1}, .n_fields = 1},
     "i",
     "i/train/class_0/00000.jpg",
     96,
     24},
    {{.kind = "audiofolder", .batch = 40, .length = 800, .rate = 8000, .n_fields = 1},
     "s",
     "s/val/class_2/00007.wav",
     96,
     24},
    {{.kind = "text", .batch = 2, .length = 8, .chars = true}, "t.txt", "t.txt", 0, 0},
    {{.kind = "tokens", .batch = 2, .length = 8}, "t.bin", "t.bin", 200000, 0},
    {{.kind = "npy", .batch = 4, .n_fields = 2}, "n", "n/image.npy", 512, 0},
    {{.kind = "npz", .batch = 4, .n_fields = 2, .columns = "label\tlabel\nimage\timage"},
     "n.npz",
     "n.npz",
     512,
     0},
    {{.kind = "safetensors", .batch = 4, .n_fields = 2, .columns = "label\ty.train\nimage\tx"},
     "n.safetensors",
     "n.safetensors",
     512,
     0},
    {{.kind = "csv",
      .batch = 4,
      .n_fields = 1,
      .columns = "x\tnumber\tmean\t1\t4\t\ta;b\tp*\nj\tcategory\town\t0\t2\t\tj\tk\n"
                 "o\tone_hot\tdrop\t0\t2\t3,4\tj\to\nlabel\tinteger\terror\t0\t0\t\tl",
      .separator = ";"},
     "t.csv",
     "t.csv",
     0,
     0},
    {{.kind = "csv",
      .batch = 4,
      .n_fields = 1,
      .columns = "x\tnumber\tmean\t1\t2\t\t2\t5\nlabel\tcategory\terror\t0\t0\t\t1",
      .no_header = true},
     "h.tsv",
     "h.tsv",
     2000,
     0},
};

/* A file of a case, the second time in the folder `again`. */
static FileBytes contents(const Case *c, const char *folder)
{
    char name[100];
    FileBytes bytes = {0};
    RtError err = {{0}};
    snprintf(name, sizeof name, "%s%s", folder, c->file);
    CHECK_MSG(file_read(temp_path(name), 1 << 30, &bytes, &err), "%s", err.message);
    return bytes;
}

static void write_case(Case *c, const char *folder)
{
    char name[100];
    StandIn said;
    RtError err = {{0}};
    snprintf(name, sizeof name, "%s%s", folder, c->name);
    c->spec.path = temp_path(name);
    c->spec.field[0] = label;
    c->spec.field[1] = image;
    CHECK_MSG(standin_write(&c->spec, &said, &err), "%s: %s", c->name, err.message);
    CHECK(!standin_write(&c->spec, &said, &err) && strstr(err.message, "is there already"));
}

static void check_case(Case *c)
{
    write_case(c, "again/");
    write_case(c, "");
    FileBytes a = contents(c, ""), b = contents(c, "again/");
    CHECK_MSG(a.bytes == b.bytes && memcmp(a.data, b.data, (size_t)a.bytes) == 0, "%s", c->name);
    file_release(&a);
    file_release(&b);
    c->spec.n_fields = 0;
    Dataset *ds = open_or_fail(&c->spec);
    CHECK_MSG((!c->train || dataset_train_size(ds) == c->train) &&
                  dataset_held_out_size(ds) == c->held && !*dataset_warning(ds),
              "%s: %s%s", c->name, dataset_description(ds), dataset_warning(ds));
    int f = dataset_find_field(ds, "label");
    CHECK_MSG(f < 0 || dataset_field(ds, f)->max_id <= 9, "%s", c->name);
    dataset_close(ds);
}

static void test_refusals(void)
{
    static const struct {
        const char *kind, *path, *expect;
    } wrong[] = {{"synthetic", "x", "reads no files"},
                 {"text", "", "no file"},
                 {"text", "a\nb", "more than one file"},
                 {"csv", "*.csv", "more than one file"},
                 {"npy", "/a/x.npy", "none of the files is label.npy"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DataSpec spec = {.kind = wrong[i].kind, .path = wrong[i].path, .batch = 4, .n_fields = 1};
        StandIn said;
        RtError err = {{0}};
        spec.field[0] = label;
        CHECK_MSG(!standin_write(&spec, &said, &err) && strstr(err.message, wrong[i].expect), "%s",
                  err.message);
    }
    mkdir(temp_path("full"), 0777);
    temp_write("full/train-images-idx3-ubyte.gz", "x", 1); /* the real ones */
    DataSpec spec = {.kind = "mnist", .path = temp_path("full"), .batch = 4};
    StandIn said;
    RtError err = {{0}};
    CHECK(!standin_write(&spec, &said, &err) && strstr(err.message, "full is there already"));
}

int main(void)
{
    temp_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    test_refusals();
    return test_result();
}
