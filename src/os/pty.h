/* pty.h: pseudo-terminals. Functions return 0 or -errno. */
#pragma once
#include <stdint.h>

/* Opens a terminal of the given size (0: 24 x 80). Both descriptors are close-on-exec; the
 * slave is not a controlling terminal. */
int csn_pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave);
/* The same on the devpts of another root directory, whose content is not trusted. -ENODEV: it
 * has none. */
int csn_pty_open_at(int root_fd, uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave);
int csn_pty_resize(int master, uint16_t rows, uint16_t cols);
