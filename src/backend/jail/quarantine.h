/* quarantine.h: moves a file out of a workspace to where no program runs it. */
#pragma once
#include <stdint.h>

typedef struct csn_quarantine_use {
    uint64_t files, bytes;
} csn_quarantine_use;

typedef struct csn_quarantine {
    int fd;     /* directory of this sandbox, created on demand; or -1 */
    char *path; /* of that directory */
    unsigned next;
    csn_quarantine_use own, all; /* what this sandbox and all of them have stored */
    uint64_t copy_ns;            /* time spent on copying */
} csn_quarantine;

/* Takes `name` out of use: moves it to the store, or, if it cannot be kept there (limits, time,
 * its type), renames it in `dir` to a hidden name that no program looks for, with mode 000.
 * `from` (its path and the reason) is stored with it. *ret_path: its new path, malloc'd, or
 * NULL if unknown. 0 or -errno; -ENOENT: it did not exist; after any other error it is still
 * there. */
int csn_quarantine_file(csn_quarantine *q, const char *id, int dir, const char *name,
                        const char *from, char **ret_path);
void csn_quarantine_release(csn_quarantine *q);
