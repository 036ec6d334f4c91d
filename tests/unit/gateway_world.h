/* gateway_world.h: a host of the test's own: names, loopback, all ports.
 *
 * The test enters fresh user, mount and network namespaces, in which it may bind low ports and
 * has its own /etc/hosts; the gateway it starts there sees the same. */
#pragma once
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "unit/gateway_fixture.h"

static inline bool world_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return good;
}

static inline bool world_loopback_up(void)
{
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;

    if (fd >= 0)
        close(fd);
    return good;
}

/* `file` becomes /etc/NAME. */
static inline bool world_etc(const char *name, const char *text)
{
    char path[] = "/tmp/caisson-world-XXXXXX", target[64];
    int fd = mkstemp(path);

    snprintf(target, sizeof(target), "/etc/%s", name);
    bool good = fd >= 0 && fchmod(fd, 0644) == 0 &&
                write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
                mount(path, target, NULL, MS_BIND, NULL) == 0;
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return good;
}

static inline bool world_userns(unsigned long also)
{
    char map[64];
    unsigned uid = getuid(), gid = getgid();

    if (unshare(CLONE_NEWUSER | (int)also) < 0)
        return false;
    (void)world_write("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "0 %u 1", uid);
    if (!world_write("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof(map), "0 %u 1", gid);
    return world_write("/proc/self/gid_map", map);
}

static bool world_by_root;

/* What root is refused while everything must work is no excuse. */
static inline bool world_excuse(const char *why)
{
#ifdef fail_msg /* cmocka's */
    if (world_by_root && getenv("CSN_MUST_WORK"))
        fail_msg("%s", why);
#endif
    printf("# skipped: %s\n", why);
    return true;
}

/* NULL, or what is refused here. */
static inline const char *world_enter(const char *hosts)
{
    world_by_root = geteuid() == 0;
    if (!world_userns(CLONE_NEWNS | CLONE_NEWNET))
        return "no user, mount and network namespaces for us here";
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || !world_etc("hosts", hosts))
        return "no mounts for us here";
    /* nobody to ask: what is not in hosts does not exist, and at once */
    (void)world_etc("nsswitch.conf", "hosts: files\n");
    return world_loopback_up() ? NULL : "no loopback";
}

/* A ClientHello with that name (NULL: none), as one record; its length. */
static inline size_t world_hello(uint8_t *out, const char *sni)
{
    uint8_t ext[300];
    size_t e = 0, n = sni ? strlen(sni) : 0, at = 0;

    if (sni) {
        uint8_t head[] = {0, 0, 0, (uint8_t)(n + 5), 0, (uint8_t)(n + 3), 0, 0, (uint8_t)n};
        memcpy(ext, head, sizeof(head));
        memcpy(ext + sizeof(head), sni, n);
        e = sizeof(head) + n;
    }
    static const uint8_t versions[] = {0, 43, 0, 3, 2, 3, 4};
    memcpy(ext + e, versions, sizeof(versions));
    e += sizeof(versions);
    size_t body = 2 + 32 + 1 + 4 + 2 + 2 + e;
    uint8_t head[] = {22,
                      3,
                      1,
                      (uint8_t)((body + 4) >> 8),
                      (uint8_t)(body + 4),
                      1,
                      0,
                      (uint8_t)(body >> 8),
                      (uint8_t)body,
                      3,
                      3};
    memcpy(out, head, sizeof(head));
    at = sizeof(head);
    memset(out + at, 7, 32);
    at += 32;
    static const uint8_t rest[] = {0, 0, 2, 0x13, 1, 1, 0};
    memcpy(out + at, rest, sizeof(rest));
    at += sizeof(rest);
    out[at++] = (uint8_t)(e >> 8);
    out[at++] = (uint8_t)e;
    memcpy(out + at, ext, e);
    return at + e;
}
