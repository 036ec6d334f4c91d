/* fallback_run.h: runs the script of a derived operation and maps its exit code. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "core/fallback.h"

#define CSN_DERIVE_ARGS 6

/* One run of a script. Zero the struct, set the fields up to out_ctx, run it, release it. */
typedef struct csn_derive_job {
    const csn_fs *fs;
    const char *script;                /* appended to the prelude */
    const char *args[CSN_DERIVE_ARGS]; /* $1 ...; NULL ends */
    unsigned paths;                    /* how many of the first args are paths: 0 to 2 */
    const csn_source *input;           /* or NULL */
    bool reads;                        /* the script changes nothing */
    /* Receives stdout and returns CSN_SINK_*. NULL: stdout is collected in `text`. */
    int (*out)(void *ctx, const void *data, size_t len);
    void *out_ctx;

    csn_buf text;           /* release it */
    char stderr_tail[2048]; /* the end of stderr */
    size_t stderr_len;
    int exit_code;
    bool stopped; /* by `out`; the exit code is then meaningless */
} csn_derive_job;

static inline void csn_derive_job_release(csn_derive_job *j)
{
    csn_buf_release(&j->text);
}
#define csn_autojob CSN_CLEANUP(csn_derive_job_release) csn_derive_job

/* Fails if the backend could not run the script. The result of the script is in the job. */
csn_status csn_derive_run(csn_derive_job *j, csn_error **err);
/* Maps the exit code, or the message on stderr, to an error of `verb` on `path`. */
csn_status csn_derive_verdict(const csn_derive_job *j, const char *verb, const char *path,
                              csn_error **err);
/* csn_derive_run, then csn_derive_verdict. */
csn_status csn_derive_do(csn_derive_job *j, const char *verb, const char *path,
                         csn_error **err);
/* The error for errno and a path ("File 'x' not found"). */
csn_status csn_derive_fail(int errnum, const char *verb, const char *path, csn_error **err);

/* Normalises a path for scripts: removes empty and `.` components and the final slash. `..`
 * stays: only the kernel can resolve it. *ret_dir: the path can only be a directory.
 * malloc'd. */
csn_status csn_derive_path(const char *verb, const char *path, char **ret, bool *ret_dir,
                           csn_error **err);

/* Appends the final slash again if `dir`. Returns path. */
char *csn_derive_slash(char *path, bool dir);

/* Parses the fields of one record ("s81a4 5 ..." up to its slash). Returns false if
 * malformed. */
bool csn_derive_fields(const char *s, size_t len, csn_file_stat *ret);

/* Exit codes of the scripts, as text to insert into them. The tools do not use these
 * numbers. */
#define CSN_SH_NOENT    "101"
#define CSN_SH_EXIST    "102"
#define CSN_SH_NOTDIR   "103"
#define CSN_SH_ISDIR    "104"
#define CSN_SH_NOTREG   "105"
#define CSN_SH_NOTEMPTY "106"
#define CSN_SH_ACCES    "107"
#define CSN_SH_LOOP     "108"
#define CSN_SH_INVAL    "109"
#define CSN_SH_SHORT    "110" /* the number of bytes that arrived is wrong */
#define CSN_SH_UNSUP    "111"
#define CSN_SH_INTR     "112"
#define CSN_SH_LINK     "114" /* a symlink in a path that may contain none */
#define CSN_SH_STDERR   "113" /* the message on stderr gives the error */
