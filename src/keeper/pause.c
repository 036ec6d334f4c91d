/* pause.c: stops all processes of a jail for the moment in which the library copies a layer.
 *
 * Processes are hostile and fork while they are being stopped; a stopped process cannot, so
 * passes converge. But the parent of a vfork does not stop while its stopped child has neither
 * called exec nor ended. After some passes all continue therefore, and are stopped again at a
 * moment in which no process waits in this way.
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

#define PASSES     5
#define PASS_NS    1000000 /* between passes */
#define POLL_NS    100000  /* between looks at processes that cannot stop */
#define GIVE_UP_MS 400     /* the keeper serves nothing else in this time */

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

/* The state letter of a thread; 0: it is gone. */
static char thread_state(pid_t pid, pid_t tid)
{
    char path[64], text[512];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')'); /* the name before it may hold anything */
    return end && end[1] == ' ' ? end[2] : 0;
}

static bool is_stopped(char state)
{
    return state == 'T' || state == 't';
}

static bool is_running(char state)
{
    return state != 0 && !is_stopped(state) && !strchr("ZX", state);
}

/* In a system call that no signal interrupts, such as vfork. */
static bool is_blocked(char state)
{
    return state == 'D';
}

typedef bool (*state_fn)(char state);

/* All threads count: one may still be in a system call that writes when the first has stopped.
 */
static bool any_thread(pid_t pid, state_fn fn)
{
    pids threads = {0};
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    int rc = list_numbers(path, &threads);
    bool found = rc < 0 && rc != -ENOENT;
    for (size_t i = 0; !found && i < threads.count; i++)
        found = fn(thread_state(pid, threads.v[i]));
    free(threads.v);
    return found;
}

static bool any_process(state_fn fn)
{
    pids all = {0};
    bool found = list_numbers("/proc", &all) < 0;

    for (size_t i = 0; !found && i < all.count; i++)
        found = any_thread(all.v[i], fn);
    free(all.v);
    return found;
}

/* ---- stop and continue ---- */

static bool was_stopped(const kp_keeper *k, pid_t pid)
{
    for (size_t i = 0; i < k->stopped_count; i++)
        if (k->stopped[i] == pid)
            return true;
    return false;
}

/* Children first: a shell that continues while its command is stopped takes it for a job that
 * the user has stopped. */
static void continue_all(const kp_keeper *k)
{
    pids all = {0};

    if (list_numbers("/proc", &all) < 0)
        (void)kill(-1, SIGCONT);
    for (size_t i = all.count; i > 0; i--)
        if (!was_stopped(k, all.v[i - 1]))
            (void)kill(all.v[i - 1], SIGCONT);
    free(all.v);
}

static int note_stopped(kp_keeper *k)
{
    pids all = {0};
    int rc = list_numbers("/proc", &all);

    k->stopped_count = 0;
    for (size_t i = 0; i < all.count; i++)
        if (is_stopped(thread_state(all.v[i], all.v[i])))
            all.v[k->stopped_count++] = all.v[i];
    k->stopped = all.v;
    return rc;
}

static void resume(kp_keeper *k)
{
    k->resume_ns = 0;
    continue_all(k);
    free(k->stopped);
    k->stopped = NULL;
    k->stopped_count = 0;
}

static void wait_ns(long ns)
{
    const struct timespec t = {.tv_nsec = ns};

    (void)nanosleep(&t, NULL);
}

static bool stop_all(void)
{
    for (int i = 0; i < PASSES; i++) {
        (void)kill(-1, SIGSTOP);
        if (!any_process(is_running))
            return true;
        wait_ns(PASS_NS);
    }
    return false;
}

static int pause_all(kp_keeper *k)
{
    if (k->resume_ns != 0)
        return -EALREADY;
    uint64_t give_up = csn_deadline_in(GIVE_UP_MS);
    int rc = note_stopped(k);
    k->resume_ns = csn_deadline_in(CSN_KEEPER_PAUSE_MS);
    while (rc == 0 && !stop_all()) {
        continue_all(k);
        do {
            wait_ns(POLL_NS);
            rc = csn_now_ns() < give_up ? 0 : -EBUSY;
        } while (rc == 0 && any_process(is_blocked));
    }
    if (rc < 0)
        resume(k);
    return rc;
}

/* After the deadline they have continued, so what the library copied may be inconsistent. */
int kp_pause_serve(kp_keeper *k, kp_request *r)
{
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
