/* proto.h: the wire between the library and a keeper.
 *
 * Messages are os/msg.h's. Every request on a connection carries its own reply channel as its
 * first descriptor (one end of a SEQPACKET pair), so any number of threads may send on one
 * connection and nobody sorts answers. Both sides treat the other as hostile: everything is
 * bounded, counted and checked; descriptors of a malformed message are closed.
 *
 *   request     descriptors after the channel     answers on the channel
 *   HELLO       -                                 HELLO_R
 *   SPAWN       cwd stdin stdout stderr sockets   EXIT; background: STARTED or EXIT
 *               (those of the flags)
 *   DRAIN       one or two read ends              DONE
 *   PROCESSES   -                                 LIST, when it is time
 *   LOGS        -                                 LOG, when there is something
 *   SIGNAL, RESIZE, EXTEND                        DONE
 *   FEED        -                                 FEED_R with a descriptor; close: DONE
 *   SESSION     cwd (flag)                        SESSION_R with descriptors; EXIT at its end
 *   PORT        -                                 DONE when something listens there, inside
 *   SETTLE      -                                 DONE: it no longer needs its maker
 *   ROOT        -                                 ROOT_R with an O_PATH of its root
 *   DESTROY     -                                 none: the channel closes when all is gone
 *
 * Any request may be answered by ERROR. On the channel of a foreground command, a tied process
 * or a session the library may send KILL; on a session's, RELEASE. A channel that hangs up
 * kills what it stands for. On the channel of a foreground command whose EXIT said that it
 * stays, the next SPAWN may be sent, without a channel of its own. Functions return 0 (or as
 * said) or -errno. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/pack.h"
#include "os/msg.h"

#define CSN_KEEPER_VERSION CSN_MSG_VERSION

enum csn_msg_type {
    CSN_MSG_HELLO = 1,
    CSN_MSG_SPAWN,
    CSN_MSG_DRAIN,
    CSN_MSG_PROCESSES,
    CSN_MSG_LOGS,
    CSN_MSG_SIGNAL,
    CSN_MSG_FEED,
    CSN_MSG_RESIZE,
    CSN_MSG_EXTEND,
    CSN_MSG_DESTROY,
    CSN_MSG_SESSION,
    CSN_MSG_PORT,
    CSN_MSG_ROOT,
    CSN_MSG_SETTLE,
    /* on a channel */
    CSN_MSG_KILL = 32,
    CSN_MSG_RELEASE,
    /* answers */
    CSN_MSG_DONE = 64,
    CSN_MSG_ERROR,
    CSN_MSG_EXIT,
    CSN_MSG_STARTED,
    CSN_MSG_LIST,
    CSN_MSG_LOG,
    CSN_MSG_HELLO_R,
    CSN_MSG_FEED_R,
    CSN_MSG_SESSION_R,
    CSN_MSG_ROOT_R,
    /* on the connection it is born with, before it serves */
    CSN_MSG_MOUNTS = 96, /* from the library: detached mounts, in the order of the spec */
    CSN_MSG_READY,       /* from the keeper: its walls stand; its root comes along */
    CSN_MSG_FAILED,      /* they do not */
    CSN_MSG_ORDERS,      /* from the library: the spec, for a keeper born without one */
    CSN_MSG_DOORS,       /* from the library: who writes "0" to these is in its groups */
    CSN_MSG_KEEPER,      /* from the library to a sweeper: the pidfd of the keeper */
};

/* ---- bodies ---------------------------------------------------------------------------- */

/* SPAWN and SESSION flags. The descriptors that are announced come in this order. */
#define CSN_SPAWN_CWD_FD    (1u << 0)
#define CSN_SPAWN_STDIN_FD  (1u << 1)
#define CSN_SPAWN_STDOUT_FD (1u << 2)
#define CSN_SPAWN_STDERR_FD (1u << 3)
#define CSN_SPAWN_SOCKETS_FD                                                                   \
    (1u << 10) /* foreground: who makes its sockets, os/socket_divert.h */
#define CSN_SPAWN_FDS        0x40fu
#define CSN_SPAWN_MERGE      (1u << 4) /* stderr goes where stdout goes */
#define CSN_SPAWN_BACKGROUND (1u << 5)
#define CSN_SPAWN_PTY        (1u << 6)
#define CSN_SPAWN_STDIN_PIPE (1u << 7)
#define CSN_SPAWN_TIED       (1u << 8)
#define CSN_SPAWN_RESTART    (1u << 9)  /* SESSION */
#define CSN_SPAWN_AGAIN      (1u << 11) /* foreground: the channel may stay for the next one */
#define CSN_SPAWN_ALL        0xfffu

#define CSN_SPAWN_FEW 64u

