/* probe_socket.c: sockets of others: abstract and named unix sockets, ports of loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

static socklen_t unix_address(struct sockaddr_un *un, const char *name, int abstract)
{
    size_t len = strnlen(name, sizeof(un->sun_path) - 2);

    *un = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(un->sun_path + (abstract ? 1 : 0), name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static struct sockaddr_in loopback(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)number(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int dial(int type, const void *addr, socklen_t len)
{
    int fd = socket(((const struct sockaddr *)addr)->sa_family, type, 0);

    if (fd < 0)
        return errno;
    int rc = connect(fd, addr, len) < 0 ? errno : 0;
    close(fd);
    return rc;
}

static int dial_abstract(char **a)
{
    struct sockaddr_un un;
    socklen_t len = unix_address(&un, a[0], 1);

    return dial(SOCK_STREAM, &un, len);
}

static int dial_named(char **a)
{
    struct sockaddr_un un;
    socklen_t len = unix_address(&un, a[0], 0);

    return dial(SOCK_STREAM, &un, len);
}

static int dial_port(char **a)
{
    struct sockaddr_in in = loopback(a[0]);

    return dial(SOCK_STREAM, &in, sizeof(in));
}

static int listen_at(const void *addr, socklen_t len)
{
    int one = 1, fd = socket(((const struct sockaddr *)addr)->sa_family, SOCK_STREAM, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    return bind(fd, addr, len) < 0 || listen(fd, 8) < 0 ? -1 : 0;
}

/* Helper: NAME PATH PORT: listens on all three until it is killed */
static int hold_sockets(char **a)
{
    struct sockaddr_un un;
    socklen_t len = unix_address(&un, a[0], 1);
    struct sockaddr_in in = loopback(a[2]);

    if (listen_at(&un, len) < 0 || listen_at(&in, sizeof(in)) < 0)
        return errno;
    len = unix_address(&un, a[1], 0);
    if (listen_at(&un, len) < 0)
        return errno;
    printf("listening\n");
    fflush(stdout);
    for (;;)
        pause();
}

const attempt socket_attempts[] = {{"abstract", 1, dial_abstract},
                                   {"named", 1, dial_named},
                                   {"port", 1, dial_port},
                                   {"hold-sockets", 3, hold_sockets},
                                   {NULL, 0, NULL}};
