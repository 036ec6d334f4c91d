/* keeper.h: the state of a running keeper, shared by its files.
 *
 *   main.c              starts, runs and ends the keeper
 *   boot/boot.c         receives the spec
 *   boot/confine.c      confines the keeper, from clone to READY; has a timeline of the boot
 *   serve.c             the event loop, connections, and the table of request handlers
 *   start_command.c     SPAWN: from a request to a running program
 *   jobs.c              commands: their output, their end
 *   deferred_replies.c  PROCESSES, LOGS (replies may wait); SIGNAL, FEED, RESIZE
 *   session.c           SESSION: persistent shells
 *   treekill.c          kills a command with all its descendants
 *   meter.c             enforces a memory limit where no control group does
 *   disk_meter.c        enforces a limit of what is written to a copy-on-write workspace
 *   gateway_sockets.c   creates the gateway's sockets inside the jail
 *   name_stub.c         answers DNS queries in a jail without a network
 *   sweep.c             removes what a sandbox leaves; the sweeper program
 *   ring.c              keeps the newest bytes of a stream
 *   protocol.c, spec.c  encode and decode; also linked into the library
 *
 * One thread, no locks. Objects are in linked lists with ceilings (base/limits.h). An object
 * that is closed while a batch of events is handled is freed after the batch, because a later
 * event may still point to it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/protocol.h"
#include "keeper/ring.h"
#include "keeper/spec.h"
#include "os/proctree.h"

/* Intrusive and circular; the first member of every object that is in a list. */
typedef struct kp_link {
    struct kp_link *prev, *next;
} kp_link;

typedef struct kp_list {
    kp_link head;
    size_t count;
} kp_list;

void kp_list_init(kp_list *l);
void kp_list_add(kp_list *l, kp_link *item);
void kp_list_drop(kp_list *l, kp_link *item);
#define KP_EACH(list, item, safe)                                                              \
    for (kp_link *item = (list)->head.next, *safe = item->next; item != &(list)->head;         \
         item = safe, safe = item->next)

typedef enum kp_watch_kind {
    KP_WATCH_SIGNALS,
    KP_WATCH_OWNER,
    KP_WATCH_LISTEN,
    KP_WATCH_CONN,
    KP_WATCH_CHANNEL,      /* of a running job */
    KP_WATCH_KEPT_CHANNEL, /* of an ended job, waiting for the next command */
    KP_WATCH_OUTPUT,       /* of a background job */
    KP_WATCH_WAITER,
    KP_WATCH_DRAIN,
    KP_WATCH_NET,            /* the link to the gateway */
    KP_WATCH_NAMES,          /* DNS queries */
    KP_WATCH_SESSION_OUTPUT, /* of a session that no caller has leased */
} kp_watch_kind;

/* A descriptor, in the epoll set while `on`. fd -1: none. */
typedef struct kp_watch {
    kp_watch_kind kind;
    int fd;
    bool on;
    void *owner;
} kp_watch;

typedef struct kp_conn {
    kp_link link;
    kp_watch watch;
    bool control; /* of the creator; the keeper started with it */
} kp_conn;

typedef enum kp_job_kind {
    KP_JOB_FOREGROUND,
    KP_JOB_BACKGROUND,
    KP_JOB_SESSION,
} kp_job_kind;

typedef struct kp_stream {
    kp_watch watch;
    kp_ring ring;
    struct kp_job *job;
    bool ended;   /* the ring gets no more bytes */
    bool discard; /* the process has ended and others hold the pipe open: read and discard */
} kp_stream;

typedef enum kp_kill_phase {
    KP_KILL_NONE,
    KP_KILL_TERM,
    KP_KILL_KILL,
} kp_kill_phase;

struct kp_session;

typedef struct kp_job {
    kp_link link;
    kp_job_kind kind;
    pid_t pid;
    uint64_t tag;
    bool running; /* the direct child is not reaped yet */
    bool reaped;  /* the child is reaped, but kp_jobs_reap has not finished the job */
    bool tied;
    bool keep_channel;
    bool pty;
    bool killed;    /* by a request or at its deadline */
    bool timed_out; /* killed at its deadline */
    uint32_t over;  /* killed by a meter: the CSN_KILLED_* of its limit */
    kp_watch channel;
    kp_stream out, err;
    int stdin_w;
    uint32_t status;
    uint64_t cpu_ns, peak_memory;
    int64_t started_ms;
    uint64_t deadline_ns; /* 0: none */
    uint64_t drain_ns;    /* 0: none; output after that time is discarded */
    kp_kill_phase phase;
    uint64_t kill_next_ns, kill_term_ns;
    uint32_t kill_nap_ms;
    char *command;
    struct kp_session *session;
    uint32_t refused[CSN_KEEPER_REFUSED_MAX]; /* hashes of the names that it was told */
    uint32_t refused_count;
    uint64_t unrouted_before; /* see kp_unrouted_since */
} kp_job;