typedef struct csn_spawn_body {
    uint32_t flags;
    uint32_t rows, cols;
    uint64_t memory_max, file_max, nofile_max; /* 0: as the keeper has it */
    uint64_t ring_max;                         /* background: bytes kept per stream */
    uint64_t deadline_ns; /* background: killed then; session: wait for a turn so long */
    const char *cwd;      /* a path, or NULL: the descriptor, or the keeper's own */
    const char *command;  /* text for ps, or NULL; session: its name */
    const char **argv;    /* after one spare slot; NULL-terminated, strings in the message */
    const char **env;
    const char *few[CSN_SPAWN_FEW]; /* the two lists after parsing, if they are short */
    const void *heap;               /* or this, which owns them */
} csn_spawn_body;

void csn_put_spawn(csn_packer *o, const csn_spawn_body *s);
/* Pointers borrow from the message, and the lists may lie in *ret. Release frees them. */
int csn_get_spawn(const void *body, size_t len, csn_spawn_body *ret);
void csn_spawn_body_release(csn_spawn_body *s);
/* How many descriptors (without the channel) these flags announce. */
size_t csn_spawn_fd_count(uint32_t flags);

/* Where a spawn failed. */
enum csn_stage {
    CSN_STAGE_NONE,
    CSN_STAGE_SETUP, /* before there was a process: pipes, pty, memory */
    CSN_STAGE_CLONE,
    CSN_STAGE_STDIO,
    CSN_STAGE_CWD,
    CSN_STAGE_LIMIT,
    CSN_STAGE_EXEC,
    CSN_STAGE_INTERP, /* the file is there, its interpreter is not */
    CSN_STAGE_SOCKETS,
};

#define CSN_KILLED_ASKED (1u << 0) /* a KILL came before its end */
#define CSN_KILLED_MEMORY                                                                      \
    (1u << 1) /* the keeper's own: all processes together had too much                         \
               */

#define CSN_AFTER_ALONE   (1u << 0) /* no other process is left; only where that can be known */
#define CSN_AFTER_CHANNEL (1u << 1) /* the channel stays: the next SPAWN may come on it */
#define CSN_AFTER_ALL     3u

typedef struct csn_exit_body {
    uint32_t stage;  /* not NONE: it never ran */
    uint32_t errnum; /* of that stage */
    uint32_t status; /* as wait() gives it */
    uint32_t killed; /* CSN_KILLED_* */
    uint64_t cpu_ns;
    uint64_t peak_memory;
    uint64_t after; /* CSN_AFTER_* */
} csn_exit_body;

void csn_put_exit(csn_packer *o, const csn_exit_body *b);
int csn_get_exit(const void *body, size_t len, csn_exit_body *ret);

typedef struct csn_proc_body {
    int64_t pid;
    uint32_t running, status, pty;
    uint64_t out_total, err_total;
    int64_t started_ms;
    const char *command;
} csn_proc_body;

void csn_put_proc(csn_packer *o, const csn_proc_body *b);
int csn_get_proc(csn_unpacker *in, csn_proc_body *ret);

/* The small requests share one shape: a process and up to three numbers. */
typedef struct csn_ask_body {
    int64_t pid;
    uint64_t a, b, c;
} csn_ask_body;

/* PROCESSES a: wait ms. LOGS a: stream, b: offset, c: wait ms. SIGNAL a: number. FEED a: close.
 * RESIZE a: rows, b: columns. EXTEND a: ms. KILL a: grace ms. ERROR a: errno, b: stage.
 * STARTED pid. HELLO_R pid, a: version, b: started (epoch ms), c: ends (epoch ms, 0: never).
 * SESSION_R pid, a: 1 for a new shell. PORT a: number. READY a: walls that stand, b: Landlock's
 * ABI, c: why no limit on user namespaces (errno), pid: the network, see csn_net_body. FAILED
 * a: errno, b: which wall, c: which entry of its mounts, or the network's step and detail. */
void csn_put_ask(csn_packer *o, const csn_ask_body *b);
int csn_get_ask(const void *body, size_t len, csn_ask_body *ret);

/* What became of a network that was ordered, in READY and ROOT_R. After the root, READY brings
 * the link on which fresh sockets are asked for, the sockets whose bits
 * (csn_gateway_net_socket) are set, and one listener for each port that is lent. */
typedef struct csn_net_body {
    uint32_t mode;    /* csn_gateway_net_mode; NONE: nothing was ordered, and nothing comes */
    uint32_t sockets; /* 1 << csn_gateway_net_socket */
    uint32_t lacking; /* why it is a proxy although more was ordered; errno */
    uint32_t proxy_port; /* on its loopback; 0: none */
} csn_net_body;

int64_t csn_net_pack(const csn_net_body *b);
int csn_net_unpack(int64_t packed, csn_net_body *ret); /* -EPROTO */

/* Answer to LOGS: the head, then the bytes. */
typedef struct csn_log_body {
    uint64_t offset, dropped, total;
    uint32_t end;
    uint32_t len;
    const uint8_t *data;
} csn_log_body;

void csn_put_log(csn_packer *o, const csn_log_body *b);
int csn_get_log(const void *body, size_t len, csn_log_body *ret);
