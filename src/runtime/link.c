/* link.c: starting a keeper, finding a detached one, one request and its answer.
 *
 * Everything the local backend does with processes goes through here. The keeper runs as the
 * caller, next to commands that could attack it: the library treats what it says as hostile.
 * Each answer has a ceiling and a deadline; one that breaks the protocol costs the keeper its
 * life and the caller gets CSN_UNAVAILABLE. When a keeper is gone without having cleaned up
 * (kill -9), what it left is found by its tag and killed from here. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "keeper/spec.h"
#include "os/beneath.h"
#include "os/proctree.h"
#include "os/spawn.h"
#include "runtime/link.h"

#define PROGRAM      "caisson-keeper"
#define SOCKET_NAME  "sock"
#define PROGRAM_SPAN (64ul << 20) /* how far a program reaches from its headers, at most */
#define SWEEP_PASSES 50

static const char *path_for_tests;

void csn_keeper_path_set(const char *path)
{
    path_for_tests = path;
}

/* ---- finding the program -------------------------------------------------------------------
 */

/* Is this code part of the program itself, and not of a library it has loaded? */
static bool linked_in(void)
{
    uintptr_t here = (uintptr_t)&csn_keeper_path_set;
    unsigned long base = getauxval(AT_PHDR), entry = getauxval(AT_ENTRY);

    /* The text of a program holds both its entry and its headers; a library lies elsewhere. */
    return base != 0 && here >= base && here - base < PROGRAM_SPAN && entry >= base &&
           entry - base < PROGRAM_SPAN;
}

/* The directory of the file this code was mapped from. From the kernel and not from dladdr,
 * which repeats what the loader or argv[0] said: relative names mean another file once somebody
 * has changed directory. malloc'd, NULL when it cannot be known. */
static char *own_dir(void)
{
    uintptr_t here = (uintptr_t)&csn_keeper_path_set, lo, hi;
    char exe[PATH_MAX];
    ssize_t n = linked_in() ? readlink("/proc/self/exe", exe, sizeof(exe) - 1) : -1;

    if (n > 0) {
        exe[n] = '\0';
        return csn_path_dir(exe);
    }
    FILE *maps = fopen("/proc/self/maps", "re");
    csn_autofree char *line = NULL;
    char *dir = NULL;
    size_t cap = 0;

    while (maps && !dir && getline(&line, &cap, maps) > 0) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &lo, &hi) != 2 || here < lo || here >= hi)
            continue;
        char *path = strchr(line, '/'), *slash = path ? strrchr(path, '/') : NULL;
        if (!slash)
            break;
        *slash = '\0';
        dir = strdup(path);
    }
    if (maps)
        fclose(maps);
    return dir;
}

static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static char *own; /* asked for once: the kernel writes that list anew for every reader */

static void find_own(void)
{
    own = own_dir();
}

/* Beside the library first (a build directory), then where it is installed. No environment
 * variable: whoever sets one for an agent's host must not choose what runs here. */
csn_status csn_program_find(const char *name, char **ret, csn_error **err)
{
    csn_autofree char *for_tests = path_for_tests ? csn_path_dir(path_for_tests) : NULL;
    csn_autofree char *beside = NULL, *installed = NULL;

    (void)pthread_once(&own_once, find_own);
    const char *dir = path_for_tests ? for_tests : own;
    if (dir && asprintf(&beside, "%s/%s", dir, name) < 0)
        beside = NULL;
    if (asprintf(&installed, CSN_LIBEXEC_DIR "/%s", name) < 0) {
        installed = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", name);
    }
    if (beside && access(beside, X_OK) == 0) {
        *ret = CSN_STEAL(beside);
        return CSN_OK;
    }
    if (access(installed, X_OK) == 0) {
        *ret = CSN_STEAL(installed);
        return CSN_OK;
    }
    return csn_fail(err, CSN_UNAVAILABLE, "%s not found: neither %s nor %s is there", name,
                    beside ? beside : "beside the library", installed);
}

csn_status csn_keeper_find(char **ret, csn_error **err)
{
    if (!path_for_tests)
        return csn_program_find(PROGRAM, ret, err);
    *ret = strdup(path_for_tests);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "keeper");
}

/* ---- the socket of a detached one
 * ------------------------------------------------------------ */

