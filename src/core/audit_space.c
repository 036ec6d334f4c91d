/* audit_space.c: keeps disk space free for the lines of operations in flight.
 *
 * Another process can take the blocks between their release and the write of the line. The line
 * is then missing, and the count in the head file reports it. */
#include "core/audit_space.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

#define FILE_NAME "reserve"

static int open_space(csn_audit_space *s, const csn_audit_place *p, bool shared, int head_fd)
{
    if (s->fd >= 0)
        return 0;
    if (!shared) {
        s->fd = head_fd;
        s->text = CSN_AUDIT_HEAD_SIZE;
        return 0;
    }
    int fd = csn_audit_open_at(p, FILE_NAME, O_RDWR | O_CREAT);
    if (fd < 0)
        return -fd;
    s->fd = fd;
    s->owned = true;
    return 0;
}

int csn_audit_space_reserve(csn_audit_space *s, const csn_audit_place *p, bool shared,
                            int head_fd)
{
    struct statx st;
    int rc = open_space(s, p, shared, head_fd);

    if (rc != 0 || s->fd < 0 || s->unsupported)
        return rc;
    if (statx(s->fd, "", AT_EMPTY_PATH, STATX_BLOCKS | STATX_NLINK, &st) < 0)
        return errno;
    if (s->owned && st.stx_nlink == 0) { /* removed with the directory: make it again */
        csn_audit_space_close(s);
        rc = open_space(s, p, shared, head_fd);
        st.stx_blocks = 0;
    }
    if (rc != 0 || st.stx_blocks * 512 >= CSN_AUDIT_SPACE)
        return rc;
    if (fallocate(s->fd, FALLOC_FL_KEEP_SIZE, 0, CSN_AUDIT_SPACE) == 0)
        return 0;
    s->unsupported = errno == EOPNOTSUPP || errno == ENOSYS;
    return s->unsupported ? 0 : errno;
}

bool csn_audit_space_release(csn_audit_space *s)
{
    struct statx st;

    return s->fd >= 0 && statx(s->fd, "", AT_EMPTY_PATH, STATX_BLOCKS, &st) == 0 &&
           st.stx_blocks * 512 > (uint64_t)s->text + 4096 && ftruncate(s->fd, s->text) == 0;
}

void csn_audit_space_close(csn_audit_space *s)
{
    if (s->owned && s->fd >= 0)
        close(s->fd);
    *s = (csn_audit_space){.fd = -1};
}
