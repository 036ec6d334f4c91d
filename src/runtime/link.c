/* link.c: sends one request to the keeper and receives its answer.
 *
 * The keeper runs next to commands that could attack it, so its messages are treated as
 * hostile: each answer is bounded in size and time. A keeper that breaks the protocol is killed
 * with all its commands. One that does not answer may only be slow, so a question does not kill
 * it; kill_wait.c does, at the deadline of a command. The caller gets CSN_UNAVAILABLE. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/beneath.h"
#include "runtime/link.h"

/* ---- a keeper that does not answer ---- */

csn_status csn_link_lost(csn_runtime *rt, csn_error **err)
{
    bool expected = rt->detached || rt->connected || rt->ended || rt->extended ||
                    rt->config->lifetime_ms != 0;

    if (rt->keeper_pidfd >= 0) /* the sockets close shortly before the process has ended */
        (void)csn_spawn_wait(rt->keeper_pidfd, (int)CSN_KEEPER_ANSWER_MS);
    bool dead = csn_runtime_keeper_is_dead(rt);
    if (!dead && !rt->ended)
        return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' hung up", rt->id);
    if (dead) /* a keeper that only closed our connection still needs its commands */
        csn_runtime_sweep_commands(rt);
    if (!dead || expected)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
    return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' has died", rt->id);
}

csn_status csn_link_hostile(csn_runtime *rt, const char *what, csn_error **err)
{
    csn_runtime_kill_keeper(rt);
    return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' was killed: %s", rt->id, what);
}

/* True if the workspace is no longer at its path: the keeper's mounts are gone, or a command
 * moved a directory above it. */
static bool workspace_is_moved(const csn_runtime *rt)
{
    struct stat was, is;
    csn_autofd int fd =
        csn_beneath_open(rt->root.fd, rt->base.path, O_PATH | O_DIRECTORY, CSN_BENEATH_ROOTED);

    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
        return false; /* says nothing about the workspace */
    return fd < 0 || rt->base.fd < 0 || fstat(fd, &is) < 0 || fstat(rt->base.fd, &was) < 0 ||
           is.st_dev != was.st_dev || is.st_ino != was.st_ino;
}

/* The mounts of a killed keeper may disappear shortly before its socket hangs up. */
csn_status csn_link_check_alive(csn_runtime *rt, csn_status st, csn_error **err)
{
    struct pollfd pf = {.fd = rt->keeper_fd};

    if (rt->ended)
        return st;
    bool lost = poll(&pf, 1, 0) == 1;
    if (!lost && st < 0 && rt->level == CSN_LEVEL_NAMESPACES && workspace_is_moved(rt))
        lost = csn_link_check(rt, NULL) < 0;
    if (!lost)
        return st;
    if (st < 0 && err)
        csn_error_free(CSN_STEAL(*err));
    return csn_link_lost(rt, err);
}

/* ---- requests ---- */

/* Each request carries one end of a new socket pair; the answers arrive on the other end. */
csn_status csn_link_send(csn_runtime *rt, csn_msg_type type, const void *msg, const int *fds,
                         size_t nfds, int *ret_channel, csn_error **err)
{
    uint8_t buf[8192];
    csn_packer o;

    csn_packer_init(&o, buf, sizeof(buf));
    csn_proto_encode(&o, type, msg, nfds);
    int rc = -o.error;
    if (rc == 0)
        rc = csn_msg_request(rt->keeper_fd, type, o.data, o.len, fds, nfds,
                             csn_deadline_in(CSN_KEEPER_ANSWER_MS), ret_channel);
    csn_packer_release(&o);
    if (rc == -E2BIG)
        return csn_fail(err, CSN_TOO_LARGE, "arguments and environment are too large");
    if (rc == -EPIPE)
        return csn_link_lost(rt, err);
    if (rc == -ETIMEDOUT)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "sandbox '%s' is not answering: its keeper takes "
                        "no requests",
                        rt->id);
    return rc < 0 ? csn_fail_errno(err, -rc, "request to the keeper") : CSN_OK;
}

csn_status csn_link_ask(csn_runtime *rt, csn_msg_type type, const void *msg, const int *fds,
                        size_t nfds, int *ret_channel, csn_error **err)
{
    csn_status st = csn_runtime_ensure_keeper(rt, err);

    return st < 0 ? st : csn_link_send(rt, type, msg, fds, nfds, ret_channel, err);
}

