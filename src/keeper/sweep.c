/* sweep.c: removes the directories and control groups of a sandbox; also the sweeper program.
 *
 * A keeper without confinement removes its own directories. A confined one cannot, and a killed
 * one does not. For these the library starts this program a second time, as the caller's user,
 * with a spec that says SWEEP and lists the directories and control groups before they are
 * created. The library sends it the pidfd of the keeper (KEEPER); the sweeper waits for the end
 * of the keeper, removes what is listed, and exits. If the library hangs up or dies first,
 * there is no keeper to wait for. All signals are blocked. spec.c has checked the paths;
 * commands control the contents of the directories.
 *
 * Invariants: nothing is removed while the keeper lives. A missing path is not an error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/keeper.h"
#include "layers/store.h"
#include "os/checked_dir.h"
#include "os/tree.h"

#define PROCESS_NAME "caisson-sweeper"
#define PASSES       50
#define STALE_S      10u /* age at which an empty group without a keeper is stale */
#define TRIES        5   /* each waits up to a second for processes to vanish */

/* An attacker controls the contents: any depth, any names, links to anywhere. */
static void remove_dir(const char *path)
{
    char parent[CSN_PATH_MAX + 1];
    const char *slash = strrchr(path, '/');
    size_t len = slash == path ? 1 : (size_t)(slash - path);

    memcpy(parent, path, len);
    parent[len] = '\0';
    csn_autofd int dir = csn_checked_dir_open(parent, CSN_CHECKED_PARENT, NULL);
    if (dir >= 0 && slash[1] != '\0')
        (void)csn_tree_remove_force(dir, slash + 1);
}

void kp_sweep_listed(const csn_keeper_spec *spec)
{
    if (spec->socket)
        (void)unlink(spec->socket);
    for (size_t i = 0; spec->remove[i]; i++)
        remove_dir(spec->remove[i]);
    if (spec->layers)
        csn_layer_tree_release(spec->layers, spec->id);
}

static int sweep_groups(const csn_keeper_spec *spec)
{
    static csn_cgroup g;
    int rc = -EBUSY;

    while (spec->groups[g.count]) {
        csn_cgroup_dir *d = &g.dirs[g.count];
        memcpy(d->path, spec->groups[g.count], strlen(spec->groups[g.count]) + 1);
        g.count++;
    }
    for (int i = 0; rc == -EBUSY && i < TRIES; i++) {
        (void)csn_cgroup_kill(&g);
        rc = csn_cgroup_remove(&g);
    }
    return rc;
}

/* Checks the user again after opening the pidfd: the pid may have been reused. */
static bool kill_of_user(int proc, const char *pid, uid_t user)
{
    struct stat st;

    if (fstatat(proc, pid, &st, 0) < 0 || st.st_uid != user)
        return false;
    csn_autofd int fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(pid, NULL, 10), 0);
    if (fd < 0 || fstatat(proc, pid, &st, 0) < 0 || st.st_uid != user)
        return false;
    return syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
}

static void sweep_user(uid_t user)
{
    for (int i = 0; i < PASSES; i++) {
        DIR *d = opendir("/proc");
        size_t found = 0;

        for (struct dirent *e; d && (e = readdir(d));)
            if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
                found += kill_of_user(dirfd(d), e->d_name, user);
        if (d)
            closedir(d);
        if (found == 0)
            break;
        (void)poll(NULL, 0, 2); /* zombies are found too, until they are reaped */
    }
}

/* Tags can be read as the user of the processes, without CAP_SYS_PTRACE. */
static void sweep_tagged(const csn_keeper_spec *spec)
{
    csn_proctree_query w = {.tag_lo = spec->tag_base,
                            .tag_hi = spec->tag_base | CSN_TAG_SEQ_MASK};
    csn_proctree t = {0};
    uid_t old = spec->tags_as != 0 ? (uid_t)syscall(SYS_setfsuid, spec->tags_as) : 0;

    for (int i = 0; i < PASSES; i++) {
        size_t fresh = 0;
        if (csn_proctree_scan(&t, &w, SIGKILL, false, &fresh) <= 0)
            break;
        if (fresh == 0)
            (void)poll(NULL, 0, 2);
    }
    csn_proctree_release(&t);
    if (spec->tags_as != 0)
        (void)syscall(SYS_setfsuid, old);
}

/* ---- the sweeper ---- */

/* Returns the pidfd of the keeper; -ENOENT: the library has hung up or sent another message. */
static int receive_keeper(void)
{
    uint8_t buf[sizeof(csn_msg_head)];
    csn_msg m;
    int rc = csn_msg_recv(CSN_KEEPER_FD_CONTROL, buf, sizeof(buf), &m);

    if (rc == -EAGAIN)
        return rc;
    if (rc <= 0)
        return -ENOENT;
    if (csn_proto_decode(&m, CSN_MSG_KEEPER, NULL) < 0) {
        csn_msg_release(&m);
        return -ENOENT;
    }
    /* Files that stay open: see backend/jail/sweeper.h. */
    for (size_t i = 1; i < m.nfds; i++)
        (void)csn_msg_take_fd(&m, i);
    int fd = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    return fd;
}

/* Watches the owner's pidfd too: a process that the owner forked may hold the connection open
 * after the owner has died. A message that the owner sent before its death counts. */
static int await_keeper(void)
{
    struct pollfd pf[] = {{.fd = CSN_KEEPER_FD_CONTROL, .events = POLLIN},
                          {.fd = CSN_KEEPER_FD_OWNER, .events = POLLIN}};
    int fd = -EAGAIN;

    while (fd == -EAGAIN) {
        if (poll(pf, 2, -1) < 0)
            continue; /* EINTR */
        fd = receive_keeper();
        if (fd == -EAGAIN && pf[1].revents != 0)
            return -EOWNERDEAD;
    }
    return fd;
}

static int await_end(int pidfd)
{
    struct pollfd pf = {.fd = pidfd, .events = POLLIN};
    int n;

    do
        n = poll(&pf, 1, -1);
    while (n < 0 && errno == EINTR);
    return n == 1 && (pf.revents & POLLIN) ? 0 : -EBADF; /* not a pidfd */
}

int kp_sweeper_run(const csn_keeper_spec *spec)
{
    (void)prctl(PR_SET_NAME, PROCESS_NAME, 0L, 0L, 0L);
    csn_autofd int keeper = await_keeper();
    close(CSN_KEEPER_FD_CONTROL);
    close(CSN_KEEPER_FD_OWNER);
    if (keeper >= 0 && await_end(keeper) < 0)
        return -EBADF;
    /* Without a pid namespace, a killed keeper leaves its commands. */
    if ((spec->flags & CSN_SPEC_TAGGED) && spec->user != 0)
        sweep_user(spec->user);
    else if (spec->flags & CSN_SPEC_TAGGED)
        sweep_tagged(spec);
    kp_sweep_listed(spec);
    int rc = spec->groups[0] ? sweep_groups(spec) : 0;
    if (spec->groups[0]) /* includes groups that killed sweepers have left */
        (void)csn_cgroup_sweep(NULL, STALE_S);
    return rc;
}
