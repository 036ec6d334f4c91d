/* pause.c: stops all processes of a jail for the moment in which the library copies a layer.
 *
 * Processes are hostile and fork while they are being stopped; a stopped process cannot, so
 * passes converge. The parent of a vfork does not stop while its stopped child has neither
 * called exec nor ended, but it does nothing either, so it counts as stopped.
 *
 * They continue when the library says so, and at a deadline, since the library may be killed. A
 * process that was stopped before stays stopped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"

#define PASS_NS    1000000 /* between passes */
#define GIVE_UP_MS 3000    /* the keeper serves nothing else in this time */

typedef struct pids {
    pid_t *v;
    size_t count;
} pids;

/* ---- what the processes are doing ---- */

/* The numbers in a directory of /proc, in its order, which is ascending. */
static int list_numbers(const char *path, pids *ret)
{
    DIR *d = opendir(path);
    size_t room = 0;
    int rc = d ? 0 : -errno;

    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid <= 1 || pid > INT32_MAX)
            continue;
        if (ret->count == room) {
            pid_t *grown = realloc(ret->v, (room += 64) * sizeof(*grown));
            if (!grown) {
                rc = -ENOMEM;
                break;
            }
            ret->v = grown;
        }
        ret->v[ret->count++] = (pid_t)pid;
    }
    if (d)
        closedir(d);
    return rc;
}

static size_t read_proc(char *text, size_t room, const char *path)
{
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);

    text[n > 0 ? n : 0] = '\0';
    return strlen(text);
}

/* The state letter of a thread, and the parent of its process; 0: it is gone. */
static char thread_state(pid_t pid, pid_t tid, pid_t *ret_parent)
{
    char path[64], text[512];
    int parent = 0;
    char state = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    (void)read_proc(text, sizeof(text), path);
    const char *end = strrchr(text, ')'); /* the name before it may hold anything */
    if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2)
        return 0;
    if (ret_parent)
        *ret_parent = parent;
    return state;
}

static bool is_stopped(char state)
{
    return state == 'T' || state == 't';
}

/* A vfork child has its parent's memory, and so the same sizes of it. */
static bool shares_memory(pid_t a, pid_t b)
{
    char path[32], of_a[128], of_b[128];

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)a);
    size_t len = read_proc(of_a, sizeof(of_a), path);
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)b);
    return len > 0 && read_proc(of_b, sizeof(of_b), path) == len && strcmp(of_a, of_b) == 0;
}

static bool waits_for_vfork(pid_t pid, const pids *all)
{
    for (size_t i = 0; i < all->count; i++) {
        pid_t parent = 0;
        if (is_stopped(thread_state(all->v[i], all->v[i], &parent)) && parent == pid &&
            shares_memory(pid, all->v[i]))
            return true;
    }
    return false;
}

/* All threads count: one may still be in a system call that writes when the first has
 * stopped. */
static bool is_running(pid_t pid, const pids *all)
{
    pids threads = {0};
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    int rc = list_numbers(path, &threads);
    bool running = rc < 0 && rc != -ENOENT;
    for (size_t i = 0; !running && i < threads.count; i++) {
        char state = thread_state(pid, threads.v[i], NULL);
        running = state != 0 && !is_stopped(state) && !strchr("ZX", state) &&
                  !(state == 'D' && waits_for_vfork(pid, all));
    }
    free(threads.v);
    return running;
}

static bool any_running(void)
{
    pids all = {0};
    bool running = list_numbers("/proc", &all) < 0;

    for (size_t i = 0; !running && i < all.count; i++)
        running = is_running(all.v[i], &all);
    free(all.v);
    return running;
}

/* ---- stop and continue ---- */

static bool was_stopped(const kp_keeper *k, pid_t pid)
{
    for (size_t i = 0; i < k->stopped_count; i++)
        if (k->stopped[i] == pid)
            return true;
    return false;
}

static int note_stopped(kp_keeper *k)
{
    pids all = {0};
    int rc = list_numbers("/proc", &all);

    k->stopped_count = 0;
    for (size_t i = 0; i < all.count; i++)
        if (is_stopped(thread_state(all.v[i], all.v[i], NULL)))
            all.v[k->stopped_count++] = all.v[i];
    k->stopped = all.v;
    return rc;
}

/* Children first: a shell that continues while its command is stopped takes it for a job that
 * the user has stopped. */
static void resume(kp_keeper *k)
{
    pids all = {0};

    k->resume_ns = 0;
    if (list_numbers("/proc", &all) < 0)
        (void)kill(-1, SIGCONT);
    for (size_t i = all.count; i > 0; i--)
        if (!was_stopped(k, all.v[i - 1]))
            (void)kill(all.v[i - 1], SIGCONT);
    free(all.v);
    free(k->stopped);
    k->stopped = NULL;
    k->stopped_count = 0;
}

static int pause_all(kp_keeper *k)
{
    static const struct timespec pass = {.tv_nsec = PASS_NS};

    if (k->resume_ns != 0)
        return -EALREADY;
    uint64_t give_up = csn_deadline_in(GIVE_UP_MS);
    int rc = note_stopped(k);
    k->resume_ns = csn_deadline_in(CSN_KEEPER_PAUSE_MS);
    while (rc == 0) {
        (void)kill(-1, SIGSTOP);
        if (!any_running())
            return 0;
        (void)nanosleep(&pass, NULL);
        rc = csn_now_ns() < give_up ? 0 : -EBUSY;
    }
    resume(k);
    return rc;
}

/* After the deadline they have continued, so what the library copied may be inconsistent.
 * Without a pid namespace, kill(-1) would stop all processes of the user. */
int kp_pause_serve(kp_keeper *k, kp_request *r)
{
    if (getpid() != 1)
        return -EOPNOTSUPP;
    if (r->body.pause.on)
        return pause_all(k);
    if (k->resume_ns == 0)
        return -ETIMEDOUT;
    resume(k);
    return 0;
}

uint64_t kp_pause_tick(kp_keeper *k, uint64_t now)
{
    if (k->resume_ns != 0 && now >= k->resume_ns)
        resume(k);
    return k->resume_ns;
}
