/* commit_content.c: reads, compares and copies the content of files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/commit_internal.h"
#include "layers/entry.h"
#include "os/atomic.h"

#define BLOCK (128u * 1024u)

/* As pread, without interruptions and with all bytes up to the end of the file. */
static ssize_t read_at(int fd, char *buf, size_t len, off_t at)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, buf + done, len - done, at + (off_t)done);
        if (n == 0)
            break;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return (ssize_t)done;
}

int csn_content_read(int fd, size_t max, csn_buf *ret)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size > max)
        return -EFBIG;
    csn_buf_init(ret, max + 1);
    /* One byte more than allowed tells that the file grew. */
    if (csn_buf_reserve(ret, (size_t)st.st_size + 1) != 0)
        return -ENOMEM;
    ssize_t n = read_at(fd, ret->data, ret->cap - 1, 0);
    if (n < 0 || (size_t)n > max) {
        csn_buf_release(ret);
        return n < 0 ? (int)n : -EFBIG;
    }
    ret->len = (size_t)n;
    ret->data[ret->len] = '\0';
    return 0;
}

int csn_content_equal(int a, int b)
{
    csn_autofree char *buf = malloc(CSN_ENTRY_BUFFER);

    if (!buf)
        return -ENOMEM;
    if (lseek(a, 0, SEEK_SET) < 0 || lseek(b, 0, SEEK_SET) < 0)
        return -errno;
    return csn_entry_same_content(a, b, buf);
}

/* Some file systems share the blocks, others copy them without a way through this process. */
static ssize_t copy_in_kernel(int from, int to, off_t at, off_t end)
{
    off_t out = at;

    return copy_file_range(from, &at, to, &out, (size_t)(end - at), 0);
}

/* Copies [at, end); *at is where the file ended if it is shorter. */
static int copy_range(int from, int to, char *buf, off_t *at, off_t end)
{
    ssize_t copied;

    while (*at < end && (copied = copy_in_kernel(from, to, *at, end)) > 0)
        *at += copied;
    /* What is left: the end of a file that became shorter, or all if the kernel cannot. */
    if (lseek(to, *at, SEEK_SET) < 0)
        return -errno;
    while (*at < end) {
        size_t want = end - *at < (off_t)BLOCK ? (size_t)(end - *at) : BLOCK;
        ssize_t n = read_at(from, buf, want, *at);
        int rc = n < 0 ? (int)n : csn_write_full(to, buf, (size_t)n, NULL);
        if (rc < 0)
            return rc;
        if (n == 0)
            break;
        *at += n;
    }
    return 0;
}

int csn_content_copy(int from, int to)
{
    csn_autofree char *buf = malloc(BLOCK);
    struct stat st;
    off_t at = 0;

    if (!buf)
        return -ENOMEM;
    if (fstat(from, &st) < 0)
        return -errno;
    if (st.st_size == 0 || ioctl(to, FICLONE, from) == 0)
        return 0;
    while (at < st.st_size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        if (data < 0)
            data = at; /* the file system does not know holes */
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || hole > st.st_size)
            hole = st.st_size;
        at = data;
        int rc = copy_range(from, to, buf, &at, hole);
        if (rc < 0)
            return rc;
        if (at < hole)
            break;
    }
    return ftruncate(to, st.st_size) < 0 ? -errno : 0;
}
