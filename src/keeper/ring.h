/* ring.h: the newest bytes of a stream, addressed by their offset in it. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct kp_ring {
    uint8_t *mem; /* mapped at the first byte */
    size_t cap;
    uint64_t total; /* bytes ever read */
} kp_ring;

void kp_ring_init(kp_ring *r, size_t cap);
void kp_ring_release(kp_ring *r);
size_t kp_ring_kept(const kp_ring *r);
/* Reads once from fd into the ring, over the oldest bytes. As read(): bytes, 0, or -errno. */
ssize_t kp_ring_fill(kp_ring *r, int fd);
/* Copies up to max bytes from `offset` on. *ret_offset is where they start: later than
 * requested if older bytes were overwritten, the total if there are none yet. */
size_t kp_ring_copy(const kp_ring *r, uint64_t offset, void *buf, size_t max,
                    uint64_t *ret_offset);
