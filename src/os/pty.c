/* pty.c: opens and sizes a pseudo-terminal.
 *
 * The size is set before a program opens the terminal: 0 x 0 breaks editors and pagers. The
 * slave is opened through the master (TIOCGPTPEER): in a sandbox its name may refer to another
 * terminal. */
#include "os/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
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

/* Takes ownership of the master. */
static int open_slave(int opened, uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave)
{
    csn_autofd int master = opened;
    int unlocked = 0;

    if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
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

int csn_pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    return master < 0 ? -errno : open_slave(master, rows, cols, ret_master, ret_slave);
}

/* The file system is checked: the node of another one could be any device. */
int csn_pty_open_at(int root_fd, uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave)
{
    csn_autofd int pts =
        openat(root_fd, "dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct statfs fs;

    if (pts < 0 || fstatfs(pts, &fs) < 0)
        return -errno;
    if ((unsigned long)fs.f_type != DEVPTS_SUPER_MAGIC)
        return -ENODEV;
    int master = openat(pts, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    return master < 0 ? -errno : open_slave(master, rows, cols, ret_master, ret_slave);
}
