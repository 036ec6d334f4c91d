/* internal.h: functions that the files of src/remote share. */
#pragma once
#include "remote/remote.h"

/* The environment variable that identifies a command. Its descendants inherit it, so the whole
 * tree can be found and killed, whatever process groups and sessions its members are in. */
#define CSN_REMOTE_ID_VAR "CAISSON_MARK"

/* lifecycle.c: opens the directory of the record. A descriptor, or -errno; -ENOENT: no
 * record. */
int csn_remote_record_dir(const csn_remote *r, bool create);

/* shell.c: a command with its shell wrapper. Zero it before use; release it afterwards. */
typedef struct csn_remote_wrapper {
    char exec_id[32]; /* random unless set by the caller */
    char input[64];   /* path of a file that becomes stdin; "": none */
    bool base64;      /* the output is a csn_base64_stream */
    csn_buf program;  /* shell text */
    char **argv;
    const char **env; /* the strings belong to the request */
} csn_remote_wrapper;

/* small_input: stdin to embed in the program; or NULL. */
csn_status csn_remote_wrapper_build(csn_remote_wrapper *w, const csn_exec_req *req,
                                    const csn_buf *small_input, csn_error **err);
void csn_remote_wrapper_release(csn_remote_wrapper *w);

/* exec.c: ends every process with this id: SIGTERM, 200 ms, SIGKILL. */
void csn_remote_kill(csn_remote *r, const char *exec_id);

/* ripgrep.c: sets r->rg_path if the sandbox has ripgrep or it could be uploaded. */
void csn_remote_install_ripgrep(csn_remote *r);

/* process.c: the directory in the sandbox that holds one subdirectory per process. */
void csn_remote_process_dir(const csn_remote *r, char *buf, size_t size);
/* As csn_process_ops.start and release_tied. */
csn_status csn_remote_start(void *state, const csn_exec_req *req, uint64_t output_max,
                            int64_t *ret_pid, void **ret_tie, csn_error **err);
void csn_remote_release_tied(void *tie);
