/* ring.c: keeps the newest bytes of a stream.
 *
 * Each output stream of a background process has a ring. It keeps the newest `cap` bytes,
 * counts all bytes, and reads from the pipe directly into its memory. The memory is mapped with
 * MAP_NORESERVE at the first byte, so a silent process costs nothing. */
#include "keeper/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define FILL_MAX (256u * 1024u) /* bytes of one read, so that other events are handled */

void kp_ring_init(kp_ring *r, size_t cap)
{
    *r = (kp_ring){.cap = cap > 0 ? cap : 1};
}

void kp_ring_release(kp_ring *r)
{
    if (r->mem)
        munmap(r->mem, r->cap);
    *r = (kp_ring){.cap = 1, .total = r->total};
}

size_t kp_ring_kept(const kp_ring *r)
{
    if (!r->mem)
        return 0;
    return r->total < r->cap ? (size_t)r->total : r->cap;
}

ssize_t kp_ring_fill(kp_ring *r, int fd)
{
    if (!r->mem) {
        void *m = mmap(NULL, r->cap, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED)
            return -ENOMEM;
        r->mem = m;
    }
    size_t at = (size_t)(r->total % r->cap);
    size_t want = r->cap < FILL_MAX ? r->cap : FILL_MAX;
    size_t first = r->cap - at < want ? r->cap - at : want;
    struct iovec iov[2] = {{r->mem + at, first}, {r->mem, want - first}};
    ssize_t n;

    do
        n = readv(fd, iov, want > first ? 2 : 1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    r->total += (uint64_t)n;
    return n;
}

size_t kp_ring_copy(const kp_ring *r, uint64_t offset, void *buf, size_t max,
                    uint64_t *ret_offset)
{
    uint64_t oldest = r->total - kp_ring_kept(r);

    if (offset < oldest)
        offset = oldest;
    if (offset > r->total)
        offset = r->total;
    size_t n = r->total - offset < max ? (size_t)(r->total - offset) : max;
    *ret_offset = offset;
    if (n == 0) /* nothing new, or a ring that was never opened: a terminal has one stream */
        return 0;
    size_t at = (size_t)(offset % r->cap);
    size_t first = r->cap - at < n ? r->cap - at : n;
    if (first > 0)
        memcpy(buf, r->mem + at, first);
    if (n > first)
        memcpy((uint8_t *)buf + first, r->mem, n - first);
    return n;
}
