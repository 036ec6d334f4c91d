/* resolver.c: a program that asks for names itself, as those do that were not linked with
 * libc's resolver: static, without any variable, with its own idea of how a question looks.
 *
 *   resolver STYLE NAME PORT      connects to what it was told, GETs /, prints the body
 *
 * Run inside a jail by connects.sh. Styles: plain (one question for A), both (A and AAAA at
 * once from one socket, with EDNS0, as Go does), tcp (the same by connection), six (AAAA
 * alone). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TYPE_A    1u
#define TYPE_AAAA 28u

static int die(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in server(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    char line[256], address[64];
    FILE *f = fopen("/etc/resolv.conf", "re");

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "nameserver %63s", address) == 1)
            inet_pton(AF_INET, address, &to.sin_addr);
    if (f)
        fclose(f);
    return to;
}

static size_t question(uint8_t *out, const char *name, uint16_t type, int edns)
{
    const uint8_t head[12] = {(uint8_t)type, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, (uint8_t)edns};
    static const uint8_t opt[11] = {0, 0, 41, 0x04, 0xd0};
    size_t at = sizeof(head);

    memcpy(out, head, sizeof(head));
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, ".");
        out[at++] = (uint8_t)n;
        memcpy(out + at, p, n);
        at += n;
        p += n + (p[n] == '.');
    }
    out[at++] = 0;
    out[at++] = 0;
    out[at++] = (uint8_t)type;
    out[at++] = 0;
    out[at++] = 1;
    if (edns)
        memcpy(out + at, opt, sizeof(opt));
    return at + (edns ? sizeof(opt) : 0);
}

/* The address of the first record, if it is of this type. */
static int take(const uint8_t *in, ssize_t n, uint16_t type, uint8_t *ret)
{
    size_t len = type == TYPE_A ? 4 : 16;
    ssize_t at = 12;

    if (n < 12 || in[0] != (uint8_t)type || (in[3] & 15) != 0 || (in[6] | in[7]) == 0)
        return 0;
    while (at < n && in[at])
        at += in[at] + 1;
    at += 5 + 12; /* what was asked; and of the record, whose name is a pointer, all but data */
    if (at + (ssize_t)len > n)
        return 0;
    memcpy(ret, in + at, len);
    return 1;
}

static int ask_udp(const char *name, const uint16_t *types, int count, int edns,
                   uint8_t found[2][16])
{
    struct sockaddr_in to = server();
    int fd = socket(AF_INET, SOCK_DGRAM, 0), got = 0;
    uint8_t buf[1500];

    if (connect(fd, (void *)&to, sizeof(to)) < 0)
        die("connect");
    for (int i = 0; i < count; i++)
        if (send(fd, buf, question(buf, name, types[i], edns), 0) < 0)
            die("send");
    for (int i = 0; i < count; i++) {
        ssize_t n = recv(fd, buf, sizeof(buf), 0);
        for (int k = 0; k < count; k++)
            if (take(buf, n, types[k], found[k]))
                got |= 1 << k;
    }
    close(fd);
    return got;
}

static int ask_tcp(const char *name, const uint16_t *types, int count, uint8_t found[2][16])
{
    struct sockaddr_in to = server();
    int fd = socket(AF_INET, SOCK_STREAM, 0), got = 0;
    uint8_t buf[1500];

    if (connect(fd, (void *)&to, sizeof(to)) < 0)
        die("connect");
    for (int i = 0; i < count; i++) {
        size_t n = question(buf + 2, name, types[i], 1);
        buf[0] = (uint8_t)(n >> 8);
        buf[1] = (uint8_t)n;
        if (send(fd, buf, n + 2, 0) < 0 || recv(fd, buf, 2, MSG_WAITALL) != 2)
            die("tcp");
        ssize_t len = recv(fd, buf, (size_t)buf[0] << 8 | buf[1], MSG_WAITALL);
        if (take(buf, len, types[i], found[i]))
            got |= 1 << i;
    }
    close(fd);
    return got;
}

static int reach(const uint8_t *address, uint16_t type, uint16_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int fd = socket(type == TYPE_A ? AF_INET : AF_INET6, SOCK_STREAM, 0);

    memcpy(&four.sin_addr, address, 4);
    memcpy(&six.sin6_addr, address, 16);
    if (connect(fd, type == TYPE_A ? (void *)&four : (void *)&six,
                type == TYPE_A ? sizeof(four) : sizeof(six)) < 0)
        die("connect");
    return fd;
}

/* A body that ends with its line. */
static void get(int fd, const char *name)
{
    char buf[4096];
    size_t len = 0;
    ssize_t n;

    int asked = snprintf(buf, sizeof(buf), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", name);
    if (send(fd, buf, (size_t)asked, 0) < 0)
        die("send");
    while (len < sizeof(buf) - 1 && (n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0)) > 0) {
        len += (size_t)n;
        buf[len] = '\0';
        char *body = strstr(buf, "\r\n\r\n");
        if (body && buf[len - 1] == '\n' && body + 4 < buf + len) {
            printf("%s", body + 4);
            return;
        }
    }
    die("no answer");
}

int main(int argc, char **argv)
{
    static const uint16_t both[] = {TYPE_A, TYPE_AAAA}, six[] = {TYPE_AAAA};
    uint8_t found[2][16];
    int got = 0;

    if (argc != 4)
        return 2;
    const char *style = argv[1], *name = argv[2];
    const uint16_t *types = strcmp(style, "six") == 0 ? six : both;
    if (strcmp(style, "tcp") == 0)
        got = ask_tcp(name, types, 2, found);
    else if (strcmp(style, "both") == 0)
        got = ask_udp(name, types, 2, 1, found);
    else
        got = ask_udp(name, types, 1, 0, found);
    if (strcmp(style, "both") == 0 && got != 3)
        printf("only one of two answers\n");
    if (!got)
        return puts("no such name"), 3;
    int which = got & 1 ? 0 : 1;
    get(reach(found[which], types[which], (uint16_t)strtol(argv[3], NULL, 10)), name);
    return 0;
}
