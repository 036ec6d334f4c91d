/* leftover.c: looks for what sandboxes left: processes, mounts, control groups, directories.
 *
 * Called by programs that kill and that make sandboxes by the thousand. It only looks, and
 * removes directories it has reported. Command lines and process names are written by any
 * process; they are read as bytes and compared whole. A process, group or mount may vanish
 * while it is looked at, and then it was not left behind. */
#include "leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "support/support.h"

#define GROUP_PREFIX "caisson-"
#define GROUP_DEPTH  6
/* Shorter than the time after which somebody's sweeper takes it for abandoned. */
#define GROUP_WHILE_MS 3000
#define SWEEP_MS       60000 /* on a machine that does much else */
#define KINDS_MAX      4096

/* ---- the place ---- */

char *leftover_make_place(char **ret_run, char **ret_state)
{
    char *top = csn_test_tmpdir();
    char *run = csn_test_join(top, "run"), *state = csn_test_join(top, "state");

    csn_test_mkdir(run);
    csn_test_mkdir(state);
    setenv("XDG_RUNTIME_DIR", run, 1);
    setenv("XDG_STATE_HOME", state, 1);
    *ret_run = csn_test_join(run, "caisson");
    *ret_state = csn_test_join(state, "caisson");
    free(run);
    free(state);
    return top;
}

/* ---- processes ---- */

bool leftover_no_children(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG | __WALL);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid < 0 && errno == ECHILD;
}

/* Calls fn for the name of every process. */
static void each_process(void (*fn)(const char *pid, void *ctx), void *ctx)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;

    while (proc && (e = readdir(proc)))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            fn(e->d_name, ctx);
    if (proc)
        closedir(proc);
}

/* Up to size - 1 bytes of /proc/PID/FILE, or -1. */
static ssize_t slurp(const char *pid, const char *file, char *buf, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%.16s/%.32s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    buf[n < 0 ? 0 : n] = '\0';
    return n;
}

typedef struct word_count {
    const char *word;
    size_t n;
} word_count;

static void count_word(const char *pid, void *ctx)
{
    word_count *w = ctx;
    char line[8192];
    ssize_t len = slurp(pid, "cmdline", line, sizeof(line));

    for (ssize_t at = 0; at < len; at += (ssize_t)strlen(line + at) + 1)
        if (strcmp(line + at, w->word) == 0) {
            w->n++;
            return;
        }
}

size_t leftover_processes(const char *word)
{
    word_count w = {.word = word};

    each_process(count_word, &w);
    return w.n;
}

/* Name, state and parent, out of a line in which the name may have blanks and brackets. */
static bool parse_stat(const char *pid, char name[64], char *state, pid_t *parent)
{
    char line[512];

    if (slurp(pid, "stat", line, sizeof(line)) <= 0)
        return false;
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (!open || !close || close[1] != ' ' || close[2] == '\0')
        return false;
    *close = '\0';
    snprintf(name, 64, "%.63s", open + 1);
    *state = close[2];
    *parent = (pid_t)strtol(close + 3, NULL, 10);
    return true;
}

typedef struct child_search {
    pid_t except, found;
    const char *name;
    bool named; /* look for a child with that name, else for one without */
} child_search;

static void match_child(const char *pid, void *ctx)
{
    child_search *s = ctx;
    pid_t parent = 0, self = (pid_t)strtol(pid, NULL, 10);
    char name[64], state = 0;

    /* One that is dead but not yet reaped by us cannot be killed again. */
    if (self != s->except && parse_stat(pid, name, &state, &parent) && parent == getpid() &&
        state != 'Z' && state != 'X' && (strcmp(name, s->name) == 0) == s->named)
        s->found = self;
}

pid_t leftover_child_named(const char *name)
{
    child_search s = {.name = name, .named = true};

    each_process(match_child, &s);
    return s.found;
}

pid_t leftover_child(pid_t except, const char *not_named)
{
    child_search s = {.except = except, .name = not_named};

    each_process(match_child, &s);
    return s.found;
}

typedef struct namespaces {
    const char *kind;
    ino_t seen[KINDS_MAX];
    size_t n;
} namespaces;

static void add_namespace(const char *pid, void *ctx)
{
    namespaces *s = ctx;
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%.16s/ns/%.16s", pid, s->kind);
    if (stat(path, &st) < 0)
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->seen[i] == st.st_ino)
            return;
    if (s->n < KINDS_MAX)
        s->seen[s->n++] = st.st_ino;
}

/* Root sees everybody's, a user those of processes it may look into: before and after are
 * counted alike, so the difference means the same. */
size_t leftover_namespaces(const char *kind)
{
    static namespaces s;

    s.kind = kind;
    s.n = 0;
    each_process(add_namespace, &s);
    return s.n;
}

/* ---- mounts and directories ---- */

/* A jail's mounts are in its own namespace. One that shows here has leaked by propagation. */
static size_t count_mounts(const char *top, bool print)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0, n = 0;

    while (f && getline(&line, &cap, f) > 0)
        if (strstr(line, top) || strstr(line, "caisson")) {
            n++;
            if (print)
                printf("# mount: %s", line);
        }
    free(line);
    if (f)
        fclose(f);
    return n;
}

size_t leftover_mounts(const leftover_base *b)
{
    size_t n = count_mounts(b->top, false);

    if (n > b->mounts)
        (void)count_mounts(b->top, true);
    return n > b->mounts ? n - b->mounts : 0;
}

