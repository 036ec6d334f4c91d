/* meter.c: enforces a memory limit on all processes, where no control group does.
 *
 * For jails of users that cannot create control groups, and for the ceiling that every jail
 * has. The keeper is pid 1 of its namespace, so /proc has the processes of the sandbox and no
 * others. They are hostile: they allocate as fast as the kernel allows, fork, and remove their
 * tag. RLIMIT_DATA bounds what one process can allocate between two scans. Expensive scans are
 * less frequent. Over the limit, the keeper kills the command that has the most memory with its
 * tree; if that does not help, everything.
 *
 * Invariant: no process is killed before shared memory was counted once, not once per
 * process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"

#define MS             1000000ull
#define PERIOD_NS      (50 * MS)
#define PERIOD_NEAR    (10 * MS) /* with more than half of the limit in use */
#define PERIOD_MAX     (1000 * MS)
#define BYTES_PER_MS   (8ull << 20) /* faster than a machine fills memory */
#define COST_PARTS     20u          /* a scan may take 1/20 of the time */
#define OVER_SCANS_MAX 4u           /* scans over the limit before everything is killed */
#define TAGS_MAX       64u          /* further tags are counted together */

/* The memory of all processes with one tag. */
typedef struct tag_usage {
    uint64_t tag, bytes;
    pid_t largest;
    uint64_t largest_bytes;
} tag_usage;

typedef struct scan {
    int proc;
    bool exact;  /* count shared memory once, and per tag */
    bool writes; /* count what was written instead of memory */
    uint64_t bytes;
    tag_usage tags[TAGS_MAX];
    size_t tag_count;
} scan;

/* A line "Key:   123". A process name cannot fake one: the kernel escapes newlines. */
static uint64_t number_of(const char *text, const char *key)
{
    const char *p = strstr(text, key);

    return p ? (uint64_t)strtoull(p + strlen(key), NULL, 10) : 0;
}

static uint64_t bytes_of(const char *text, const char *key)
{
    return number_of(text, key) * 1024u;
}

static bool read_text(int proc, pid_t pid, const char *file, char *buf, size_t size)
{
    char path[48];

    snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
    csn_autofd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (n < 0)
        return false;
    buf[n] = '\0';
    return true;
}

/* smaps_rollup is exact but expensive, and refused for undumpable processes. File pages are not
 * counted: the kernel can drop them. */
static uint64_t memory_of(const scan *l, pid_t pid)
{
    char text[4096];

    if (l->exact && read_text(l->proc, pid, "smaps_rollup", text, sizeof(text)) && text[0])
        return bytes_of(text, "\nPss_Anon:") + bytes_of(text, "\nPss_Shmem:") +
               bytes_of(text, "\nSwapPss:");
    if (!read_text(l->proc, pid, "status", text, sizeof(text)))
        return 0;
    return bytes_of(text, "\nRssAnon:") + bytes_of(text, "\nRssShmem:") +
           bytes_of(text, "\nVmSwap:") + bytes_of(text, "\nVmPTE:");
}

/* By the process and those of its children that have ended. Some file systems have only one of
 * the two counters. */
static uint64_t written_by(const scan *l, pid_t pid)
{
    char text[512];

    if (!read_text(l->proc, pid, "io", text, sizeof(text)))
        return 0;
    return number_of(text, "wchar:") + number_of(text, "\nwrite_bytes:");
}

static void add_usage(scan *l, pid_t pid, uint64_t bytes)
{
    uint64_t tag = csn_proctree_tag(pid);
    size_t i = 0;

    while (i < l->tag_count && l->tags[i].tag != tag)
        i++;
    if (i == TAGS_MAX)
        i--;
    tag_usage *o = &l->tags[i];
    if (i == l->tag_count) {
        *o = (tag_usage){.tag = tag};
        l->tag_count++;
    }
    o->bytes += bytes;
    if (bytes >= o->largest_bytes) {
        o->largest = pid;
        o->largest_bytes = bytes;
    }
}