/* Bound here and not in the keeper, so that a failure is an error of open with its reason. */
static csn_status listen_socket(csn_runtime *l, int *ret, csn_error **err)
{
    csn_status st = csn_runtime_run_dir(l, err);

    if (st < 0)
        return st;
    int fd = csn_runtime_run_listen(l, SOCKET_NAME, CSN_KEEPER_BACKLOG);
    if (fd < 0)
        return csn_fail_errno(err, -fd, "socket of sandbox '%s'", l->id);
    *ret = fd;
    return CSN_OK;
}

/* ---- starting
 * --------------------------------------------------------------------------------- */

/* The runtime directory (the private home, the socket) is the keeper's to remove: it outlives
 * us when we are killed. */
static csn_status put_orders(csn_runtime *l, csn_packer *o, csn_error **err)
{
    csn_autofree char *sock = NULL;
    csn_keeper_spec spec = {.flags = l->detached ? CSN_SPEC_DETACHED : 0,
                            .lifetime_ms = l->config->lifetime_ms,
                            .tag_base = csn_spec_tag_base(l->id),
                            .id = l->id};

    if (spec.lifetime_ms == CSN_NO_LIMIT)
        spec.lifetime_ms = 0;
    csn_status st = l->detached ? csn_runtime_run_dir(l, err) : CSN_OK;
    if (st < 0)
        return st;
    if (l->detached && asprintf(&sock, "%s/" SOCKET_NAME, l->run_path) < 0)
        return csn_fail(err, CSN_NOMEM, "keeper");
    spec.socket = sock;
    spec.remove[0] = l->run_path;
    if (l->kind->arm)
        l->kind->arm(l, &spec);
    csn_spec_put(o, &spec);
    return o->error != 0 ? csn_fail_errno(err, o->error, "orders for the keeper") : CSN_OK;
}

/* A keeper on its way: what csn_spawn_begin borrows. */
struct csn_runtime_spawn {
    csn_spawn_opts orphan;
    const char *argv[3];
    csn_spawn_pending *begun;
};

/* spec: its orders, or -1 when they are to follow. */
static csn_status begin_birth(csn_runtime *l, struct csn_runtime_spawn **birth, int spec,
                              csn_error **err)
{
    struct csn_runtime_spawn *b = *birth;
    csn_autofd int fifth = -1, ours = -1, theirs = -1;
    int pair[2];

    free(CSN_STEAL(l->program));
    csn_status st = csn_keeper_find(&l->program, err);
    if (st == CSN_OK && l->detached)
        st = listen_socket(l, &fifth, err);
    if (st < 0)
        return st;
    csn_autofd int exe = open(l->program, O_RDONLY | O_CLOEXEC);
    if (exe < 0)
        return csn_fail_errno(err, errno, "%s", l->program);
    if (!l->detached)
        fifth = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fifth < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return csn_fail_errno(err, errno, "start the keeper");
    ours = pair[0];
    theirs = pair[1]; /* held here, it would hide that the keeper has hung up */
    b->argv[0] = PROGRAM;
    b->argv[1] = l->id;
    const int fds[] = {-1, -1, -1, theirs, spec, fifth};
    memcpy(b->orphan.fds, fds, sizeof(fds));
    b->orphan.nfds = sizeof(fds) / sizeof(fds[0]);
    b->orphan.path = l->program;
    b->orphan.exec_fd = exe;
    b->orphan.argv = b->argv;
    int rc = csn_spawn_begin(&b->orphan, &b->begun);
    if (rc == -ENOMEM)
        return csn_fail(err, CSN_NOMEM, "start the keeper");
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start %s: %s", l->program, strerrordesc_np(-rc));
    l->keeper_fd = csn_steal_fd(&ours);
    l->birth = CSN_STEAL(*birth);
    return CSN_OK;
}

/* Into what it will be born, which may decide what it is told. */
static csn_status new_birth(csn_runtime *l, struct csn_runtime_spawn **ret, csn_error **err)
{
    *ret = calloc(1, sizeof(**ret));
    if (!*ret)
        return csn_fail(err, CSN_NOMEM, "start the keeper");
    return l->kind->birth ? l->kind->birth(l, &(*ret)->orphan, err) : CSN_OK;
}

