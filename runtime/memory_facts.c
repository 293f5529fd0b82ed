/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much memory the machine and the control group have, from Linux's /proc and /sys. */
#include "runtime/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First integer of the line that starts with key ("" = any), or -1. */
static int64_t read_number(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    char line[512];
    int64_t value = -1;
    size_t len = strlen(key);
    while (value < 0 && fgets(line, sizeof line, f)) {
        char *end;
        if (strncmp(line, key, len) != 0)
            continue;
        long long v = strtoll(line + len, &end, 10);
        if (end != line + len) /* "max" is no number: no limit */
            value = v;
    }
    fclose(f);
    return value;
}

int64_t rt_peak_resident_bytes(void)
{
    int64_t kib = read_number("/proc/self/status", "VmHWM:");
    return kib < 0 ? 0 : kib * 1024;
}

/* Left in one control group: limit - usage + file pages that can be dropped. */
static int64_t group_left(const char *dir, const char *limit, const char *usage, const char *cache)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, limit);
    int64_t most = read_number(path, "");
    snprintf(path, sizeof path, "%s/%s", dir, usage);
    int64_t used = read_number(path, "");
    if (most < 0 || used < 0 ||
        most > INT64_MAX / 2) /* version 1 writes "no limit" as a huge number */
        return INT64_MAX;
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    int64_t reclaimable = read_number(path, cache);
    int64_t left = most - used + (reclaimable > 0 ? reclaimable : 0);
    return left > 0 ? left : 0;
}

/* The smallest allowance of a group and all its parents; group is cut as it climbs. */
static int64_t groups_left(const char *root, char *group, const char *limit, const char *usage,
                           const char *cache)
{
    int64_t least = INT64_MAX;
    for (;;) {
        char dir[768];
        snprintf(dir, sizeof dir, "%s%s", root, group);
        int64_t left = group_left(dir, limit, usage, cache);
        least = left < least ? left : least;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* Lines are "ID:controllers:/path"; version 2 has ID 0 and no controllers. */
static int64_t control_group_left(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return INT64_MAX;
    char line[512];
    int64_t least = INT64_MAX;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *memory = strstr(line, ":memory:"), *path = strrchr(line, ':');
        int64_t left = INT64_MAX;
        if (strncmp(line, "0::", 3) == 0)
            left = groups_left("/sys/fs/cgroup", line + 3, "memory.max", "memory.current",
                               "inactive_file ");
        else if (memory && path)
            left = groups_left("/sys/fs/cgroup/memory", path + 1, "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file ");
        least = left < least ? left : least;
    }
    fclose(f);
    return least;
}

int64_t rt_available_bytes(void)
{
    int64_t ram = read_number("/proc/meminfo", "MemAvailable:");
    int64_t swap = read_number("/proc/meminfo", "SwapFree:");
    int64_t machine = ram < 0 ? INT64_MAX : (ram + (swap > 0 ? swap : 0)) * 1024;
    int64_t group = control_group_left();
    return machine < group ? machine : group;
}