typedef struct kp_session {
    kp_link link; /* next NULL: the session has given up its name */
    char *name;
    kp_job *job;
    int script_w, ctl_r;
    kp_watch out, err;
    bool merge;
    bool busy; /* leased to a caller */
} kp_session;

/* A request whose reply is deferred. */
typedef struct kp_waiter {
    kp_link link;
    kp_watch watch;    /* its channel */
    csn_msg_type type; /* PROCESSES, LOGS or SESSION */
    int64_t pid;       /* PROCESSES, LOGS */
    csn_logs_msg logs; /* LOGS */
    uint32_t flags;    /* SESSION */
    char *name;        /* SESSION; malloc'd */
    uint64_t deadline_ns;
} kp_waiter;

/* A pipe that is read and discarded, so that its writers neither block nor get SIGPIPE. */
typedef struct kp_drain {
    kp_link link;
    kp_watch watch;
} kp_drain;

typedef struct kp_meter {
    uint64_t next_ns;
    uint64_t peak;       /* bytes of all processes */
    unsigned over_count; /* successive scans above the limit */
} kp_meter;

struct kp_disk_meter;

#define KP_PAGE           4096u /* with larger pages less memory is released */
#define KP_CHILD_STACK    (15u * KP_PAGE + 1280u) /* of a child between clone and exec */
#define KP_INLINE_OBJECTS 2u                      /* the control connection and one job */

/* There may be thousands of keepers, and each page that a keeper writes to is private to it. So
 * all that one command needs is contiguous: the used end of the child's stack, the state, the
 * first objects, the start of the message. A keeper that runs one command at a time calls no
 * malloc and has no heap. */
typedef struct kp_keeper {
    _Alignas(KP_PAGE) char child_stack[KP_CHILD_STACK];
    csn_keeper_spec spec;
    csn_ready_msg ready; /* as reported; ROOT repeats it */
    uint64_t resume_ns;  /* when paused processes continue; 0: they are not paused */
    pid_t *stopped;      /* were stopped before the pause */
    size_t stopped_count;
    int layers;          /* the tree below the overlay of the workspace (O_PATH), or -1 */
    int command_ruleset; /* Landlock's for commands alone, see boot/confine.c; -1: none */
    int proc;            /* a /proc that can be written to; -1: not confined */
    int epfd;
    kp_watch signals, owner, listen;
    kp_watch net;      /* the gateway asks for sockets here; fd -1: there is none */
    kp_watch names;    /* DNS queries of a jail without a network; fd -1: there is one */
    uint64_t unrouted; /* the kernel's counter when it was read last */
    kp_list conns, jobs, ended, waiters, sessions, drains;
    kp_list kept_channels; /* ended foreground jobs whose channel waits for the next command */
    kp_list deferred_free;
    csn_proctree tree;
    csn_proctree_query want; /* the search that is running */
    uint64_t sequence;
    int64_t started_ms, ends_ms; /* epoch; 0: never */
    uint64_t ends_ns;            /* monotonic; 0: never */
    bool reaped;                 /* some job has its `reaped` set */
    bool ending;
    bool committed; /* detached: the sandbox is recorded and outlives its creator */
    int record;     /* after COMMIT: the file by which it is found, with its lock */
    int held[CSN_KEEPER_FDS_MAX]; /* after COMMIT, see protocol.h */
    size_t held_count;
    uint64_t record_next_ns; /* when to check the record next; 0: never */
    kp_meter meter;
    struct kp_disk_meter *disk; /* NULL: there is no limit */
    struct {
        _Alignas(16) char bytes[sizeof(kp_job)];
        bool taken;
    } inline_objects[KP_INLINE_OBJECTS];
    uint8_t packet[CSN_KEEPER_MSG_MAX];
} kp_keeper;