/* It runs, or there is none. */
csn_status csn_runtime_keeper_spawn_finish(csn_runtime *l, csn_error **err)
{
    csn_autofree struct csn_runtime_spawn *b = CSN_STEAL(l->birth);
    enum csn_spawn_stage stage;
    int pidfd = -1;
    pid_t pid = 0;

    if (!b)
        return CSN_OK;
    int rc = csn_spawn_finish(b->begun, &pid, &pidfd, &stage);
    if (rc == 0) {
        l->keeper_pid = pid;
        l->keeper_pidfd = pidfd;
        return CSN_OK;
    }
    close(csn_steal_fd(&l->keeper_fd));
    l->unordered = false;
    if (l->kind->refused)
        return l->kind->refused(l, stage, -rc, err);
    return csn_fail(err, CSN_UNAVAILABLE, "start %s: %s", l->program, strerrordesc_np(-rc));
}

/* Only by open, before anybody else has the sandbox. */
csn_status csn_runtime_keeper_spawn_begin(csn_runtime *l, csn_error **err)
{
    csn_autofree struct csn_runtime_spawn *b = NULL;
    csn_status st = new_birth(l, &b, err);

    if (st == CSN_OK)
        st = begin_birth(l, &b, -1, err);
    l->unordered = st == CSN_OK;
    return st;
}

static csn_status send_orders(csn_runtime *l, csn_packer *o, csn_error **err)
{
    csn_status st = put_orders(l, o, err);

    if (st < 0)
        return st;
    int rc = csn_msg_send(l->keeper_fd, CSN_MSG_SPEC, o->data, o->len, NULL, 0,
                          csn_deadline_in(CSN_KEEPER_ANSWER_MS));
    l->unordered = false;
    if (rc == -EPIPE)
        return csn_link_lost(l, err);
    return rc < 0 ? csn_fail_errno(err, -rc, "orders for the keeper") : CSN_OK;
}

static csn_status bear_ordered(csn_runtime *l, csn_packer *o, csn_error **err)
{
    csn_autofree struct csn_runtime_spawn *b = NULL;
    csn_status st = new_birth(l, &b, err);

    if (st == CSN_OK)
        st = put_orders(l, o, err);
    if (st < 0)
        return st;
    csn_autofd int spec = csn_sealed_memfd("caisson-spec", o->data, o->len);
    if (spec < 0)
        return csn_fail_errno(err, -spec, "orders for the keeper");
    st = begin_birth(l, &b, spec, err);
    return st < 0 ? st : csn_runtime_keeper_spawn_finish(l, err);
}

/* Attached, and without walls to wait for: no answer is awaited. The first request finds out
 * whether it came up, and a command does not pay for a round trip. */
static csn_status start_locked(csn_runtime *l, csn_error **err)
{
    uint8_t buf[4096];
    csn_packer o;

    csn_packer_init(&o, buf, sizeof(buf));
    csn_status st = l->unordered ? send_orders(l, &o, err) : bear_ordered(l, &o, err);
    csn_packer_release(&o);
    return st == CSN_OK && l->kind->started ? l->kind->started(l, err) : st;
}

/* Who listens there, from the kernel: only a keeper of our own user is spoken to. */
static int peer_of(csn_runtime *l, int fd, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    /* A jail of root's runs as a user without account; the directory it is found in is root's.
     */
    if ((peer.uid != geteuid() && geteuid() != 0) || peer.pid == getpid())
        return -EPERM;
    *ret_pid = peer.pid;
    l->keeper_uid = peer.uid;
    l->keeper_gid = peer.gid;
    return 0;
}

/* It must say that it is who the kernel says it is, and speak our version. */
static csn_status ask_hello(csn_runtime *l, csn_hello_reply_msg *ret, csn_error **err)
{
    int e = 0;
    csn_status st = csn_link_call(l, CSN_MSG_HELLO, NULL, CSN_MSG_HELLO_REPLY, ret, &e, err);

    if (st < 0)
        return st;
    if (e != 0 || ret->version != CSN_KEEPER_VERSION ||
        ret->pid != (l->kind->rooted ? 1 : l->keeper_pid))
        return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' is of another kind", l->id);
    return CSN_OK;
}

