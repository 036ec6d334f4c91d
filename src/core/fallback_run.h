/* fallback_run.h: what the derived operations share: running a script, reading its verdict. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "core/fallback.h"

#define CSN_DERIVE_ARGS 6

/* One script on its way through a backend's exec. Zero it, set the first part, run it. */
typedef struct csn_derive_job {
    const csn_fs *fs;
    const char *script;                /* appended to the prelude */
    const char *args[CSN_DERIVE_ARGS]; /* $1 ...; NULL ends */
    unsigned paths;                    /* how many of the first args are paths: 0 to 2 */
    const csn_source *input;           /* or NULL */
    bool reads;                        /* it changes nothing */
    /* Gets stdout; returns CSN_SINK_*. NULL: it is collected in `text`. */
    int (*out)(void *ctx, const void *data, size_t len);
    void *out_ctx;

    csn_buf text;     /* release it */
    char words[2048]; /* the end of what the script said on stderr */
    size_t words_len;
    int exit_code;
    bool stopped; /* by `out`: how the command ended says nothing then */
} csn_derive_job;

static inline void csn_derive_job_release(csn_derive_job *j)
{
    csn_buf_release(&j->text);
}
#define csn_autojob CSN_CLEANUP(csn_derive_job_release) csn_derive_job

/* Fails when the backend could not run it; what the script itself says is in the job. */
csn_status csn_derive_run(csn_derive_job *j, csn_error **err);
/* What the script's exit code, or else its words, say about `verb` on `path`. */
csn_status csn_derive_verdict(const csn_derive_job *j, const char *verb, const char *path,
                              csn_error **err);
/* run, then verdict */
csn_status csn_derive_do(csn_derive_job *j, const char *verb, const char *path,
                         csn_error **err);
/* An errno for a path, in the words that callers know ("File 'x' not found"). */
csn_status csn_derive_fail(int errnum, const char *verb, const char *path, csn_error **err);

/* The form that scripts take: absolute, no empty and no `.` components, no slash at the end
 * (`..` stays: it is the kernel's to resolve). *ret_dir: it was named as a directory. malloc'd.
 */
csn_status csn_derive_path(const char *verb, const char *path, char **ret, bool *ret_dir,
                           csn_error **err);

/* The slash back that says "directory", for tools that the kernel answers. Returns path. */
char *csn_derive_slash(char *path, bool dir);

/* The fields of one record ("s81a4 5 ..." up to its slash); false: not understood. */
bool csn_derive_fields(const char *s, size_t len, csn_file_stat *ret);

/* Exit codes of the scripts, as text for their own use. Numbers that tools do not use. */
#define CSN_SH_NOENT    "101"
#define CSN_SH_EXIST    "102"
#define CSN_SH_NOTDIR   "103"
#define CSN_SH_ISDIR    "104"
#define CSN_SH_NOTREG   "105"
#define CSN_SH_NOTEMPTY "106"
#define CSN_SH_ACCES    "107"
#define CSN_SH_LOOP     "108"
#define CSN_SH_INVAL    "109"
#define CSN_SH_SHORT    "110" /* fewer or more bytes arrived than were sent */
#define CSN_SH_UNSUP    "111"
#define CSN_SH_INTR     "112"
#define CSN_SH_LINK     "114" /* a symlink where none may be */
#define CSN_SH_WORDS    "113" /* the tool's own message, in the C locale, says it */