/* boot/boot.c. Receives the spec and confines the keeper, unless it is a sweeper: 0 or
 * -errno. */
int kp_boot(kp_keeper *k);
/* Waits for a message or a hang-up on the control connection, before the event loop runs.
 * Returns 0, or -errno: the owner has died. */
int kp_await_message(void);
void kp_reset_signals(int first, int last); /* to their default dispositions */
/* Gives whole pages between these back to the kernel; their contents are lost. */
void kp_release_pages(void *start, void *end);

/* boot/confine.c. Room for the mounts of the spec (CSN_MOUNTS_MAX), until kp_confine
 * returns. */
csn_mount *kp_confine_mount_list(void);
/* Runs the steps that every jail needs, before the spec arrives. kp_confine repeats those that
 * failed. */
void kp_confine_begin(void);
/* Runs all steps of the spec and reports READY or FAILED. On -errno the keeper must exit. */
int kp_confine(kp_keeper *k);

/* gateway_sockets.c. Builds the network of the spec, if it has one. Fills the net fields of
 * *ready and lists in ret_fds (CSN_KEEPER_FDS_MAX) the descriptors that READY carries;
 * kp_net_release closes them. On failure *failed says at which step. */
int kp_net_build(kp_keeper *k, csn_ready_msg *ready, int *ret_fds, size_t *ret_count,
                 csn_failed_msg *failed);
void kp_net_release(void);
int kp_net_watch(kp_keeper *k);  /* adds the link to the epoll set, if there is one */
void kp_net_serve(kp_keeper *k); /* the link is readable */

/* name_stub.c. Opens the resolver's socket; call it in the network of the jail, while the
 * keeper may bind to port 53. */
void kp_names_open(kp_keeper *k);
int kp_names_watch(kp_keeper *k);  /* adds it to the epoll set, if there is one */
void kp_names_serve(kp_keeper *k); /* it is readable */
/* Since kp_unrouted_begin(job), did a process try to reach an address outside? In a jail
 * without a network the kernel counts packets for which it has no route, and does not tell
 * where they were to go. Not known after a quick success. */
void kp_unrouted_begin(const kp_keeper *k, kp_job *job);
bool kp_unrouted_since(kp_keeper *k, const kp_job *job);

/* sweep.c. Removes the socket and the directories of the spec. */
void kp_sweep_listed(const csn_keeper_spec *spec);
int kp_sweeper_run(const csn_keeper_spec *spec);

/* meter.c. Checks the memory limit of the spec. Returns the time of the next check; 0: none. */
uint64_t kp_meter_tick(kp_keeper *k, uint64_t now);
/* Kills the command that has written the most with its tree; everything, if all: one killed
 * before did not help. why: CSN_KILLED_*. */
void kp_meter_kill_writer(kp_keeper *k, uint32_t why, bool all);

/* disk_meter.c. Prepares what the spec orders, whose strings are gone afterwards. 0 or
 * -errno. */
int kp_disk_meter_open(kp_keeper *k);
uint64_t kp_disk_meter_tick(kp_keeper *k, uint64_t now); /* as kp_meter_tick */

/* serve.c */
int kp_serve(kp_keeper *k);
void *kp_object_new(kp_keeper *k, size_t size); /* zeroed; NULL: no memory */
void kp_object_free(kp_keeper *k, void *object);
void kp_free_later(kp_keeper *k, kp_link *item); /* after this batch of events */
/* On failure the descriptor is in *w as well; kp_watch_close closes it. */
int kp_watch_open(kp_keeper *k, kp_watch *w, kp_watch_kind kind, int fd, void *owner);
void kp_watch_close(kp_keeper *k, kp_watch *w);  /* closes the descriptor */
int kp_watch_release(kp_keeper *k, kp_watch *w); /* returns the descriptor */
/* Replies never block: one that does not fit into the channel is dropped. */
void kp_reply(int channel, csn_msg_type type, const void *msg);
void kp_reply_error(int channel, int errnum, csn_stage stage);

/* A decoded request. The event loop closes the channel and the descriptors of `m` that the
 * handler did not take. */
typedef struct kp_request {
    csn_msg *m;
    int channel;
    csn_any_request body;
} kp_request;

/* A handler returns 0 (the loop replies DONE), -errno (the loop replies ERROR), or KP_REPLIED
 * (the handler has replied or will). */
#define KP_REPLIED 1