static csn_status hello(csn_runtime *l, csn_error **err)
{
    csn_hello_reply_msg ignored;

    return ask_hello(l, &ignored, err);
}

csn_status csn_runtime_expiry(csn_runtime *l, int64_t *ret_ms, csn_error **err)
{
    csn_hello_reply_msg r;
    csn_status st = ask_hello(l, &r, err);

    if (st == CSN_OK)
        *ret_ms = r.ends_ms;
    return st;
}

csn_status csn_runtime_keeper_start(csn_runtime *l, csn_error **err)
{
    csn_status st = CSN_OK;
    bool started = false;

    pthread_mutex_lock(&l->keeper_lock);
    if (l->gone)
        st = csn_fail(err, CSN_GONE, "sandbox '%s' has ended", l->id);
    else if (l->keeper_fd < 0 && l->connected)
        st = csn_fail(err, CSN_GONE, "sandbox '%s' has ended", l->id);
    else if (l->keeper_fd < 0 || l->unordered)
        started = (st = start_locked(l, err)) == CSN_OK;
    pthread_mutex_unlock(&l->keeper_lock);
    /* Others may look for a detached one as soon as we return: it must be listening. */
    return started && l->detached ? hello(l, err) : st;
}

/* Finds out who it is, without a word. */
static csn_status reach(csn_runtime *l, csn_error **err)
{
    csn_autofd int fd = csn_runtime_run_connect(l, SOCKET_NAME);
    pid_t pid = 0;

    if (fd == -ECONNREFUSED || fd == -ENOENT)
        return csn_link_lost(l, err);
    if (fd < 0)
        return csn_fail_errno(err, -fd, "connect to sandbox '%s'", l->id);
    int rc = peer_of(l, fd, &pid);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "sandbox '%s' is another user's", l->id);
    l->keeper_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    l->keeper_pid = pid;
    l->keeper_fd = csn_steal_fd(&fd);
    return CSN_OK;
}

csn_status csn_runtime_keeper_connect(csn_runtime *l, csn_error **err)
{
    csn_status st = reach(l, err);

    if (st == CSN_OK)
        st = hello(l, err);
    return st == CSN_OK && l->kind->started ? l->kind->started(l, err) : st;
}

/* ---- its end
 * ----------------------------------------------------------------------------------- */

/* Kills what carries one of this sandbox's tags. Only for a keeper that is dead. */
static void sweep(const csn_runtime *l)
{
    if (l->kind->rooted)
        return; /* nothing outlives the first process of a pid namespace */
    uint64_t base = csn_spec_tag_base(l->id);
    csn_proctree_want w = {.tag_lo = base, .tag_hi = base | CSN_TAG_SEQ_MASK};
    csn_proctree t = {0};

    for (int i = 0; i < SWEEP_PASSES; i++) {
        size_t fresh = 0;
        ssize_t n = csn_proctree_pass(&t, &w, SIGKILL, false, &fresh);
        if (n <= 0)
            break;
        if (fresh == 0)
            (void)poll(NULL, 0, 2);
    }
    csn_proctree_release(&t);
}

/* Sweeping while it lives would kill a sandbox that only dropped our connection. */
static bool keeper_is_dead(const csn_runtime *l)
{
    struct pollfd pf = {.fd = l->keeper_pidfd, .events = POLLIN};

    return l->keeper_pidfd < 0 || (poll(&pf, 1, 0) == 1 && pf.revents != 0);
}

csn_status csn_link_lost(csn_runtime *l, csn_error **err)
{
    bool meant = l->detached || l->connected || l->gone || l->config->lifetime_ms != 0;

    if (l->keeper_pidfd >= 0) /* its sockets close a moment before it has ended */
        (void)csn_spawn_wait(l->keeper_pidfd, (int)CSN_KEEPER_ANSWER_MS);
    if (!keeper_is_dead(l) && l->gone)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", l->id);
    if (!keeper_is_dead(l))
        return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' hung up", l->id);
    sweep(l);
    if (meant)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", l->id);
    return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' has died", l->id);
}

/* The workspace is not where it was: either with the keeper's mounts, or commands have moved
 * what leads to it. */
