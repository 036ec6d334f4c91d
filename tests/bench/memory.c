/* memory.c: what the kernel says is in memory. */
#include "memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long bench_kb_in(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[256];
    long kb = -1;

    while (f && kb < 0 && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtol(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

/* Free pages that processors keep for themselves. The kernel counts them neither as free nor as
 * available, and they are what is used first: a hundred MB of them would hide a fifth of a
 * thousand jails. */
static long kept_free_kb(void)
{
    FILE *f = fopen("/proc/zoneinfo", "re");
    char line[256], rest;
    long pages = 0, count;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, " count: %ld %c", &count, &rest) == 1)
            pages += count;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

bench_memory bench_memory_now(void)
{
    static const char *const keys[] = {
        "Slab:", "KernelStack:", "PageTables:", "SecPageTables:", "Percpu:", "Shmem:"};
    bench_memory m = {.available =
                          bench_kb_in("/proc/meminfo", "MemAvailable:") + kept_free_kb(),
                      .own = bench_kb_in("/proc/self/status", "RssAnon:")};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        long kb = bench_kb_in("/proc/meminfo", keys[i]);
        m.kernel += kb > 0 ? kb : 0;
    }
    return m;
}

/* Other users' processes show only how many pages are their own. */
static long process_kb(const char *pid)
{
    char path[300];

    snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", pid);
    long kb = bench_kb_in(path, "Pss:");
    if (kb < 0) {
        snprintf(path, sizeof(path), "/proc/%s/status", pid);
        kb = bench_kb_in(path, "RssAnon:");
    }
    return kb > 0 ? kb : 0;
}

static bool has_name(const char *pid, const char *prefix)
{
    char path[300], name[32] = "";

    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    FILE *f = fopen(path, "re");
    bool is = f && fgets(name, sizeof(name), f) && strncmp(name, prefix, strlen(prefix)) == 0;
    if (f)
        fclose(f);
    return is;
}

long bench_processes_kb(const char *prefix)
{
    DIR *d = opendir("/proc");
    long kb = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && has_name(e->d_name, prefix))
            kb += process_kb(e->d_name);
    if (d)
        closedir(d);
    return kb;
}
