/* userns_diagnose.c: finds the setting of this host that forbids user namespaces.
 *
 * The kernel reports only EPERM. The settings by which distributions and containers forbid user
 * namespaces are few and readable. */
#include "os/userns_diagnose.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define UNCONFINED                                                                             \
    "start the container with --security-opt seccomp=unconfined --security-opt "               \
    "systempaths=unconfined"

/* -1: no such setting. */
static long read_setting(const char *path)
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

/* From /proc, because a filter may refuse prctl(PR_GET_SECCOMP). */
static bool has_seccomp_filter(void)
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

csn_userns_diagnosis csn_userns_diagnose(void)
{
    if (access("/proc/self/ns/user", F_OK) != 0)
        return (csn_userns_diagnosis){"this kernel has no user namespaces (CONFIG_USER_NS)",
                                      "use a kernel with CONFIG_USER_NS=y"};
    if (read_setting("/proc/sys/user/max_user_namespaces") == 0)
        return (csn_userns_diagnosis){"user.max_user_namespaces is 0",
                                      "sudo sysctl -w user.max_user_namespaces=15000"};
    if (geteuid() != 0 && read_setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
        return (csn_userns_diagnosis){"kernel.unprivileged_userns_clone is 0",
                                      "sudo sysctl -w kernel.unprivileged_userns_clone=1"};
    if (geteuid() != 0 &&
        read_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0)
        return (csn_userns_diagnosis){
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"};
    if (in_container() || has_seccomp_filter())
        return (csn_userns_diagnosis){
            "a seccomp filter around this process refuses them, as those of "
            "containers do",
            geteuid() == 0 ? UNCONFINED ", and caisson as an ordinary user, or with --cap-add "
                                        "SYS_ADMIN --cap-add SYS_PTRACE and a workspace on a "
                                        "volume"
                           : UNCONFINED};
    return (csn_userns_diagnosis){0};
}
