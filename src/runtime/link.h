/* link.h: the library's side of the connection to a keeper, for the files of this directory and
 * for the jail backend. */
#pragma once
#include "keeper/protocol.h"
#include "os/pump.h"
#include "runtime/runtime.h"

#define CSN_KEEPER_SOCKET "sock" /* in the runtime directory of a detached sandbox */

/* find_program.c. For tests, which are not next to the keeper: use this program. Not locked. */
void csn_keeper_path_set(const char *path);
/* Paths of our programs, malloc'd. */
csn_status csn_program_find(const char *name, char **ret, csn_error **err);
csn_status csn_keeper_find(char **ret, csn_error **err);

/* keeper_process.c. Starts the keeper's program with a connection to us; name and id are its
 * argv. listener: the socket of a detached sandbox; -1: the program ends with this process. */
csn_status csn_keeper_start_begin(csn_keeper_start *s, const char *name, const char *id,
                                  const csn_spawn_namespaces *ns, int listener,
                                  int *ret_control, csn_error **err);
int csn_keeper_start_finish(csn_keeper_start *s, pid_t *ret_pid, int *ret_pidfd,
                            enum csn_spawn_stage *ret_stage);
/* The first message that it must get. 0 or -errno. */
int csn_keeper_send_spec(int control, const csn_keeper_spec *spec);
bool csn_runtime_keeper_is_dead(const csn_runtime *rt);
/* With SIGKILL, because it may be stopped; and everything it holds. */
void csn_runtime_kill_keeper(csn_runtime *rt);
/* Kills commands that a dead keeper has left. */
void csn_runtime_sweep_commands(const csn_runtime *rt);

/* link.c. Sends a request, after starting the keeper if it does not run yet, and returns the
 * channel of its replies. `msg` is the struct of the type (keeper/protocol.h) or NULL. The
 * descriptors stay the caller's. */
csn_status csn_link_ask(csn_runtime *rt, csn_msg_type type, const void *msg, const int *fds,
                        size_t nfds, int *ret_channel, csn_error **err);
/* The same for a keeper that is known to run. */
csn_status csn_link_send(csn_runtime *rt, csn_msg_type type, const void *msg, const int *fds,
                         size_t nfds, int *ret_channel, csn_error **err);
/* The next message on a channel. ERROR messages are returned like any other. A keeper that is
 * silent until the deadline (0: CSN_KEEPER_ANSWER_MS from now) is killed. Release the message.
 */
csn_status csn_link_answer(csn_runtime *rt, int channel, uint64_t deadline_ns, void *buf,
                           size_t size, csn_msg *ret, csn_error **err);
/* One request without descriptors and its one reply, which must be of type `want` and is
 * decoded into *reply (NULL: it has no fields). An ERROR reply is CSN_OK with its errno in
 * *ret_errno; otherwise that is 0. */
csn_status csn_link_call(csn_runtime *rt, csn_msg_type type, const void *msg, csn_msg_type want,
                         void *reply, int *ret_errno, csn_error **err);
/* The same for a reply that comes up to wait_ms later, carries descriptors, or borrows from the
 * message: *m uses buf and is to be released if *ret_errno is 0. */
csn_status csn_link_call_long(csn_runtime *rt, csn_msg_type type, const void *msg,
                              uint64_t wait_ms, csn_msg_type want, void *reply, void *buf,
                              size_t size, csn_msg *m, int *ret_errno, csn_error **err);
/* Does the keeper answer? One that does not is killed. */
csn_status csn_link_check(csn_runtime *rt, csn_error **err);
/* When the keeper will end by itself, since the epoch; 0: never. */
csn_status csn_link_expiry(csn_runtime *rt, int64_t *ret_ms, csn_error **err);
/* The keeper hung up: CSN_GONE if it was expected to end, else CSN_UNAVAILABLE. Sweeps the
 * commands of a keeper that was killed. */
csn_status csn_link_lost(csn_runtime *rt, csn_error **err);
/* After a path was looked up in the keeper's mounts, with result st: st, or csn_link_lost when
 * the keeper did not live until the end of the lookup. */
csn_status csn_link_check_alive(csn_runtime *rt, csn_status st, csn_error **err);
/* The keeper broke the protocol: kills it with all it holds. */
csn_status csn_link_hostile(csn_runtime *rt, const char *what, csn_error **err);

/* environ.c: the sandbox's variables, then the call's, then PWD; each name once. `extra` and
 * `pwd` may be NULL. Pointers borrow; the array is malloc'd. PWD's text goes to *ret_pwd. */
csn_status csn_runtime_environ_merge(const csn_runtime *rt, const char *const *extra,
                                     const char *pwd, const char ***ret, char **ret_pwd,
                                     csn_error **err);

/* exec.c, used by session.c and process.c too */
/* Descriptor and environment of a command: cwd_fd, env and pwd are to be released. */
typedef struct csn_runtime_command_env {
    int cwd_fd;
    char *cwd_path; /* resolved; NULL when the kernel does not say */
    char *pwd;
    const char **env;
} csn_runtime_command_env;

csn_status csn_runtime_command_env_make(csn_runtime *rt, const csn_exec_req *req,
                                        csn_runtime_command_env *ret, csn_error **err);
void csn_runtime_command_env_release(csn_runtime_command_env *s);
/* SPAWN with the fields that foreground and background commands share. An option of a call that
 * reaches the child is filled in here. */
csn_spawn_msg csn_runtime_spawn_msg(const csn_runtime *rt, const csn_exec_req *req,
                                    const csn_runtime_command_env *set);
/* It was a limit: `what` names it, peak 0 is not told. */
void csn_runtime_end_limit(csn_exec_end *end, uint32_t how, const char *what, uint64_t limit,
                           uint64_t peak);
/* Fills how, exit_code, signal, message and usage from what the keeper said. */
void csn_runtime_end_fill(const csn_runtime *rt, const csn_exit_msg *b, const char *argv0,
                          csn_exec_end *ret);
/* After the end: moves what is left of the output, waits CSN_DRAIN_MS for others that hold the
 * pipes and then leaves these to the keeper. */
void csn_runtime_drain(csn_runtime *rt, csn_pump *p);
/* Text of a failed start: "cmd: command not found\n", or "Error: ...". Returns the exit code.
 */
int csn_runtime_spawn_text(uint32_t stage, int errnum, const char *argv0, char *text,
                           size_t size);

/* session.c */
csn_status csn_runtime_session_exec(csn_runtime *rt, const csn_exec_req *req,
                                    const csn_sink *sink, csn_exec_end *ret, csn_error **err);