static bool is_moved(const csn_runtime *l)
{
    struct stat was, is;
    csn_autofd int fd =
        csn_beneath_open(l->root.fd, l->base.path, O_PATH | O_DIRECTORY, CSN_BENEATH_ROOTED);

    return fd < 0 || l->base.fd < 0 || fstat(fd, &is) < 0 || fstat(l->base.fd, &was) < 0 ||
           is.st_dev != was.st_dev || is.st_ino != was.st_ino;
}

/* The mounts of a killed keeper may go a moment before its socket hangs up. */
csn_status csn_link_check_alive(csn_runtime *l, csn_status st, csn_error **err)
{
    struct pollfd pf = {.fd = l->keeper_fd};

    if (l->gone)
        return st;
    bool lost = poll(&pf, 1, 0) == 1;
    if (!lost && st < 0 && l->kind->rooted && is_moved(l))
        lost = csn_link_check(l, NULL) < 0;
    if (!lost)
        return st;
    if (st < 0 && err)
        csn_error_free(CSN_STEAL(*err));
    return csn_link_lost(l, err);
}

/* SIGKILL, because it may be stopped or worse; then nobody is left to end its commands but us.
 */
static void kill_keeper(csn_runtime *l)
{
    if (l->keeper_pidfd < 0)
        return;
    (void)syscall(SYS_pidfd_send_signal, l->keeper_pidfd, SIGKILL, NULL, 0);
    (void)csn_spawn_wait(l->keeper_pidfd, (int)CSN_KEEPER_ANSWER_MS);
    sweep(l);
}

csn_status csn_runtime_keeper_force_destroy(csn_runtime *l, csn_error **err)
{
    csn_status st = reach(l, err);

    if (st < 0)
        return st;
    kill_keeper(l);
    return keeper_is_dead(l) ? CSN_OK
                             : csn_fail(err, CSN_UNAVAILABLE,
                                        "the keeper of '%s' (process %lld) cannot be killed",
                                        l->id, (long long)l->keeper_pid);
}

csn_status csn_link_hostile(csn_runtime *l, const char *what, csn_error **err)
{
    kill_keeper(l);
    return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' was killed: %s", l->id, what);
}

/* One request: a new pair of sockets, one end goes along and is the channel of the answers. */
static csn_status send_request(csn_runtime *l, csn_msg_type type, const void *msg,
                               const int *fds, size_t nfds, int *ret_channel, csn_error **err)
{
    uint8_t buf[8192];
    csn_packer o;

    csn_packer_init(&o, buf, sizeof(buf));
    csn_proto_encode(&o, type, msg, nfds);
    int rc = -o.error;
    if (rc == 0)
        rc = csn_msg_ask(l->keeper_fd, type, o.data, o.len, fds, nfds,
                         csn_deadline_in(CSN_KEEPER_ANSWER_MS), ret_channel);
    csn_packer_release(&o);
    if (rc == -E2BIG)
        return csn_fail(err, CSN_TOO_LARGE, "arguments and environment are too large");
    if (rc == -EPIPE)
        return csn_link_lost(l, err);
    if (rc == -ETIMEDOUT)
        return csn_link_hostile(l, "it takes no requests", err);
    return rc < 0 ? csn_fail_errno(err, -rc, "request to the keeper") : CSN_OK;
}

/* The descriptors stay open until the state is freed: other threads may be using them. */
void csn_runtime_keeper_end(csn_runtime *l)
{
    csn_autofd int channel = -1;

    (void)csn_runtime_keeper_spawn_finish(l, NULL); /* only then it can be ended */
    pthread_mutex_lock(&l->keeper_lock);
    bool there = l->keeper_fd >= 0 && l->keeper_pid != 0;
    l->keeper_pid = 0;
    pthread_mutex_unlock(&l->keeper_lock);
    if (!there)
        return;
    if (l->kind->rooted) { /* pid 1 of its namespace: the kernel takes the rest along */
        /* Its own burial takes as long as its start. When nobody else is left in the sandbox,
         * and nobody can come, there is nothing to wait for. */
        bool alone = l->spawns == l->alone_after && !l->connected && !l->detached;
        if (alone)
            (void)syscall(SYS_pidfd_send_signal, l->keeper_pidfd, SIGKILL, NULL, 0);
        else
            kill_keeper(l);
        return;
    }
    if (send_request(l, CSN_MSG_DESTROY, NULL, NULL, 0, &channel, NULL) < 0)
        (void)shutdown(l->keeper_fd, SHUT_RDWR);
    /* The keeper gives up on what cannot be killed after CSN_KEEPER_END_MS, and so do we. */
    if (csn_spawn_wait(l->keeper_pidfd, (int)(CSN_KEEPER_END_MS + CSN_KEEPER_ANSWER_MS)) < 0)
        kill_keeper(l);
}

