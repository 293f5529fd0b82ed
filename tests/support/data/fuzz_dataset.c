/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/data/fuzz_dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const char *memory_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    return path;
}

static void check_ids(const DataField *f, const int32_t *id, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(f->label && id[i] == f->ignored) && (id[i] < 0 || id[i] > f->max_id))
            abort();
}

/* Every id of the first training batches and of all evaluation batches is in the range that the
 * field has, and every field lies within its memory. */
static void check_batches(const Dataset *ds, int64_t batch)
{
    void *dst[DATA_MAX_FIELDS] = {0};
    int64_t n[DATA_MAX_FIELDS], counted;
    for (int f = 0; f < dataset_n_fields(ds); f++) {
        const DataField *field = dataset_field(ds, f);
        if (!rt_elements(field->rank, field->dim, &n[f]))
            abort();
        n[f] *= batch;
        dst[f] = malloc((size_t)(n[f] * rt_dtype_bytes(field->dtype)));
    }
    for (int64_t k = 0; k < 4 + dataset_eval_batches(ds); k++) {
        bool training = k < 4;
        if (training && dataset_batches_per_epoch(ds) == 0)
            continue;
        if (!(training ? dataset_train_batch(ds, k, dst, NULL)
                       : dataset_eval_batch(ds, k - 4, dst, &counted, NULL)))
            abort();
        for (int f = 0; f < dataset_n_fields(ds); f++)
            if (dataset_field(ds, f)->dtype == RT_I32)
                check_ids(dataset_field(ds, f), dst[f], n[f]);
    }
    for (int f = 0; f < dataset_n_fields(ds); f++)
        free(dst[f]);
}

void check_dataset(const DataSpec *spec)
{
    RtError err = {{0}};
    Dataset *ds = dataset_open(spec, &err);
    if (!ds && !err.message[0])
        abort();
    if (ds)
        check_batches(ds, spec->batch);
    dataset_close(ds);
}
