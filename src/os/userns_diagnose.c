/* userns_diagnose.c: which setting of this host keeps user namespaces from us.
 *
 * Called when one could not be made, and by the self-check. The kernel only says EPERM; the
 * settings that distributions and containers refuse them with are few, and each can be read. */
#include "os/userns_diagnose.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"

/* -1: there is no such setting. */
static long setting(const char *path)
{
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (n <= 0)
        return -1;
    text[n] = '\0';
    return strtol(text, NULL, 10);
}

static bool in_container(void)
{
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           getenv("container") || getenv("KUBERNETES_SERVICE_HOST");
}

/* The mode of our own filter; 0: none. The call itself is among what a filter may refuse. */
static bool filtered(void)
{
    csn_autofd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *at = strstr(text, "\nSeccomp:");
    return at && strtol(at + strlen("\nSeccomp:"), NULL, 10) > 0;
}

csn_userns_why csn_userns_ask(void)
{
    csn_userns_why why = {0};

    if (access("/proc/self/ns/user", F_OK) != 0)
        return (csn_userns_why){"this kernel has no user namespaces (CONFIG_USER_NS)",
                                "use a kernel with CONFIG_USER_NS=y"};
    if (setting("/proc/sys/user/max_user_namespaces") == 0)
        return (csn_userns_why){"user.max_user_namespaces is 0",
                                "sudo sysctl -w user.max_user_namespaces=15000"};
    if (geteuid() != 0 && setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
        return (csn_userns_why){"kernel.unprivileged_userns_clone is 0",
                                "sudo sysctl -w kernel.unprivileged_userns_clone=1"};
    if (geteuid() != 0 && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0)
        return (csn_userns_why){
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"};
    if (in_container() || filtered())
        why = (csn_userns_why){"a seccomp filter around this process refuses them, as those of "
                               "containers do",
                               "start the container with --security-opt seccomp=unconfined "
                               "--security-opt systempaths=unconfined"};
    return why;
}
