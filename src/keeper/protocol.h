/* protocol.h: the messages between the library and a keeper.
 *
 * CSN_MESSAGES has one row per message: its number, the fields of its body, and the ceilings of
 * both. The struct, the encoder and the decoder of a message are made from its list of fields;
 * adding a field is adding one line to a list. Transport is os/msg.h.
 *
 * A request carries its reply channel, one end of a SEQPACKET pair, as its first descriptor, so
 * that any number of threads may send on one connection. Its replies come on that channel, and
 * ERROR may take the place of any of them. Closing the channel of a foreground command, a tied
 * process or a session kills it.
 *
 * Library and keeper treat each other as hostile: unknown flags, values out of range, missing
 * or trailing bytes and a wrong number of descriptors are refused by the decoder, and the
 * encoder refuses to send them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/pack.h"
#include "keeper/boot/confine.h"
#include "os/cgroup.h"
#include "os/msg.h"

#define CSN_KEEPER_VERSION CSN_MSG_VERSION

#define CSN_SMALL_BODY 64u /* numbers only */
#define CSN_NAME_BODY  (CSN_DNS_NAME_MAX + 64u)
#define CSN_LOG_BODY   (CSN_LOG_CHUNK_MAX + 64u)
#define CSN_LARGE_BODY CSN_KEEPER_BODY_MAX
#define CSN_SPEC_MAX   (64u * 1024u)

/* M(name, number, fields, body ceiling, descriptors: at least, at most). `raw` bodies are no
 * struct and have their own functions. */
#define CSN_MESSAGES(M)                                                                        \
    /* Requests to the keeper. The reply channel is not counted among the descriptors. */      \
    M(HELLO, 1, none, 0, 0, 0)                       /* HELLO_REPLY */                         \
    M(SPAWN, 2, spawn, CSN_LARGE_BODY, 0, 5)         /* EXIT; in the background STARTED */     \
    M(DRAIN, 3, none, 0, 1, 2)                       /* DONE. Pipes to read and discard */     \
    M(PROCESSES, 4, processes, CSN_SMALL_BODY, 0, 0) /* PROCESS_LIST, after up to wait_ms */   \
    M(LOGS, 5, logs, CSN_SMALL_BODY, 0, 0)           /* LOG, after up to wait_ms */            \
    M(SIGNAL, 6, signal, CSN_SMALL_BODY, 0, 0)       /* DONE */                                \
    M(FEED, 7, feed, CSN_SMALL_BODY, 0, 0)           /* FEED_REPLY; with `close` DONE */       \
    M(RESIZE, 8, resize, CSN_SMALL_BODY, 0, 0)       /* DONE */                                \
    M(EXTEND, 9, extend, CSN_SMALL_BODY, 0, 0)       /* DONE */                                \
    M(DESTROY, 10, none, 0, 0, 0)                    /* the channel closes at the end */       \
    M(SESSION, 11, session, CSN_LARGE_BODY, 0, 1)    /* SESSION_REPLY, and EXIT at its end */  \
    M(PORT, 12, port, CSN_SMALL_BODY, 0, 0)          /* DONE if a socket listens there */      \
    M(ROOT, 13, none, 0, 0, 0)                       /* ROOT_REPLY */                          \
    M(COMMIT, 14, none, 0, 1, CSN_COMMIT_MAX)        /* DONE. See CSN_COMMIT_RECORD */         \
    M(LAYERS, 15, none, 0, 0, 0)                     /* LAYERS_REPLY */                        \
    M(PAUSE, 16, pause, CSN_SMALL_BODY, 0, 0)        /* DONE, see pause.c */                   \
    /* To the keeper, on the channel of a running command or session. After an EXIT with       \
     * CSN_AFTER_CHANNEL, the next SPAWN may come there, too. */                               \
    M(KILL, 32, kill, CSN_SMALL_BODY, 0, 0)                                                    \
    M(RELEASE, 33, none, 0, 0, 0) /* the session is free for its next user */                  \
    M(ENDED, 34, none, 0, 0, 0)   /* the session's command has ended, RELEASE follows */       \
    /* Replies. */                                                                             \
    M(DONE, 64, none, 0, 0, 0)                                                                 \
    M(ERROR, 65, error, CSN_SMALL_BODY, 0, 0)                                                  \
    M(EXIT, 66, exit, CSN_SMALL_BODY, 0, 0)                                                    \
    M(STARTED, 67, started, CSN_SMALL_BODY, 0, 0)                                              \
    M(PROCESS_LIST, 68, raw, CSN_LARGE_BODY, 0, 0) /* any number of csn_process_msg */         \
    M(LOG, 69, log, CSN_LOG_BODY, 0, 0)                                                        \
    M(HELLO_REPLY, 70, hello_reply, CSN_SMALL_BODY, 0, 0)                                      \
    M(FEED_REPLY, 71, none, 0, 1, 1)                          /* write end of its stdin */     \
    M(SESSION_REPLY, 72, session_reply, CSN_SMALL_BODY, 3, 4) /* script, status, out, err */   \
    /* O_PATH of the root; without confinement the directories that COMMIT brought. */         \
    M(ROOT_REPLY, 73, ready, CSN_SMALL_BODY, 1, CSN_KEEPER_FDS_MAX)                            \
    /* On the channel of a running command, before its EXIT, at most CSN_KEEPER_REFUSED_MAX    \
     * times: a name that a process looked up in a jail without a network. */                  \
    M(REFUSED, 74, refused, CSN_NAME_BODY, 0, 0)                                               \
    M(LAYERS_REPLY, 75, layers, CSN_SMALL_BODY, 0, 1) /* the tree, see os/overlay.h */         \
    /* To a keeper that has not reported READY or FAILED yet. */                               \
    M(MOUNTS, 96, none, 0, 1, CSN_KEEPER_FDS_MAX) /* detached mounts, in spec order */         \
    M(SPEC, 99, raw, CSN_SPEC_MAX, 0, 0)          /* its body is spec.h's */                   \
    M(CGROUPS, 100, none, 0, 1, CSN_CGROUP_KINDS) /* files: writing "0" enters it */           \
    /* From the keeper. READY brings the root, the link for new sockets, the sockets of        \
     * net_sockets, and one listener for each lent port. */                                    \
    M(READY, 97, ready, CSN_SMALL_BODY, 1, CSN_KEEPER_FDS_MAX)                                 \
    M(FAILED, 98, failed, CSN_SMALL_BODY, 0, 0)                                                \
    /* To a sweeper. */                                                                        \
    /* pidfd to wait for, then files to hold */                                                \
    M(KEEPER, 101, none, 0, 1, CSN_KEEPER_FDS_MAX - 1)

