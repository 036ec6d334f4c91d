/* input.h: reads a descriptor of the caller without waiting for it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct csn_input {
    int fd; /* to poll for POLLIN; -1: none */
    /* private */
    int own; /* the terminal, opened again; or -1 */
    bool terminal, socket, splices;
    uint64_t retry_ns; /* a background process reads its terminal again then; 0: now */
} csn_input;

#define CSN_INPUT_NONE ((csn_input){.fd = -1, .own = -1})

/* Borrows `fd` until csn_input_close. 0 or -errno: the descriptor cannot be read. */
int csn_input_open(csn_input *in, int fd);
void csn_input_close(csn_input *in);

/* True if bytes move with csn_input_splice, otherwise with csn_input_read. */
bool csn_input_splices(const csn_input *in);
/* Both are called after poll and return the number of bytes, 0 at the end of the input, or
 * -errno; -EAGAIN: poll again. `to`: a pipe or a file; a pipe that is full or has no reader
 * gives -EAGAIN and -EPIPE, and no SIGPIPE. */
ssize_t csn_input_splice(csn_input *in, int to, size_t max);
ssize_t csn_input_read(csn_input *in, void *buf, size_t len);
