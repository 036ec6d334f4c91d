/* quarantine.h: moves a file out of a workspace to where no program runs it. */
#pragma once

typedef struct csn_quarantine {
    int fd;     /* directory of this sandbox, created on demand; or -1 */
    char *path; /* of that directory */
    unsigned next;
} csn_quarantine;

/* Moves `name`, which must not be a directory, out of `dir`. `from` (its path and the reason)
 * is stored with it. *ret_path: its new path, malloc'd, or NULL if unknown. 0 or -errno;
 * -ENOENT: it did not exist; after any other error it is still there. */
int csn_quarantine_file(csn_quarantine *q, const char *id, int dir, const char *name,
                        const char *from, char **ret_path);
void csn_quarantine_release(csn_quarantine *q);