/* What belongs there: the memory of scans and the copy of /etc. */
static bool stays(const char *name)
{
    static const char *const names[] = {".", "..", "scans", "frames"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* remove: also prints each and removes it. */
static size_t count_entries(const char *dir, const char *sub, bool remove)
{
    char *path = sub ? csn_test_join(dir, sub) : csn_test_format("%s", dir);
    DIR *d = opendir(path);
    struct dirent *e;
    size_t n = 0;

    while (d && (e = readdir(d))) {
        if (stays(e->d_name))
            continue;
        char *left = csn_test_join(path, e->d_name);
        if (remove) {
            printf("# left: %s\n", left);
            csn_test_remove(left);
        }
        free(left);
        n++;
    }
    if (d)
        closedir(d);
    free(path);
    return n;
}

static size_t count_directories(const leftover_base *b, bool remove)
{
    return count_entries(b->run, NULL, remove) + count_entries(b->state, "sandboxes", remove) +
           count_entries(b->state, "names", remove);
}

/* Sweepers remove directories in the background. */
size_t leftover_directories(const leftover_base *b)
{
    int64_t until = csn_child_now_ms() + SWEEP_MS;

    while (count_directories(b, false) > 0 && csn_child_now_ms() < until)
        csn_child_nap(20);
    return count_directories(b, true);
}

static size_t count_unkept(const char *dir, bool print)
{
    char *path = csn_test_join(dir, "sandboxes");
    DIR *d = opendir(path);
    struct dirent *e;
    size_t n = 0;

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.' && leftover_processes(e->d_name) == 0 &&
            faccessat(dirfd(d), e->d_name, F_OK, 0) == 0) {
            n++;
            if (print)
                printf("# without a process: %s/%s\n", path, e->d_name);
        }
    if (d)
        closedir(d);
    free(path);
    return n;
}

/* A sweeper that has just been started has no arguments yet. */
size_t leftover_unkept(const leftover_base *b)
{
    int64_t until = csn_child_now_ms() + GROUP_WHILE_MS;

    while (count_unkept(b->state, false) > 0 && csn_child_now_ms() < until)
        csn_child_nap(50);
    return count_unkept(b->state, true);
}

/* ---- control groups ---- */

typedef struct group_list {
    char **paths;
    size_t n;
} group_list;

static void add_group(group_list *l, const char *path)
{
    char **more = realloc(l->paths, (l->n + 1) * sizeof(*more));

    if (!more)
        abort();
    l->paths = more;
    l->paths[l->n++] = csn_test_format("%s", path);
}

/* Every hierarchy and every group that could hold ours: where they are made depends on the host
 * (os/cgroup_create.c), and a test that knew the place would miss those in a wrong one. */
static void find_groups(const char *dir, unsigned depth, group_list *l)
{
    DIR *d = depth > 0 ? opendir(dir) : NULL;
    struct dirent *e;

    while (d && (e = readdir(d))) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        char *path = csn_test_join(dir, e->d_name);
        if (strncmp(e->d_name, GROUP_PREFIX, strlen(GROUP_PREFIX)) == 0)
            add_group(l, path);
        else
            find_groups(path, depth - 1, l);
        free(path);
    }
    if (d)
        closedir(d);
}

static bool is_empty(const char *group)
{
    char *path = csn_test_join(group, "cgroup.procs"), *procs = csn_test_get(path, NULL);
    bool empty = procs && procs[0] == '\0'; /* NULL: it went away meanwhile */

    free(procs);
    free(path);
    return empty;
}

static void free_groups(char **paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
}

static bool known(const leftover_base *b, const char *path)
{
    for (size_t i = 0; i < b->group_count; i++)
        if (strcmp(path, b->groups[i]) == 0)
            return true;
    return false;
}

/* Only the new ones without a process stay in the list. */
static void keep_left(const leftover_base *b, group_list *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        if (!known(b, l->paths[i]) && is_empty(l->paths[i]))
            l->paths[n++] = l->paths[i];
        else
            free(l->paths[i]);
    l->n = n;
}

size_t leftover_groups(leftover_base *b)
{
    group_list now = {0}, all = {.paths = b->groups, .n = b->group_count};
    int64_t until = csn_child_now_ms() + GROUP_WHILE_MS;

    find_groups("/sys/fs/cgroup", GROUP_DEPTH, &now);
    keep_left(b, &now);
    while (now.n > 0 && csn_child_now_ms() < until) {
        csn_child_nap(50);
        keep_left(b, &now);
    }
    for (size_t i = 0; i < now.n; i++) {
        printf("# control group: %s\n", now.paths[i]);
        add_group(&all, now.paths[i]);
    }
    b->groups = all.paths;
    b->group_count = all.n;
    size_t found = now.n;
    free_groups(now.paths, now.n);
    return found;
}

void leftover_note(leftover_base *b, const char *top, const char *run, const char *state)
{
    group_list now = {0};

    find_groups("/sys/fs/cgroup", GROUP_DEPTH, &now);
    *b = (leftover_base){.top = top,
                         .run = run,
                         .state = state,
                         .mounts = count_mounts(top, false),
                         .groups = now.paths,
                         .group_count = now.n};
}

void leftover_release(leftover_base *b)
{
    free_groups(b->groups, b->group_count);
    b->groups = NULL;
}
