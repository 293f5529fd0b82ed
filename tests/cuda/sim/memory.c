/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of the device and page-locked memory of the host: NaNs at first, with an unreadable page
 * behind it. */
#include "driver_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned POISON = 0x7fc5ca1au;

int is_full(const char *function)
{
    const char *name = getenv("SCRIMP_SIM_FULL");
    return name && strcmp(name, function) == 0;
}

void fill_nan(char *from, char *to)
{
    for (; to - from >= 4; from += 4)
        memcpy(from, &POISON, 4);
}

static size_t in_use; /* of the device's memory */

static size_t device_bytes(void)
{
    const char *text = getenv("SCRIMP_SIM_BYTES");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)16 << 30;
}

int take_room(size_t bytes)
{
    if (in_use > device_bytes() || bytes > device_bytes() - in_use)
        return 0;
    in_use += bytes;
    return 1;
}

void give_room(size_t bytes)
{
    in_use -= bytes;
}

typedef struct Block {
    char *mapped;
    size_t size;
    CudaAddress address;
    size_t bytes;
    struct Block *next;
} Block;

static Block *blocks, *host_blocks;

/* Whole pages, of which the last bytes are used, NaNs. */
static Block *map_block(size_t bytes, Block *next)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    Block *b = malloc(sizeof *b);
    char *p = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!b || p == MAP_FAILED)
        return NULL;
    mprotect(p + size, page, PROT_NONE);
    char *begin = p + (size - bytes);
    fill_nan(begin, p + size);
    *b = (Block){p, size + page, (CudaAddress)(unsigned long)begin, bytes, next};
    return b;
}

static int unmap_block(Block **list, CudaAddress address, size_t *bytes)
{
    for (Block **b = list; *b; b = &(*b)->next)
        if ((*b)->address == address) {
            Block *gone = *b;
            *b = gone->next;
            *bytes = gone->bytes;
            munmap(gone->mapped, gone->size);
            free(gone);
            return CUDA_OK;
        }
    return BAD_VALUE;
}

EXPORT int cuMemAlloc_v2(CudaAddress *address, size_t bytes)
{
    if (!bytes)
        return BAD_VALUE;
    int why = refused();
    if (why)
        return why;
    if (is_full(__func__) || !take_room(bytes))
        return CUDA_OUT_OF_MEMORY;
    Block *b = map_block(bytes, blocks);
    if (!b)
        return CUDA_OUT_OF_MEMORY;
    blocks = b;
    *address = b->address;
    return CUDA_OK;
}

EXPORT int cuMemFree_v2(CudaAddress address)
{
    size_t bytes = 0;
    int why = refused();
    if (why)
        return why;
    int error = unmap_block(&blocks, address, &bytes);
    give_room(bytes);
    return error;
}

EXPORT int cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    if (!bytes || flags)
        return BAD_VALUE;
    int why = refused();
    if (why)
        return why;
    Block *b = is_full(__func__) ? NULL : map_block(bytes, host_blocks);
    if (!b)
        return CUDA_OUT_OF_MEMORY;
    host_blocks = b;
    *address = (void *)(unsigned long)b->address;
    return CUDA_OK;
}

EXPORT int cuMemFreeHost(void *address)
{
    size_t bytes;
    return unmap_block(&host_blocks, (CudaAddress)(unsigned long)address, &bytes);
}

/* Inside of one allocation. */
static int is_device(CudaAddress address, size_t bytes)
{
    for (const Block *b = blocks; b; b = b->next)
        if (address >= b->address && bytes <= b->bytes && address - b->address <= b->bytes - bytes)
            return 1;
    return 0;
}

EXPORT int cuMemcpyHtoDAsync_v2(CudaAddress to, const void *from, size_t bytes, void *stream)
{
    if (!is_device(to, bytes))
        return BAD_VALUE;
    return put(
        stream,
        &(Work){.kind = COPY, .to = (char *)(unsigned long)to, .from = from, .bytes = bytes});
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, CudaAddress from, size_t bytes, void *stream)
{
    if (!is_device(from, bytes))
        return BAD_VALUE;
    return put(
        stream,
        &(Work){.kind = COPY, .to = to, .from = (char *)(unsigned long)from, .bytes = bytes});
}

EXPORT int cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes, void *stream)
{
    if (!is_device(to, bytes) || !is_device(from, bytes))
        return BAD_VALUE;
    return put(stream, &(Work){.kind = COPY,
                               .to = (char *)(unsigned long)to,
                               .from = (char *)(unsigned long)from,
                               .bytes = bytes});
}

EXPORT int cuMemsetD32Async(CudaAddress to, unsigned word, size_t words, void *stream)
{
    if (!is_device(to, 4 * words))
        return BAD_VALUE;
    return put(
        stream,
        &(Work){.kind = FILL, .to = (char *)(unsigned long)to, .word = word, .bytes = words});
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    if (!has_context())
        return NO_CONTEXT;
    const char *full = getenv("SCRIMP_SIM_FULL");
    *total_bytes = device_bytes();
    if (full && (strncmp(full, "cublas", 6) == 0 || strncmp(full, "cudnn", 5) == 0)) {
        *free_bytes = 1000;
        return CUDA_OK;
    }
    *free_bytes = in_use < *total_bytes ? *total_bytes - in_use : 0;
    return CUDA_OK;
}