/* start_command.c */
typedef struct kp_child {
    const csn_spawn_msg *spawn;
    int cwd, in, out, err; /* -1: the keeper's own; cwd: the path in spawn */
    int ctl;               /* session: becomes descriptor 9; otherwise -1 */
    int sockets;           /* see os/socket_divert.h; -1: not diverted */
    const char *file;      /* the program; NULL: search for argv[0] */
    const kp_keeper *k;    /* this and the members below are set by kp_job_start */
    uint64_t tag;
    uint32_t stage, errnum; /* why it failed before exec */
} kp_child;

/* Starts the child of a job. False: see stage and errnum. */
bool kp_job_start(kp_keeper *k, kp_job *job, kp_child *c);
int kp_spawn_serve(kp_keeper *k, kp_request *r);
void kp_kept_channel_read(kp_keeper *k, kp_job *job); /* it is readable or hung up */

/* pause.c */
int kp_pause_serve(kp_keeper *k, kp_request *r);
uint64_t kp_pause_tick(kp_keeper *k, uint64_t now);

/* jobs.c */
kp_job *kp_job_new(kp_keeper *k, kp_job_kind kind); /* in the list; NULL: see errno */
void kp_job_free(kp_keeper *k, kp_job *job);        /* closes its descriptors */
void kp_job_reuse(kp_keeper *k, kp_job *job);       /* a kept channel gets its next command */
kp_job *kp_job_find(kp_keeper *k, int64_t pid);     /* a background job, running or ended */
void kp_jobs_reap(kp_keeper *k);    /* reaps all children, finishes their jobs */
void kp_jobs_collect(kp_keeper *k); /* reaps only: frees no job */
/* The child is reaped and the tree, if it was killed, is gone. May free the job. */
void kp_job_finish(kp_keeper *k, kp_job *job);
/* True: no process is left, because in a pid namespace all orphans become children of the
 * keeper. */
bool kp_has_no_children(void);
/* keep: the channel stays open for the next command. */
void kp_job_send_exit(kp_keeper *k, const kp_job *job, uint32_t stage, uint32_t errnum,
                      bool keep);
void kp_job_channel_read(kp_keeper *k, kp_job *job); /* it is readable or hung up */
void kp_stream_read(kp_keeper *k, kp_stream *s);
uint64_t kp_job_tick(kp_keeper *k, kp_job *job, uint64_t now); /* returns the next time */
uint64_t kp_next_tag(kp_keeper *k);
int kp_drain_serve(kp_keeper *k, kp_request *r);
void kp_drain_add(kp_keeper *k, int fd);       /* owns fd */
void kp_drain_read(kp_keeper *k, kp_watch *w); /* reads from any watch and discards */

/* deferred_replies.c */
int kp_processes_serve(kp_keeper *k, kp_request *r);
int kp_logs_serve(kp_keeper *k, kp_request *r);
int kp_signal_serve(kp_keeper *k, kp_request *r);
int kp_feed_serve(kp_keeper *k, kp_request *r);
int kp_resize_serve(kp_keeper *k, kp_request *r);
/* Takes ownership of the request's channel, and of w->name even on failure. Returns KP_REPLIED,
 * or -EAGAIN if there are too many waiters. */
int kp_waiter_add(kp_keeper *k, kp_request *r, const kp_waiter *w);
void kp_waiter_free(kp_keeper *k, kp_waiter *w);
void kp_waiters_notify(kp_keeper *k, int64_t pid); /* its state or output has changed */
uint64_t kp_waiter_tick(kp_keeper *k, kp_waiter *w, uint64_t now);

/* treekill.c */
void kp_job_kill(kp_keeper *k, kp_job *job, uint64_t grace_ms);
uint64_t kp_kill_tick(kp_keeper *k, kp_job *job, uint64_t now); /* 0: nothing to do */
ssize_t kp_job_signal_tree(kp_keeper *k, const kp_job *job, int signo);
void kp_kill_everything(kp_keeper *k);

/* session.c */
int kp_session_serve(kp_keeper *k, kp_request *r);
void kp_session_idle(kp_keeper *k, kp_session *s);   /* its user has released it */
void kp_session_detach(kp_keeper *k, kp_session *s); /* frees its name for a new shell */
void kp_session_free(kp_keeper *k, kp_session *s);
/* The shell has written a status that its caller has not read yet. */
bool kp_session_has_status(const kp_session *s);