static int scan_proc(scan *l)
{
    DIR *d = opendir("/proc");

    if (!d)
        return -errno;
    l->proc = dirfd(d);
    for (struct dirent *e; (e = readdir(d));) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid <= 1 || pid > INT32_MAX)
            continue; /* not a process, or the keeper */
        uint64_t bytes = l->writes ? written_by(l, (pid_t)pid) : memory_of(l, (pid_t)pid);
        l->bytes += bytes;
        if (l->exact && bytes > 0)
            add_usage(l, (pid_t)pid, bytes);
    }
    closedir(d);
    return 0;
}

/* ---- over the limit ---- */

static void kill_job(kp_keeper *k, kp_job *job, uint32_t why)
{
    job->over = why;
    if (job->kind == KP_JOB_SESSION)
        kp_session_detach(k, job->session);
    kp_job_kill(k, job, 0);
}

/* All processes of the namespace but the keeper, with any tag. */
static void kill_all(kp_keeper *k, uint32_t why)
{
    (void)kill(-1, SIGKILL);
    KP_EACH(&k->jobs, item, safe)
    {
        if (((kp_job *)item)->running)
            kill_job(k, (kp_job *)item, why);
    }
}

/* Without a running command, the tag belongs to processes that an ended command left, or that
 * changed their tag. */
static void kill_tag(kp_keeper *k, const tag_usage *o, uint32_t why)
{
    csn_proctree_query w = {.tag_lo = o->tag, .tag_hi = o->tag};
    size_t fresh = 0;

    KP_EACH(&k->jobs, item, safe)
    {
        kp_job *job = (kp_job *)item;
        if (job->running && job->tag == o->tag) {
            kill_job(k, job, why);
            return;
        }
    }
    if (o->tag >= k->spec.tag_base && o->tag <= (k->spec.tag_base | CSN_TAG_SEQ_MASK))
        (void)csn_proctree_scan_tagged(&k->tree, &w, SIGKILL, &fresh);
    else if (o->largest > 1)
        (void)kill(o->largest, SIGKILL);
}

static void kill_most(kp_keeper *k, const scan *l, uint32_t why, bool all)
{
    const tag_usage *most = NULL;

    for (size_t i = 0; i < l->tag_count; i++)
        if (!most || l->tags[i].bytes > most->bytes)
            most = &l->tags[i];
    if (all)
        kill_all(k, why);
    else if (most)
        kill_tag(k, most, why);
}

void kp_meter_kill_writer(kp_keeper *k, uint32_t why, bool all)
{
    scan l = {.exact = true, .writes = true};

    (void)scan_proc(&l);
    kill_most(k, &l, why, all || l.tag_count == 0);
}

/* Longer while the limit is so far away that it cannot be reached meanwhile. */
static uint64_t period_for(uint64_t bytes, uint64_t max)
{
    if (bytes > max / 2)
        return PERIOD_NEAR;
    uint64_t far = (max - bytes) / 2 / BYTES_PER_MS * MS;
    return far < PERIOD_NS ? PERIOD_NS : far < PERIOD_MAX ? far : PERIOD_MAX;
}

uint64_t kp_meter_tick(kp_keeper *k, uint64_t now)
{
    uint64_t max = k->spec.confinement.memory_max;
    kp_meter *m = &k->meter;
    scan l = {0};

    if (max == 0 || now < m->next_ns)
        return max == 0 ? 0 : m->next_ns;
    if (kp_has_no_children()) {
        m->next_ns = 0;
        return 0;
    }
    if (m->next_ns == 0) { /* a command has started since */
        uint64_t first = period_for(0, max);
        return m->next_ns = now + (first > PERIOD_NS ? first : PERIOD_NEAR);
    }
    int rc = scan_proc(&l);
    if (rc == 0 && l.bytes > max) {
        l = (scan){.exact = true};
        rc = scan_proc(&l);
    }
    if (rc == 0 && l.bytes > m->peak)
        m->peak = l.bytes;
    if (rc == 0 && l.bytes > max)
        kill_most(k, &l, CSN_KILLED_MEMORY, ++m->over_count > OVER_SCANS_MAX);
    else
        m->over_count = 0;
    uint64_t after = csn_now_ns(), pause = (after - now) * COST_PARTS;
    uint64_t period = period_for(l.bytes, max);
    if (l.bytes > max)
        pause = 0; /* scan again soon, at any cost */
    return m->next_ns = after + (pause > period ? pause : period);
}