typedef enum csn_msg_type {
#define CSN_MESSAGE_NUMBER(name, number, fields, body, fds_min, fds_max)                       \
    CSN_MSG_##name = (number),
    CSN_MESSAGES(CSN_MESSAGE_NUMBER)
#undef CSN_MESSAGE_NUMBER
} csn_msg_type;

/* ---- values ---- */

/* Descriptors that a SPAWN announces; they come in this order. A SESSION has CWD_FD only. */
#define CSN_SPAWN_CWD_FD     (1u << 0)
#define CSN_SPAWN_STDIN_FD   (1u << 1)
#define CSN_SPAWN_STDOUT_FD  (1u << 2)
#define CSN_SPAWN_STDERR_FD  (1u << 3)
#define CSN_SPAWN_SOCKETS_FD (1u << 4) /* foreground: see os/socket_divert.h */
#define CSN_SPAWN_FDS        0x1fu
/* Options of a SPAWN. */
#define CSN_SPAWN_MERGE        (1u << 5) /* stderr goes where stdout goes */
#define CSN_SPAWN_BACKGROUND   (1u << 6)
#define CSN_SPAWN_PTY          (1u << 7)  /* stdin is its controlling terminal */
#define CSN_SPAWN_STDIN_PIPE   (1u << 8)  /* background */
#define CSN_SPAWN_TIED         (1u << 9)  /* background: killed when the channel closes */
#define CSN_SPAWN_KEEP_CHANNEL (1u << 10) /* foreground: the next SPAWN may use it again */
#define CSN_SPAWN_RESTART      (1u << 11) /* SESSION: replace a shell of this name */
#define CSN_SPAWN_ALL          0x7ffu
#define CSN_SESSION_ALL        (CSN_SPAWN_CWD_FD | CSN_SPAWN_MERGE | CSN_SPAWN_RESTART)

/* Descriptors of a COMMIT, in this order: the record of the sandbox with its lock; without
 * confinement also O_PATH of the socket, of the base and of the granted directories. The keeper
 * ends when the record is unlinked. It holds the others so that a process that connects later
 * gets the directories that were opened, whatever their paths mean by then, and can reach an
 * unlinked socket through /proc. */
#define CSN_COMMIT_RECORD 0
#define CSN_COMMIT_SOCKET 1
#define CSN_COMMIT_DIRS   2
#define CSN_COMMIT_MAX    (CSN_KEEPER_FDS_MAX - 2) /* one for the channel, one for a body */

