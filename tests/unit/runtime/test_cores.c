/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CPU quotas of control groups, of both versions, read from trees as containers show them; and that
 * the affinity mask counts. */
#include "runtime/cores.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path(name));
    for (char *p = path + strlen(temp_dir) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(path, 0777);
    }
    temp_write(name, text, strlen(text));
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"

static int quota(const char *tree)
{
    char root[1024];
    snprintf(root, sizeof root, "%s", temp_path(tree));
    return cores_quota(root);
}

static void test_version_2(void)
{
    put("two/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" V2_MOUNT);
    put("two/proc/self/cgroup", "0::/user/job\n");
    CHECK(quota("two") == 0);
    put("two/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    CHECK(quota("two") == 0);
    put("two/sys/fs/cgroup/user/job/cpu.max", "150000 100000\n");
    CHECK(quota("two") == 2); /* rounded up */
    put("two/sys/fs/cgroup/user/job/cpu.max", "5000 100000\n");
    CHECK(quota("two") == 1);
    put("two/sys/fs/cgroup/user/job/cpu.max", "700000 100000\n");
    put("two/sys/fs/cgroup/user/cpu.max", "300000 100000\n");
    CHECK(quota("two") == 3); /* a group around it allows less */
    put("two/sys/fs/cgroup/user/job/cpu.max", "rubbish\n");
    put("two/sys/fs/cgroup/user/cpu.max", "100000 0\n");
    CHECK(quota("two") == 0);
}

/* A container sees its own group as the root. */
static void test_container(void)
{
    put("in/proc/self/mountinfo", V2_MOUNT);
    put("in/proc/self/cgroup", "0::/\n");
    put("in/sys/fs/cgroup/cpu.max", "200000 50000\n");
    CHECK(quota("in") == 4);
}

/* Version 1: the mount shows a part of the hierarchy, and its name has a blank. */
static void test_version_1(void)
{
    put("one/proc/self/mountinfo",
        "31 30 0:27 /docker/abc /sys/fs/cgroup/cpu\\040acct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "32 30 0:28 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n");
    put("one/proc/self/cgroup", "5:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc/inner\n0::/\n");
    put("one/sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000\n"); /* another controller's folder */
    put("one/sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n");
    put("one/sys/fs/cgroup/cpu acct/cpu.cfs_quota_us", "-1\n");
    put("one/sys/fs/cgroup/cpu acct/cpu.cfs_period_us", "100000\n");
    CHECK(quota("one") == 0);
    put("one/sys/fs/cgroup/cpu acct/inner/cpu.cfs_quota_us", "250000\n");
    put("one/sys/fs/cgroup/cpu acct/inner/cpu.cfs_period_us", "100000\n");
    CHECK(quota("one") == 3);
    put("one/sys/fs/cgroup/cpu acct/cpu.cfs_quota_us", "100000\n");
    CHECK(quota("one") == 1);
    put("one/proc/self/cgroup", "4:cpu,cpuacct:/elsewhere\n"); /* not shown: the mount itself */
    CHECK(quota("one") == 1);
}

static void test_affinity(void)
{
    CHECK(quota("nothing") == 0);
    int status;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t all, one;
        if (sched_getaffinity(0, sizeof all, &all) != 0)
            _exit(2);
        CPU_ZERO(&one);
        for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
            if (CPU_ISSET(i, &all))
                CPU_SET(i, &one);
        sched_setaffinity(0, sizeof one, &one);
        _exit(cores_allowed() == 1 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(cores_allowed() >= 1);
}

int main(void)
{
    temp_open();
    test_version_2();
    test_container();
    test_version_1();
    test_affinity();
    return test_result();
}
