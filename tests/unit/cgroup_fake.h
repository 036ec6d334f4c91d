/* cgroup_fake.h: fake cgroup hierarchies for os_cgroup.c.
 *
 * A hierarchy is a directory of plain files. Two hooks imitate the kernel: a new group has its
 * files (fake_mkdir), and a group is removed with them unless it has processes or nested groups
 * (fake_rmdir). */
#pragma once
#include <dirent.h>
#include <stdarg.h>

#include "corpus.h"
#include "os/cgroup.h"

#define USER 1000 /* groups are placed by the rules for users */

static char top[64]; /* the test directory; mount points in it have a blank in their name */
static char self_file[128], mounts_file[128];
static const char *fake_lacks = ""; /* this file does not appear in new groups */
static csn_cgroup_host host;

static const char *const v2_files[] = {
    "cgroup.procs", "cgroup.subtree_control", "cgroup.events",    "cgroup.kill",
    "memory.max",   "memory.swap.max",        "memory.oom.group", "pids.max",
    "cpu.max",      "cgroup.max.descendants", "memory.current",   "cgroup.controllers"};
static const char *const v1_files[] = {
    "cgroup.procs",      "tasks",    "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
    "memory.swappiness", "pids.max", "cpu.cfs_period_us",     "cpu.cfs_quota_us"};

/* A path below the top. The last eight results stay valid. */
static const char *at(const char *fmt, ...)
{
    static char ring[8][1024];
    static unsigned next;
    char *to = ring[next++ % 8];
    va_list ap;

    int n = snprintf(to, sizeof(ring[0]), "%s/", top);
    va_start(ap, fmt);
    vsnprintf(to + n, sizeof(ring[0]) - (size_t)n, fmt, ap);
    va_end(ap);
    return to;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    must(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

static const char *get(const char *path)
{
    static char text[4096];
    FILE *f = fopen(path, "re");

    if (!f)
        return "(none)";
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool is_v2(const char *path)
{
    return strstr(path, "/v2 mount") != NULL;
}

/* Makes a group as the kernel does; v2: with the controllers that its parent enables. */
static int fake_mkdir(const char *path)
{
    char file[1200];
    const char *const *names = is_v2(path) ? v2_files : v1_files;
    size_t count = is_v2(path) ? sizeof(v2_files) / sizeof(v2_files[0])
                               : sizeof(v1_files) / sizeof(v1_files[0]);

    if (mkdir(path, 0755) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        snprintf(file, sizeof(file), "%s/%s", path, names[i]);
        if (strcmp(names[i], fake_lacks) != 0)
            put(file, strcmp(names[i] + strlen(names[i]) - 4, ".max") == 0 ? "max\n" : "");
    }
    snprintf(file, sizeof(file), "%s/../cgroup.subtree_control", path);
    char list[4096];
    size_t n = 0;
    for (const char *p = get(file); is_v2(path) && *p; p++)
        if (*p != '+')
            list[n++] = *p;
    list[n] = '\0';
    snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
    if (is_v2(path))
        put(file, list);
    return 0;
}

static int fake_rmdir(const char *path)
{
    char file[1200];
    struct stat st;
    bool busy;
    DIR *d = opendir(path);

    if (!d)
        return -1;
    snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    busy = stat(file, &st) == 0 && st.st_size > 0;
    for (struct dirent *e; (e = readdir(d));)
        busy = busy || (e->d_type == DT_DIR && e->d_name[0] != '.');
    for (struct dirent *e; !busy && (rewinddir(d), e = readdir(d));) {
        while (e && e->d_name[0] == '.')
            e = readdir(d);
        if (!e)
            break;
        must(unlinkat(dirfd(d), e->d_name, 0) == 0, e->d_name);
    }
    closedir(d);
    if (busy)
        errno = EBUSY;
    return busy ? -1 : rmdir(path);
}

/* Makes a v2 group with these controllers, subtree_control and processes. */
static void v2_group(const char *rel, const char *controllers, const char *subtree,
                     const char *procs)
{
    fake_lacks = strcmp(rel, "v2 mount") == 0 ? "cgroup.events" : "";
    must(fake_mkdir(at("%s", rel)) == 0, rel);
    fake_lacks = "";
    put(at("%s/cgroup.controllers", rel), controllers);
    put(at("%s/cgroup.subtree_control", rel), subtree);
    put(at("%s/cgroup.procs", rel), procs);
}

static void mount_v2(const char *own, const char *root)
{
    char text[1024];

    snprintf(text, sizeof(text), "0::%s\n", own);
    put(self_file, text);
    snprintf(text, sizeof(text),
             "23 1 0:20 / /proc rw - proc proc rw\n"
             "41 31 0:38 %s %s/v2\\040mount rw,nosuid shared:9 master:2 - cgroup2 cgroup2 "
             "rw,nsdelegate\n",
             root, top);
    put(mounts_file, text);
}

/* systemd's layout for a user: a service of the user manager, in a slice. */
static void user_layout(const char *subtree)
{
    mount_v2("/user/app/svc", "/");
    v2_group("v2 mount", "cpu memory pids\n", "cpu memory pids\n", "1\n");
    v2_group("v2 mount/user", "cpu memory pids\n", "cpu memory pids\n", "");
    v2_group("v2 mount/user/app", "cpu memory pids\n", subtree, "");
    v2_group("v2 mount/user/app/svc", "memory pids\n", "", "77\n");
}