/* ---- requests
 * ------------------------------------------------------------------------------------ */

csn_status csn_link_ask(csn_runtime *l, csn_msg_type type, const void *msg, const int *fds,
                        size_t nfds, int *ret_channel, csn_error **err)
{
    csn_status st = csn_runtime_keeper_start(l, err);

    return st < 0 ? st : send_request(l, type, msg, fds, nfds, ret_channel, err);
}

csn_status csn_link_answer(csn_runtime *l, int channel, uint64_t deadline_ns, void *buf,
                           size_t size, csn_msg *ret, csn_error **err)
{
    if (deadline_ns == 0)
        deadline_ns = csn_deadline_in(CSN_KEEPER_ANSWER_MS);
    int rc = csn_msg_await(channel, deadline_ns, buf, size, ret);
    if (rc == -ETIMEDOUT)
        return csn_link_hostile(l, "it did not answer", err);
    if (rc == 0)
        return csn_link_lost(l, err);
    if (rc == -EPROTO)
        return csn_link_hostile(l, "it broke the protocol", err);
    return rc < 0 ? csn_fail_errno(err, -rc, "answer of the keeper") : CSN_OK;
}

csn_status csn_link_call_long(csn_runtime *l, csn_msg_type type, const void *msg,
                              uint64_t wait_ms, csn_msg_type want, void *reply, void *buf,
                              size_t size, csn_msg *m, int *ret_errno, csn_error **err)
{
    csn_autofd int channel = -1;
    csn_error_msg refused;

    csn_status st = csn_link_ask(l, type, msg, NULL, 0, &channel, err);
    if (st < 0)
        return st;
    uint64_t most = UINT64_MAX / 4;
    uint64_t deadline =
        csn_deadline_in((wait_ms < most ? wait_ms : most) + CSN_KEEPER_ANSWER_MS);
    st = csn_link_answer(l, channel, deadline, buf, size, m, err);
    if (st < 0)
        return st;
    *ret_errno = 0;
    if (csn_proto_decode(m, want, reply) == 0)
        return CSN_OK;
    bool error = csn_proto_decode(m, CSN_MSG_ERROR, &refused) == 0;
    csn_msg_release(m);
    if (!error)
        return csn_link_hostile(l, "it answered something else", err);
    *ret_errno = (int)refused.errnum;
    return CSN_OK;
}

csn_status csn_link_call(csn_runtime *l, csn_msg_type type, const void *msg, csn_msg_type want,
                         void *reply, int *ret_errno, csn_error **err)
{
    uint8_t buf[256];
    csn_msg m;

    csn_status st =
        csn_link_call_long(l, type, msg, 0, want, reply, buf, sizeof(buf), &m, ret_errno, err);
    if (st == CSN_OK && *ret_errno == 0)
        csn_msg_release(&m);
    return st;
}

csn_status csn_link_check(csn_runtime *l, csn_error **err)
{
    return hello(l, err);
}

csn_status csn_runtime_keeper_commit(csn_runtime *l, csn_error **err)
{
    int e = 0;
    csn_status st = csn_link_call(l, CSN_MSG_COMMIT, NULL, CSN_MSG_DONE, NULL, &e, err);

    return st == CSN_OK && e != 0 ? csn_fail_errno(err, e, "sandbox '%s'", l->id) : st;
}

csn_status csn_runtime_extend(void *state, uint64_t ms, csn_error **err)
{
    csn_runtime *l = state;
    int e = 0;

    csn_status st = csn_link_call(l, CSN_MSG_EXTEND, &(csn_extend_msg){.ms = ms}, CSN_MSG_DONE,
                                  NULL, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return csn_fail_errno(err, e, "extend by %llu ms", (unsigned long long)ms);
    l->extended = true;
    return CSN_OK;
}