/* The step at which a command could not be started. */
typedef enum csn_stage {
    CSN_STAGE_NONE,
    CSN_STAGE_SETUP, /* before there was a process: pipes, terminal, memory */
    CSN_STAGE_CLONE,
    CSN_STAGE_STDIO,
    CSN_STAGE_CWD,
    CSN_STAGE_LIMIT,
    CSN_STAGE_EXEC,
    CSN_STAGE_INTERP, /* the file exists, its interpreter does not */
    CSN_STAGE_SOCKETS,
    CSN_STAGES
} csn_stage;

#define CSN_KILLED_ASKED    (1u << 0) /* a KILL or the deadline came before its end */
#define CSN_KILLED_MEMORY   (1u << 1) /* by the keeper: the sandbox was over its memory limit */
#define CSN_KILLED_DEADLINE (1u << 2) /* by the keeper: the deadline came before any KILL */
#define CSN_KILLED_DISK     (1u << 3) /* by the keeper: its workspace was over the disk limit */
#define CSN_KILLED_FILES    (1u << 4) /* the same, with the number of files */
#define CSN_KILLED_ALL      0x1fu

#define CSN_AFTER_ALONE   (1u << 0) /* known: no other process is left in the sandbox */
#define CSN_AFTER_CHANNEL (1u << 1) /* the channel stays open for the next SPAWN */
/* Without a network: a process tried to reach an address that is not of the sandbox. */
#define CSN_AFTER_UNROUTED (1u << 2)
#define CSN_AFTER_ALL      0x7u

#define CSN_ERRNO_MAX 4095u

/* ---- fields: F(struct, kind, name, min, max), see base/pack.h ---- */

/* The limits of a command: 0 leaves the keeper's own. cwd: a path, unless CWD_FD is set; NULL
 * is the keeper's own directory. deadline_ns is a time of CLOCK_MONOTONIC, which library and
 * keeper share: caisson creates no time namespace. The keeper enforces it, because the library
 * may be stopped or blocked then. */
#define CSN_SPAWN_FIELDS(F, T)                                                                 \
    F(T, FLAGS, flags, 0, CSN_SPAWN_ALL)                                                       \
    F(T, U32, rows, 0, UINT16_MAX)                                                             \
    F(T, U32, cols, 0, UINT16_MAX)                                                             \
    F(T, U64, memory_max, 0, UINT64_MAX)                                                       \
    F(T, U64, file_max, 0, UINT64_MAX)                                                         \
    F(T, U64, nofile_max, 0, UINT64_MAX)                                                       \
    F(T, U64, ring_max, 0, CSN_OUTPUT_MAX_CEILING) /* background: bytes kept per stream */     \
    F(T, U64, deadline_ns, 0, UINT64_MAX)          /* when to kill it; 0: never */             \
    F(T, OPTIONAL_TEXT, cwd, 0, CSN_PATH_MAX)                                                  \
    F(T, OPTIONAL_TEXT, command, 0, CSN_COMMAND_TEXT_MAX) /* background: text for ps */        \
    F(T, LIST, argv, 1, CSN_ARGV_COUNT_MAX)                                                    \
    F(T, LIST, env, 0, CSN_ARGV_COUNT_MAX)                                                     \
    F(T, STRINGS, strings, 0, 0)

#define CSN_SESSION_FIELDS(F, T)                                                               \
    F(T, FLAGS, flags, 0, CSN_SESSION_ALL)                                                     \
    F(T, U64, memory_max, 0, UINT64_MAX)                                                       \
    F(T, U64, file_max, 0, UINT64_MAX)                                                         \
    F(T, U64, deadline_ns, 0, UINT64_MAX) /* of the wait for it and of the command */          \
    F(T, TEXT, name, 1, CSN_NAME_BYTES_MAX)                                                    \
    F(T, LIST, env, 0, CSN_ARGV_COUNT_MAX)                                                     \
    F(T, STRINGS, strings, 0, 0)

#define CSN_PROCESSES_FIELDS(F, T)                                                             \
    F(T, I64, pid, 0, 0)              /* 0: all */                                             \
    F(T, U64, wait_ms, 0, UINT64_MAX) /* how long to wait for the end of `pid` */

#define CSN_LOGS_FIELDS(F, T)                                                                  \
    F(T, I64, pid, 0, 0)                                                                       \
    F(T, U32, stream, 1, 2)                                                                    \
    F(T, U64, offset, 0, UINT64_MAX)                                                           \
    F(T, U64, wait_ms, 0, UINT64_MAX) /* how long to wait for bytes after `offset` */

