/* disk_meter.c: enforces a limit of what is written to a copy-on-write workspace.
 *
 * The layers are on a disk that the sandbox shares with the host, and an ordinary user can set
 * no quota. The keeper therefore measures them while commands run, and once after. Commands
 * write as fast as the disk allows, so the limit is exceeded by what is written between two
 * measurements; large layers are measured in steps, and more rarely. Over the limit the command
 * that has written the most is killed, as meter.c does; if that does not help, everything.
 *
 * What was written stays after that, and commands must be able to remove it: over the limit
 * only a workspace that has grown since the last measurement is a reason to kill. The sum of
 * one walk may count a file twice that was moved meanwhile, so two walks must agree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "layers/usage.h"

#define MS              1000000ull
#define STEP_ENTRIES    1000u /* a few milliseconds */
#define PERIOD_NS       (50 * MS)
#define PERIOD_NEAR     (10 * MS) /* with more than half of the limit in use */
#define PERIOD_MAX      (1000 * MS)
#define BYTES_PER_MS    (2ull << 20) /* faster than a disk takes them for long */
#define COST_PARTS      40u          /* walks may take 1/40 of the time */
#define COST_PARTS_NEAR 8u
#define OVER_WALKS_MAX  4u /* killed commands before everything is killed */

typedef struct kp_disk_meter {
    int dir;                        /* what is measured, O_PATH */
    char mark[CSN_SPEC_ID_MAX + 4]; /* of the layers that this sandbox made; "": no tree */
    csn_usage_walk walk;
    uint64_t next_ns; /* 0: nothing runs */
    csn_usage last;   /* of the walk before */
    bool changing;    /* commands have run since the last walk began */
    bool doubted;     /* the last walk was over the limit, and this one is to confirm it */
    bool killed;      /* one was killed: what it still wrote is not another one's fault */
    bool dying;       /* it was still alive when the walk began */
    unsigned over_count;
} kp_disk_meter;

int kp_disk_meter_open(kp_keeper *k)
{
    const csn_confinement *c = &k->spec.confinement;

    if (c->disk_max == 0)
        return 0;
    kp_disk_meter *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->dir = c->disk_dir ? open(c->disk_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                         : k->layers;
    if (m->dir < 0) {
        int rc = c->disk_dir ? -errno : -EBADF;
        free(m);
        return rc;
    }
    if (!c->disk_dir)
        snprintf(m->mark, sizeof(m->mark), "by-%s", k->spec.id);
    k->disk = m;
    return 0;
}

/* ---- over the limit ---- */

static uint32_t exceeded(const csn_confinement *c, const csn_usage *u)
{
    if (u->bytes > c->disk_max || u->too_deep)
        return CSN_KILLED_DISK;
    return u->files > c->disk_files ? CSN_KILLED_FILES : 0;
}

static bool has_grown(const kp_disk_meter *m)
{
    const csn_usage *u = &m->walk.sum;

    return u->bytes > m->last.bytes || u->files > m->last.files || u->too_deep;
}

static bool is_dying(const kp_keeper *k)
{
    KP_EACH(&k->jobs, item, safe)
    {
        const kp_job *job = (const kp_job *)item;
        if (job->over != 0 && (job->running || job->phase != KP_KILL_NONE))
            return true;
    }
    return false;
}

/* After a complete walk. True: walk again at once. */
static bool judge(kp_keeper *k, bool idle)
{
    kp_disk_meter *m = k->disk;
    uint32_t why = exceeded(&k->spec.confinement, &m->walk.sum);
    bool accuse = why != 0 && !idle && !m->killed && has_grown(m);

    if (accuse && !m->doubted) {
        m->doubted = true;
        return true;
    }
    m->doubted = false;
    m->killed = m->killed && m->dying;
    if (accuse) {
        kp_meter_kill_writer(k, why, ++m->over_count > OVER_WALKS_MAX);
        m->killed = true;
    } else if (why == 0 || idle) {
        m->over_count = 0;
    }
    m->last = m->walk.sum;
    return false;
}

/* ---- walks ---- */

static bool is_near(const kp_keeper *k)
{
    const csn_confinement *c = &k->spec.confinement;
    const csn_usage *u = &k->disk->last;

    return u->bytes > c->disk_max / 2 || u->files > c->disk_files / 2;
}

static uint64_t period_for(const kp_keeper *k)
{
    const csn_confinement *c = &k->spec.confinement;
    const csn_usage *u = &k->disk->last;

    if (is_near(k))
        return PERIOD_NEAR;
    uint64_t far = (c->disk_max - u->bytes) / 2 / BYTES_PER_MS * MS;
    return far < PERIOD_NS ? PERIOD_NS : far < PERIOD_MAX ? far : PERIOD_MAX;
}

/* A walk that has found too much already is complete, unless its sum is only to be known. */
static bool step(kp_keeper *k, bool idle)
{
    kp_disk_meter *m = k->disk;

    if (m->walk.depth == 0) {
        m->changing = !idle;
        m->dying = is_dying(k);
        if (csn_usage_begin(&m->walk, m->dir, m->mark[0] ? m->mark : NULL) < 0)
            return true;
    }
    if (csn_usage_step(&m->walk, STEP_ENTRIES) == 0)
        return true;
    if (m->killed || idle || exceeded(&k->spec.confinement, &m->walk.sum) == 0 || !has_grown(m))
        return false;
    csn_usage_end(&m->walk);
    return true;
}

uint64_t kp_disk_meter_tick(kp_keeper *k, uint64_t now)
{
    kp_disk_meter *m = k->disk;

    if (!m || now < m->next_ns)
        return m ? m->next_ns : 0;
    bool idle = kp_has_no_children();
    m->changing = m->changing || !idle;
    if (idle && !m->changing && m->walk.depth == 0)
        return m->next_ns = 0;
    if (m->next_ns == 0) /* a command has started since */
        return m->next_ns = now + (period_for(k) < PERIOD_NS ? PERIOD_NEAR : PERIOD_NS);
    bool complete = step(k, idle);
    uint64_t after = csn_now_ns(),
             pause = (after - now) * (is_near(k) ? COST_PARTS_NEAR : COST_PARTS);
    if (complete && judge(k, idle))
        return m->next_ns = after;
    if (complete && period_for(k) > pause)
        pause = period_for(k);
    return m->next_ns = after + pause;
}