csn_status csn_link_answer(csn_runtime *rt, int channel, uint64_t deadline_ns, void *buf,
                           size_t size, csn_msg *ret, csn_error **err)
{
    if (deadline_ns == 0)
        deadline_ns = csn_deadline_in(CSN_KEEPER_ANSWER_MS);
    int rc = csn_msg_await(channel, deadline_ns, buf, size, ret);
    if (rc == -ETIMEDOUT)
        return csn_fail(err, CSN_UNAVAILABLE, "sandbox '%s' is not answering", rt->id);
    if (rc == 0)
        return csn_link_lost(rt, err);
    if (rc == -EPROTO)
        return csn_link_hostile(rt, "it broke the protocol", err);
    return rc < 0 ? csn_fail_errno(err, -rc, "answer of the keeper") : CSN_OK;
}

csn_status csn_link_call_long(csn_runtime *rt, csn_msg_type type, const void *msg,
                              uint64_t wait_ms, csn_msg_type want, void *reply, void *buf,
                              size_t size, csn_msg *m, int *ret_errno, csn_error **err)
{
    csn_autofd int channel = -1;
    csn_error_msg refused;

    csn_status st = csn_link_ask(rt, type, msg, NULL, 0, &channel, err);
    if (st < 0)
        return st;
    uint64_t most = UINT64_MAX / 4;
    uint64_t deadline =
        csn_deadline_in((wait_ms < most ? wait_ms : most) + CSN_KEEPER_ANSWER_MS);
    st = csn_link_answer(rt, channel, deadline, buf, size, m, err);
    if (st < 0)
        return st;
    *ret_errno = 0;
    if (csn_proto_decode(m, want, reply) == 0)
        return CSN_OK;
    bool error = csn_proto_decode(m, CSN_MSG_ERROR, &refused) == 0;
    csn_msg_release(m);
    if (!error)
        return csn_link_hostile(rt, "it answered something else", err);
    *ret_errno = (int)refused.errnum;
    return CSN_OK;
}

csn_status csn_link_call(csn_runtime *rt, csn_msg_type type, const void *msg, csn_msg_type want,
                         void *reply, int *ret_errno, csn_error **err)
{
    uint8_t buf[256];
    csn_msg m;

    csn_status st =
        csn_link_call_long(rt, type, msg, 0, want, reply, buf, sizeof(buf), &m, ret_errno, err);
    if (st == CSN_OK && *ret_errno == 0)
        csn_msg_release(&m);
    return st;
}

/* Checks that the keeper has the pid that the kernel reported and speaks our version. */
static csn_status ask_hello(csn_runtime *rt, csn_hello_reply_msg *ret, csn_error **err)
{
    int e = 0;
    csn_status st = csn_link_call(rt, CSN_MSG_HELLO, NULL, CSN_MSG_HELLO_REPLY, ret, &e, err);

    if (st < 0)
        return st;
    /* In a pid namespace of its own it is 1; -1: it is in another one, and its pid unknown. */
    bool known = ret->pid == 1 || ret->pid == rt->keeper_pid || rt->keeper_pid == -1;
    if (e != 0 || ret->version != CSN_KEEPER_VERSION || !known)
        return csn_fail(err, CSN_UNAVAILABLE, "the keeper of '%s' is of another version",
                        rt->id);
    return CSN_OK;
}

csn_status csn_link_check(csn_runtime *rt, csn_error **err)
{
    csn_hello_reply_msg ignored;

    return ask_hello(rt, &ignored, err);
}

csn_status csn_link_expiry(csn_runtime *rt, int64_t *ret_ms, csn_error **err)
{
    csn_hello_reply_msg r;
    csn_status st = ask_hello(rt, &r, err);

    if (st == CSN_OK)
        *ret_ms = r.ends_ms;
    return st;
}

csn_status csn_runtime_extend(void *state, uint64_t ms, csn_error **err)
{
    csn_runtime *rt = state;
    int e = 0;

    csn_status st = csn_link_call(rt, CSN_MSG_EXTEND, &(csn_extend_msg){.ms = ms}, CSN_MSG_DONE,
                                  NULL, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return csn_fail_errno(err, e, "extend by %llu ms", (unsigned long long)ms);
    rt->extended = true;
    return CSN_OK;
}