#define CSN_SIGNAL_FIELDS(F, T)                                                                \
    F(T, I64, pid, 0, 0)                                                                       \
    F(T, U32, signo, 1, 64)

#define CSN_FEED_FIELDS(F, T)                                                                  \
    F(T, I64, pid, 0, 0)                                                                       \
    F(T, U32, close, 0, 1)

#define CSN_RESIZE_FIELDS(F, T)                                                                \
    F(T, I64, pid, 0, 0)                                                                       \
    F(T, U32, rows, 0, UINT16_MAX)                                                             \
    F(T, U32, cols, 0, UINT16_MAX)

#define CSN_EXTEND_FIELDS(F, T) F(T, U64, ms, 1, UINT64_MAX)
#define CSN_PORT_FIELDS(F, T)   F(T, U32, port, 1, UINT16_MAX)
#define CSN_PAUSE_FIELDS(F, T)  F(T, U32, on, 0, 1)
#define CSN_KILL_FIELDS(F, T)   F(T, U64, grace_ms, 0, UINT64_MAX)

#define CSN_ERROR_FIELDS(F, T)                                                                 \
    F(T, U32, errnum, 1, CSN_ERRNO_MAX)                                                        \
    F(T, U32, stage, 0, CSN_STAGES - 1)

/* stage and errnum: why it did not run; otherwise status, as wait() gives it. */
#define CSN_EXIT_FIELDS(F, T)                                                                  \
    F(T, U32, stage, 0, CSN_STAGES - 1)                                                        \
    F(T, U32, errnum, 0, CSN_ERRNO_MAX)                                                        \
    F(T, U32, status, 0, UINT32_MAX)                                                           \
    F(T, FLAGS, killed, 0, CSN_KILLED_ALL)                                                     \
    F(T, U64, cpu_ns, 0, UINT64_MAX)                                                           \
    F(T, U64, peak_memory, 0, UINT64_MAX)                                                      \
    F(T, FLAGS, after, 0, CSN_AFTER_ALL)

#define CSN_REFUSED_FIELDS(F, T) F(T, TEXT, name, 1, CSN_DNS_NAME_MAX)
#define CSN_STARTED_FIELDS(F, T) F(T, U64, pid, 1, INT32_MAX)

#define CSN_PROCESS_FIELDS(F, T)                                                               \
    F(T, I64, pid, 0, 0)                                                                       \
    F(T, U32, running, 0, 1)                                                                   \
    F(T, U32, status, 0, UINT32_MAX)                                                           \
    F(T, U32, pty, 0, 1)                                                                       \
    F(T, U64, out_total, 0, UINT64_MAX)                                                        \
    F(T, U64, err_total, 0, UINT64_MAX)                                                        \
    F(T, I64, started_ms, 0, 0)                                                                \
    F(T, TEXT, command, 0, CSN_COMMAND_TEXT_MAX)

/* dropped: bytes between the requested offset and `offset`. */
#define CSN_LOG_FIELDS(F, T)                                                                   \
    F(T, U64, offset, 0, UINT64_MAX)                                                           \
    F(T, U64, dropped, 0, UINT64_MAX)                                                          \
    F(T, U64, total, 0, UINT64_MAX)                                                            \
    F(T, U32, end, 0, 1)                                                                       \
    F(T, BYTES, bytes, 0, CSN_LOG_CHUNK_MAX)

/* Times since the epoch; ends_ms 0: never. */
#define CSN_HELLO_REPLY_FIELDS(F, T)                                                           \
    F(T, I64, pid, 0, 0)                                                                       \
    F(T, U32, version, 0, UINT32_MAX)                                                          \
    F(T, I64, started_ms, 0, 0)                                                                \
    F(T, I64, ends_ms, 0, 0)

#define CSN_SESSION_REPLY_FIELDS(F, T) F(T, U32, fresh, 0, 1)

/* The net_ fields report the network that was built; NONE: the spec ordered no network. */
#define CSN_READY_FIELDS(F, T)                                                                 \
    F(T, FLAGS, steps, 0, CSN_CONFINE_ALL)                                                     \
    F(T, U32, landlock_abi, 0, UINT32_MAX)                                                     \
    F(T, U32, nesting_errnum, 0, CSN_ERRNO_MAX) /* why user namespaces are not limited */      \
    F(T, U32, pid_max_errnum, 0, CSN_ERRNO_MAX) /* why the spec's pid_max is not in force */   \
    F(T, U32, net_mode, 0, CSN_GATEWAY_NET_PROXY)                                              \
    F(T, FLAGS, net_sockets, 0, (1u << CSN_GATEWAY_NET_SOCKETS) - 1)                           \
    F(T, U32, net_lacking, 0, CSN_ERRNO_MAX) /* errno for which EITHER became PROXY */         \
    F(T, U32, proxy_port, 0, UINT16_MAX)     /* on its loopback; 0: none */

