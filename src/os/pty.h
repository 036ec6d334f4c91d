/* pty.h: pseudo-terminals. Functions return 0 or -errno. */
#pragma once
#include <stdint.h>

/* Opens a terminal of the given size (0: 24 x 80). Both descriptors are close-on-exec; the
 * slave is not a controlling terminal. */
int csn_pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave);
int csn_pty_resize(int master, uint16_t rows, uint16_t cols);
