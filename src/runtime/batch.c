/* batch.c: writes many files, all or nothing.
 *
 * Used by write.c for csn_write_many and imports. All files are staged in the directories of
 * their targets. Then, under the commit lock, each one is exchanged with its target, so that
 * the old file is kept under the temporary name. If one fails, the ones before it are exchanged
 * back; then all temporary files and created parents are removed.
 *
 * Invariant: after a failure every target is the same file as before.
 *
 * A batch may have thousands of files and directories, so at most HELD_MAX descriptors stay
 * open. Further directories are reopened by path when needed, below the same grant and
 * without following links, and must have the same device and inode. Further temporary files
 * have names. If the process is killed, those named files stay, and old files that were
 * already exchanged. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "os/beneath.h"
#include "runtime/write.h"

#define HELD_MAX 128
#define SPARE    64 /* descriptors left for the rest of the process */

typedef struct dir {
    dev_t dev;
    ino_t ino;
    int fd;     /* or -1: reopen it by `path` */
    char *path; /* below the grant */
    const csn_grant *grant;
} dir;

typedef struct step {
    csn_job job;
    size_t dir; /* index */
    bool staged, done, swapped;
} step;

typedef struct batch {
    csn_runtime *rt;
    step *steps;
    size_t count;
    dir *dirs;
    size_t dir_count;
    size_t held; /* open descriptors of directories and temporary files */
    int fd_max;  /* descriptors from this number on are not kept */
} batch;

static void batch_free(batch *b)
{
    for (size_t i = 0; i < b->dir_count; i++) {
        if (b->dirs[i].fd >= 0)
            close(b->dirs[i].fd);
        free(b->dirs[i].path);
    }
    free(b->dirs);
    free(b->steps);
}

/* The kernel assigns the lowest free number, so a high one means that few are left. */
static void count_held(batch *b, int fd)
{
    if (fd >= 0)
        b->held = fd < b->fd_max ? b->held + 1 : HELD_MAX;
}

/* Moves the descriptor of a step's parent directory to the table. */
static int park(batch *b, step *s)
{
    csn_parent *p = &s->job.at;
    const csn_grant *grant = s->job.t.grant;
    struct stat st;

    if (fstat(p->fd, &st) < 0)
        return -errno;
    for (size_t i = b->dir_count; i-- > 0;) {
        if (b->dirs[i].dev != st.st_dev || b->dirs[i].ino != st.st_ino)
            continue;
        close(csn_steal_fd(&p->fd));
        s->dir = i;
        return 0;
    }
    dir *d = &b->dirs[b->dir_count];
    *d = (dir){.dev = st.st_dev, .ino = st.st_ino, .fd = -1, .grant = grant};
    /* Without /proc there is no path to reopen, so the descriptor is kept. */
    if (b->held >= HELD_MAX) {
        csn_autofree char *found = csn_runtime_fd_path(p->fd),
                          *top = csn_runtime_fd_path(grant->fd);
        const char *below = found && top ? csn_path_below(found, top) : NULL;
        d->path = below ? strdup(*below ? below : ".") : NULL;
    }
    if (d->path)
        close(csn_steal_fd(&p->fd));
    else
        d->fd = csn_steal_fd(&p->fd);
    count_held(b, d->fd);
    s->dir = b->dir_count++;
    return 0;
}

/* Opens the directory of a step until unlend. 0 or -errno. */
static int lend(batch *b, step *s)
{
    const dir *d = &b->dirs[s->dir];
    struct stat st;

    if (d->fd >= 0) {
        s->job.at.fd = d->fd;
        return 0;
    }
    int fd =
        csn_beneath_open(d->grant->fd, d->path, O_PATH | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || st.st_dev != d->dev || st.st_ino != d->ino) {
        close(fd);
        return -EBUSY;
    }
    s->job.at.fd = fd;
    return 0;
}

static void unlend(batch *b, step *s)
{
    if (b->dirs[s->dir].fd < 0)
        close(s->job.at.fd);
    s->job.at.fd = -1;
}

/* Drops the step that failed; the caller drops the ones before it. */
static csn_status stage_all(batch *b, const csn_write_req *reqs, csn_error **err)
{
    for (size_t i = 0; i < b->count; i++) {
        step *s = &b->steps[i];
        s->job = (csn_job){.req = &reqs[i],
                           .at = CSN_PARENT_NONE,
                           .temp = CSN_TEMP_NONE,
                           .named = b->held >= HELD_MAX};
        csn_status st = csn_job_place(&s->job, b->rt, err);
        if (st == CSN_OK)
            st = csn_job_stage(&s->job, err);
        int rc = st == CSN_OK ? park(b, s) : 0;
        if (rc < 0)
            st = csn_target_fail(&s->job.t, -rc, err);
        s->staged = st == CSN_OK;
        if (st < 0) {
            csn_job_drop(&s->job, true);
            return st;
        }
        count_held(b, s->job.temp.fd);
    }
    return CSN_OK;
}

/* Two paths may name the same file through links or dots. After park, directory index and name
 * identify it, so sorting puts duplicates next to each other. */
