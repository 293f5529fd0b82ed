/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSORS = 1 << 16 };

/* --- affinity --- */

/* The kernel refuses a set that is smaller than its own. */
static int affinity_cores(void)
{
    for (int n = CPU_SETSIZE; n <= MAX_PROCESSORS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        size_t bytes = CPU_ALLOC_SIZE((size_t)n);
        bool ok = set && sched_getaffinity(0, bytes, set) == 0;
        int count = ok ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n <= MAX_PROCESSORS ? (int)n : 1;
}

/* --- control groups --- */

/* Where a hierarchy that limits processor time is mounted.  root: what of it is seen there. */
typedef struct Hierarchy {
    char root[PATH_MAX], mount[PATH_MAX];
    bool v2;
} Hierarchy;

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, word, n) == 0 && strchr(",\n", p[n]))
            return true;
    return false;
}

/* Blanks stand as \040 there. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
            *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* "36 35 0:30 ROOT MOUNT rw - cgroup2 cgroup2 rw" */
static bool read_mount(const char *line, Hierarchy *h)
{
    char type[32], options[512];
    const char *end = strstr(line, " - ");
    if (!end || sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->mount) != 2 ||
        sscanf(end, " - %31s %*s %511s", type, options) != 2)
        return false;
    unescape(h->root);
    unescape(h->mount);
    h->v2 = strcmp(type, "cgroup2") == 0;
    return h->v2 || (strcmp(type, "cgroup") == 0 && has_word(options, "cpu"));
}

static FILE *open_file(const char *root, const char *path)
{
    char name[2 * PATH_MAX];
    int n = snprintf(name, sizeof name, "%s%s", root, path);
    return n > 0 && (size_t)n < sizeof name ? fopen(name, "re") : NULL;
}

/* The group of this process, as "ID:CONTROLLERS:PATH" names it: no controllers in version 2. */
static bool find_group(const char *root, bool v2, char *group)
{
    char line[PATH_MAX + 64];
    FILE *f = open_file(root, "/proc/self/cgroup");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *path;
        path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        found = v2 ? controllers[1] == '\0' : has_word(controllers + 1, "cpu");
        path[strcspn(path, "\n")] = '\0';
        if (found)
            snprintf(group, PATH_MAX, "%s", path);
    }
    if (f)
        fclose(f);
    return found;
}

/* The numbers of a file; "max" is none. */
static int read_numbers(const char *root, const char *folder, const char *name, int64_t out[2])
{
    char path[2 * PATH_MAX], text[64] = "";
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = n > 0 && (size_t)n < sizeof path ? open_file(root, path) : NULL;
    bool ok = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    long long a = 0, b = 0;
    int count = ok ? sscanf(text, "%lld %lld", &a, &b) : 0;
    out[0] = a;
    out[1] = b;
    return count;
}

static int round_up(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0 || quota / period >= MAX_PROCESSORS)
        return 0;
    return (int)((quota + period - 1) / period);
}

/* Microseconds of processor time in each period. */
static int quota_of_folder(const char *root, const char *folder, bool v2)
{
    int64_t quota[2], period[2];
    if (v2)
        return read_numbers(root, folder, "cpu.max", quota) == 2 ? round_up(quota[0], quota[1]) : 0;
    if (read_numbers(root, folder, "cpu.cfs_quota_us", quota) < 1 ||
        read_numbers(root, folder, "cpu.cfs_period_us", period) < 1)
        return 0;
    return round_up(quota[0], period[0]);
}

static int smaller(int a, int b)
{
    return !a || (b && b < a) ? b : a;
}

/* From the group of this process up to the mount.  A group that the mount does not show (one of the
 * host, seen from a container without a namespace of its own) leaves the mount itself. */
static int quota_of_hierarchy(const char *root, const Hierarchy *h)
{
    char folder[2 * PATH_MAX], group[PATH_MAX];
    size_t mount = strlen(h->mount), above = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
    if (!find_group(root, h->v2, group))
        return 0;
    bool inside = strncmp(group, h->root, above) == 0 && (!group[above] || group[above] == '/');
    snprintf(folder, sizeof folder, "%s%s", h->mount, inside ? group + above : "");
    int least = 0;
    for (char *slash = folder; slash && strlen(folder) >= mount;) {
        least = smaller(least, quota_of_folder(root, folder, h->v2));
        slash = strrchr(folder, '/');
        if (slash)
            *slash = '\0';
    }
    return least;
}

int cores_quota(const char *root)
{
    char line[3 * PATH_MAX];
    Hierarchy h;
    int least = 0;
    FILE *f = open_file(root, "/proc/self/mountinfo");
    while (f && fgets(line, sizeof line, f))
        if (read_mount(line, &h))
            least = smaller(least, quota_of_hierarchy(root, &h));
    if (f)
        fclose(f);
    return least;
}

int cores_allowed(void)
{
    static int known; /* the same answer for the whole run */
    if (!known)
        known = smaller(affinity_cores(), cores_quota(""));
    return known;
}
