/* stdio.c: what `run` gives its command as standard input.
 *
 * A pipe, a file, a socket or a device is passed on, as a shell would do it. A terminal is
 * passed on as a terminal of the command's own, if this program is in the foreground and stdout
 * is a terminal, too. Otherwise stdin is empty. In particular the keys that are typed while
 * `caisson run -- git log | less` runs belong to less: we would take them, because we cannot
 * know whether the command is going to read. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cli/exec_opts.h"

/* A socket that is not connected, or receives datagrams, is no stream of bytes. */
static bool is_stream(int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer), size = sizeof(int);
    int type = 0;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
           getpeername(fd, (struct sockaddr *)&peer, &len) == 0;
}

/* True if there may be bytes to read. */
static bool has_input(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    struct stat st;

    if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY || fstat(fd, &st) < 0)
        return false;
    switch (st.st_mode & S_IFMT) {
    case S_IFIFO:
    case S_IFREG:
        return true;
    case S_IFSOCK:
        return is_stream(fd);
    case S_IFCHR:
        return st.st_rdev != makedev(1, 3); /* /dev/null */
    default:
        return false;
    }
}

void csn_cli_choose_stdio(csn_exec_cli *x, bool json)
{
    if (x->pty || x->use_stdin || x->no_stdin || x->session)
        return;
    if (!isatty(STDIN_FILENO)) {
        x->use_stdin = has_input(STDIN_FILENO);
        return;
    }
    x->pty = !x->no_pty && !json && isatty(STDOUT_FILENO) && csn_cli_in_foreground();
    x->own_stderr = x->pty && !isatty(STDERR_FILENO);
}