/* commands: foreground and background commands that have not ended. shells: sessions. */
#define CSN_LAYERS_FIELDS(F, T)                                                                \
    F(T, U32, commands, 0, UINT32_MAX)                                                         \
    F(T, U32, shells, 0, UINT32_MAX)

#define CSN_FAILED_FIELDS(F, T)                                                                \
    F(T, U32, errnum, 1, CSN_ERRNO_MAX)                                                        \
    F(T, U32, step, 0, CSN_CONFINE_STEPS - 1)                                                  \
    F(T, U32, mount, 0, UINT32_MAX)    /* CSN_CONFINE_MOUNTS: the entry of the list */         \
    F(T, U32, net_step, 0, UINT32_MAX) /* CSN_CONFINE_NET: csn_gateway_net_step */             \
    F(T, U32, net_detail, 0, UINT32_MAX)

#define CSN_MESSAGE_STRUCT(name, NAME)                                                         \
    typedef struct csn_##name##_msg {                                                          \
        CSN_##NAME##_FIELDS(CSN_FIELD_MEMBER, )                                                \
    } csn_##name##_msg;
#define CSN_MESSAGE_STRUCTS(S)                                                                 \
    S(spawn, SPAWN)                                                                            \
    S(session, SESSION)                                                                        \
    S(processes, PROCESSES)                                                                    \
    S(logs, LOGS)                                                                              \
    S(signal, SIGNAL)                                                                          \
    S(feed, FEED)                                                                              \
    S(resize, RESIZE)                                                                          \
    S(extend, EXTEND)                                                                          \
    S(pause, PAUSE)                                                                            \
    S(port, PORT)                                                                              \
    S(kill, KILL)                                                                              \
    S(error, ERROR)                                                                            \
    S(exit, EXIT)                                                                              \
    S(refused, REFUSED)                                                                        \
    S(started, STARTED)                                                                        \
    S(process, PROCESS)                                                                        \
    S(log, LOG)                                                                                \
    S(hello_reply, HELLO_REPLY)                                                                \
    S(session_reply, SESSION_REPLY)                                                            \
    S(layers, LAYERS)                                                                          \
    S(ready, READY)                                                                            \
    S(failed, FAILED)
CSN_MESSAGE_STRUCTS(CSN_MESSAGE_STRUCT)
#undef CSN_MESSAGE_STRUCT

/* Room for any request. */
typedef union csn_any_request {
    csn_spawn_msg spawn;
    csn_session_msg session;
    csn_processes_msg processes;
    csn_logs_msg logs;
    csn_signal_msg signal;
    csn_feed_msg feed;
    csn_resize_msg resize;
    csn_extend_msg extend;
    csn_port_msg port;
    csn_pause_msg pause;
} csn_any_request;

/* ---- encode, decode, send ---- */

/* `msg` is the struct of the type, or NULL if it has no fields. nfds: descriptors that will go
 * along, without the reply channel. Sets o->error if the message breaks its row. */
void csn_proto_encode(csn_packer *o, csn_msg_type type, const void *msg, size_t nfds);
/* Sends a message that is not a request. 0 or -errno, see csn_msg_send. */
int csn_proto_send(int sock, csn_msg_type type, const void *msg, const int *fds, size_t nfds,
                   uint64_t deadline_ns);
/* Decodes a message whose type must be `type` and whose reply channel, if it has one, was taken
 * out (csn_proto_take_channel). *ret borrows from the message; it may be NULL for a message
 * without fields. 0, -EPROTO or -ENOMEM. Of a raw message only the ceilings are checked. */
int csn_proto_decode(const csn_msg *m, csn_msg_type type, void *ret);
/* Frees what decoding a request has allocated. */
void csn_proto_release(csn_msg_type type, void *msg);
/* Removes the first descriptor from the message and returns it; -1: there is none. */
int csn_proto_take_channel(csn_msg *m);
/* The entries of a PROCESS_LIST. next: 1, 0 at the end, or -EPROTO. */
void csn_process_put(csn_packer *o, const csn_process_msg *p);
int csn_process_next(csn_unpacker *in, csn_process_msg *ret);
/* How many descriptors these flags announce. */
size_t csn_spawn_fd_count(uint32_t flags);