static int by_place(const void *a, const void *b)
{
    const step *x = *(const step *const *)a, *y = *(const step *const *)b;

    if (x->dir != y->dir)
        return x->dir < y->dir ? -1 : 1;
    return strcmp(x->job.at.name, y->job.at.name);
}

static csn_status refuse_twins(batch *b, csn_error **err)
{
    csn_autofree step **order = calloc(b->count, sizeof(*order));

    if (!order)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    for (size_t i = 0; i < b->count; i++)
        order[i] = &b->steps[i];
    qsort(order, b->count, sizeof(*order), by_place);
    for (size_t i = 1; i < b->count; i++) {
        if (by_place(&order[i - 1], &order[i]) != 0)
            continue;
        csn_autofree char *shown = csn_path_printable(order[i]->job.req->path);
        return csn_fail(err, CSN_INVALID, "%s is written twice in one call",
                        shown ? shown : "");
    }
    return CSN_OK;
}

/* Needs the commit lock. Checks all conditions first, then exchanges the files. */
static csn_status swap_all(batch *b, csn_error **err)
{
    csn_status st = CSN_OK;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; st == CSN_OK && i < b->count; i++) {
            step *s = &b->steps[i];
            int rc = lend(b, s);
            if (rc < 0)
                return csn_target_fail(&s->job.t, -rc, err);
            if (pass == 0) {
                st = csn_job_check(&s->job, err);
            } else if ((st = csn_job_judge(&s->job, true, err)) == CSN_OK) {
                rc = csn_temp_swap(&s->job.temp, s->job.at.fd, s->job.at.name,
                                   s->job.req->flags & CSN_FILE_CREATE, &s->swapped);
                s->done = rc == 0;
                if (rc < 0)
                    st = csn_job_publish_fail(&s->job, rc, err);
            }
            unlend(b, s);
        }
    }
    return st;
}

/* In reverse order, so that each name is in the state that its exchange left. */
static void unswap_all(batch *b)
{
    for (size_t i = b->count; i-- > 0;) {
        step *s = &b->steps[i];
        if (!s->done || lend(b, s) < 0)
            continue;
        csn_temp_unswap(&s->job.temp, s->job.at.fd, s->job.at.name, s->swapped);
        unlend(b, s);
    }
}

/* All files are in place. Returns all results or none. */
static csn_status finish_all(batch *b, csn_written *rets, csn_error **err)
{
    csn_autofree csn_written *out = calloc(b->count, sizeof(*out));
    csn_status st = out ? CSN_OK : csn_fail(err, CSN_NOMEM, "out of memory");

    for (size_t i = 0; st == CSN_OK && i < b->count; i++) {
        step *s = &b->steps[i];
        int rc = lend(b, s);
        if (rc < 0) {
            st = csn_target_fail(&s->job.t, -rc, err);
            break;
        }
        st = csn_job_finish(&s->job, &out[i], err);
        unlend(b, s);
    }
    if (st == CSN_OK)
        memcpy(rets, out, b->count * sizeof(*out));
    for (size_t i = 0; st < 0 && out && i < b->count; i++)
        free(out[i].resolved_path);
    return st;
}

/* Removes the temporary files: the old content after a success, the new after a failure. Then
 * removes created parents, the last one first. */
static void drop_all(batch *b, bool failed)
{
    for (size_t i = b->count; i-- > 0;) {
        step *s = &b->steps[i];
        if (!s->staged)
            continue;
        bool lent = s->job.temp.name[0] && lend(b, s) == 0;
        csn_temp_drop(&s->job.temp, s->job.at.fd);
        if (lent)
            unlend(b, s);
    }
    for (size_t i = b->count; i-- > 0;) {
        step *s = &b->steps[i];
        if (!s->staged)
            continue;
        if (failed)
            csn_parent_undo(&s->job.at);
        csn_parent_release(&s->job.at);
    }
}

csn_status csn_runtime_write_batch(csn_runtime *rt, const csn_write_req *reqs, size_t count,
                                   csn_written *rets, csn_error **err)
{
    CSN_CLEANUP(batch_free) batch b = {.rt = rt, .count = count};
    struct rlimit lim;
    csn_status st;

    if (count > CSN_WRITE_MANY_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "more than %u files in one call",
                        CSN_WRITE_MANY_MAX);
    for (size_t i = 0; i < count; i++)
        if (reqs[i].flags & CSN_FILE_APPEND)
            return csn_fail(err, CSN_INVALID, "append is for one file at a time");
    if (count == 0)
        return CSN_OK;
    b.fd_max = getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < INT_MAX
                   ? (int)lim.rlim_cur - SPARE
                   : INT_MAX;
    b.steps = calloc(count, sizeof(*b.steps));
    b.dirs = calloc(count, sizeof(*b.dirs));
    if (!b.steps || !b.dirs)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    st = stage_all(&b, reqs, err);
    if (st == CSN_OK)
        st = refuse_twins(&b, err);
    if (st == CSN_OK) {
        int lock = csn_commit_begin(rt);
        st = swap_all(&b, err);
        if (st < 0)
            unswap_all(&b);
        csn_commit_end(rt, lock);
    }
    bool failed = st < 0;
    if (st == CSN_OK)
        st = finish_all(&b, rets, err);
    drop_all(&b, failed);
    return st;
}
