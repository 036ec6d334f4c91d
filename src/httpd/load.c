/* load.c: loads caisson-httpd.so and creates its listening socket.
 *
 * The module is separate because libmicrohttpd depends on a TLS library, which `caisson run`
 * must not load. os/module.c determines the path of the module. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "httpd/httpd.h"
#include "os/module.h"

#define MODULE  "caisson-httpd.so"
#define BACKLOG 256

csn_status csn_httpd_load(const csn_httpd_api **ret, csn_error **err)
{
    const csn_httpd_api *(*entry)(void) = NULL;
    char why[CSN_PATH_MAX];

    if (csn_module_load(MODULE, "csn_httpd_module", (void **)&entry, why, sizeof(why)) < 0)
        return csn_fail(err, CSN_UNSUPPORTED, "serving HTTP needs %s", why);
    const csn_httpd_api *api = entry();
    if (!api || api->version != CSN_HTTPD_API_VERSION)
        return csn_fail(err, CSN_UNSUPPORTED, "serving HTTP needs %s: wrong version", MODULE);
    *ret = api;
    return CSN_OK;
}

/* ---- socket ------------------------------------------------------------------------- */

/* Splits "[::1]:80" or "127.0.0.1:80". */
static bool split_address(const char *address, char host[64], const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    const char *from = address, *to = colon;

    if (!colon || !colon[1] || colon == address)
        return false;
    if (*address == '[') {
        from = address + 1;
        to = colon - 1;
        if (to < from || *to != ']')
            return false;
    } else if (memchr(address, ':', (size_t)(colon - address))) {
        return false;
    }
    if (to - from >= 64)
        return false;
    snprintf(host, 64, "%.*s", (int)(to - from), from);
    *ret_port = colon + 1;
    return true;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)sa;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static int open_socket(const struct addrinfo *ai, int *ret)
{
    int one = 1;
    csn_autofd int fd =
        socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return errno;
    *ret = csn_steal_fd(&fd);
    return 0;
}

static int bound_address(int fd, char ret[CSN_HTTPD_ADDRESS_MAX])
{
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(sa);
    char host[64], port[16];

    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
        return errno;
    if (getnameinfo((struct sockaddr *)&sa, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return EINVAL;
    snprintf(ret, CSN_HTTPD_ADDRESS_MAX, sa.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
             port);
    return 0;
}

csn_status csn_httpd_listen(const char *address, int *ret_fd,
                            char ret_bound[CSN_HTTPD_ADDRESS_MAX], bool *ret_loopback,
                            csn_error **err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *ai = NULL;
    char host[64];
    const char *port;
    csn_autofd int fd = -1;

    if (!split_address(address, host, &port))
        return csn_fail(err, CSN_INVALID, "'%s' is not ADDRESS:PORT", address);
    /* Numeric only: DNS must not decide where to listen. */
    if (getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &hints, &ai) !=
        0)
        return csn_fail(err, CSN_INVALID, "'%s' is not ADDRESS:PORT", address);
    *ret_loopback = is_loopback(ai->ai_addr);
    int e = open_socket(ai, &fd);
    freeaddrinfo(ai);
    if (e == 0)
        e = bound_address(fd, ret_bound);
    if (e != 0)
        return csn_fail_errno(err, e, "cannot listen on '%s'", address);
    *ret_fd = csn_steal_fd(&fd);
    return CSN_OK;
}
