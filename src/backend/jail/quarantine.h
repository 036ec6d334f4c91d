/* quarantine.h: taking a file out of a workspace, to where nothing runs it. */
#pragma once
#include <sys/stat.h>

typedef struct csn_quarantine {
    int fd;     /* of the directory for this sandbox, made when it is needed; -1 */
    char *path; /* likewise */
    unsigned next;
} csn_quarantine;

/* Takes `name`, which is no directory, out of the held directory `dir`. `from` (where it was,
 * and why it is not there any more) is kept beside it. *ret_path: where it is now; malloc'd,
 * NULL when that is not known. 0 or -errno: -ENOENT it was gone already, anything else: it is
 * still there. */
int csn_quarantine_file(csn_quarantine *a, const char *id, int dir, const char *name,
                        const char *from, char **ret_path);
void csn_quarantine_release(csn_quarantine *a);
