/* originals_pending.c: remembers which originals a commit is about to replace.
 *
 * A commit that is killed can be completed by a process that knows nothing of the sandbox. Its
 * originals are then those from before the commit, and each later change of the same files
 * would look like a conflict with the host. The list is written before the commit and removed
 * after its originals are kept; where it is found, the next use of the sandbox keeps them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "layers/originals.h"
#include "os/atomic.h"

#define PENDING "pending" /* paths, each with its NUL */

int csn_originals_intend(int dir, const csn_commit_plan *plan)
{
    csn_temp t = CSN_TEMP_NONE;
    csn_autobuf b;

    csn_buf_init(&b, CSN_JOURNAL_BYTES_MAX);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->v[i].verdict == CSN_COMMIT_APPLY)
            (void)csn_buf_append(&b, plan->v[i].change->path,
                                 strlen(plan->v[i].change->path) + 1);
    int rc = b.err != 0 ? -b.err : csn_temp_create(&t, dir, 0600);
    if (rc == 0)
        rc = csn_write_full(t.fd, b.data ? b.data : "", b.len, NULL);
    if (rc == 0)
        rc = csn_temp_publish(&t, dir, PENDING, 0);
    csn_temp_drop(&t, dir);
    return rc;
}

void csn_originals_intend_end(int dir)
{
    (void)unlinkat(dir, PENDING, 0);
}

/* The list, malloc'd and with a NUL more; NULL: there is none, or it cannot be read. */
static char *read_list(int dir, size_t *ret_len)
{
    csn_autofd int fd = openat(dir, PENDING, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > CSN_JOURNAL_BYTES_MAX)
        return NULL;
    csn_autofree char *list = calloc(1, (size_t)st.st_size + 1);
    if (!list || pread(fd, list, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
        return NULL;
    *ret_len = (size_t)st.st_size;
    return CSN_STEAL(list);
}

static bool is_changed(const csn_layer_changes *changes, const char *path)
{
    for (size_t i = 0; i < changes->count; i++)
        if (strcmp(changes->v[i].path, path) == 0)
            return true;
    return false;
}

csn_status csn_originals_settle(int dir, const csn_layer_stack *stack, csn_error **err)
{
    csn_layer_changes changes = {0};
    size_t len = 0;
    csn_autofree char *list = read_list(dir, &len);

    if (!list)
        return CSN_OK;
    csn_status st = csn_layer_changes_list(stack, NULL, &changes, err);
    for (const char *p = list; st == CSN_OK && p < list + len; p += strlen(p) + 1)
        if (!is_changed(&changes, p)) /* it was committed: both sides are equal */
            (void)csn_original_replace(dir, stack->base, p);
    csn_layer_changes_release(&changes);
    if (st == CSN_OK)
        csn_originals_intend_end(dir);
    return st;
}
