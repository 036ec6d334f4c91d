/* pty.c: opens and sizes a pseudo-terminal.
 *
 * The size is set before a program opens the terminal: 0 x 0 breaks editors and pagers. The
 * slave is opened through the master (TIOCGPTPEER): in a sandbox its name may refer to another
 * terminal. */
#include "os/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

#define ROWS_DEFAULT 24
#define COLS_DEFAULT 80

int csn_pty_resize(int master, uint16_t rows, uint16_t cols)
{
    struct winsize ws = {.ws_row = rows ? rows : ROWS_DEFAULT,
                         .ws_col = cols ? cols : COLS_DEFAULT};

    return ioctl(master, TIOCSWINSZ, &ws) < 0 ? -errno : 0;
}

int csn_pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave)
{
    csn_autofd int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -errno;
    int rc = csn_pty_resize(master, rows, cols);
    if (rc < 0)
        return rc;
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -errno;
    *ret_slave = slave;
    *ret_master = csn_steal_fd(&master);
    return 0;
}
