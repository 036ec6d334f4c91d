/* browser_sandbox.c: the steps by which a browser sandboxes its renderers with namespaces.
 *
 * A process in new user, pid and network namespaces gives up the file system: a child that
 * shares its root enters the /proc directory of itself and ends, which leaves an empty root.
 * Then it drops all capabilities, forks renderers and puts a filter on them. Prints "sandboxed"
 * if every step works and nothing is left within reach. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, strerrordesc_np(errno));
    exit(1);
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
    close(fd);
}

static int empty_root(void *arg)
{
    (void)arg;
    return chroot("/proc/self/fdinfo/") == 0 && chdir("/") == 0 ? 0 : 1;
}

static void give_up_files(void)
{
    static char stack[65536];
    int status = -1;

    pid_t pid = clone(empty_root, stack + sizeof(stack), CLONE_FS | SIGCHLD, NULL);
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "chroot");
}

static void drop_capabilities(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {0x20080522, 0};
    uint32_t none[6] = {0};

    must(syscall(SYS_capset, &head, none) == 0, "capset");
}

static void filter(void)
{
    struct {
        uint16_t code;
        uint8_t jt, jf;
        uint32_t k;
    } insns[] = {{0x20, 0, 0, 0},
                 {0x15, 0, 1, SYS_socket},
                 {0x06, 0, 0, 0x00050000u | EPERM},
                 {0x06, 0, 0, 0x7fff0000u}};
    struct {
        uint16_t len;
        void *insns;
    } program = {4, insns};

    must(prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0, "no_new_privs");
    must(prctl(PR_SET_SECCOMP, 2L, &program, 0L, 0L) == 0, "seccomp");
}

static int renderer(void)
{
    filter();
    must(open("/", O_RDONLY | O_CLOEXEC) < 0 || access("/etc", F_OK) != 0,
         "files are within reach");
    must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0, "sockets are within reach");
    must(kill(1, 0) != 0 || getpid() != 1, "pid");
    return puts("sandboxed") < 0 || fflush(stdout) != 0;
}

static int zygote(unsigned uid, unsigned gid)
{
    char map[64];
    int status = -1;

    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, gid);
    put("/proc/self/gid_map", map);
    must(getpid() == 1, "pid namespace");
    give_up_files();
    drop_capabilities();
    pid_t pid = fork();
    if (pid == 0)
        _exit(renderer());
    must(pid > 0 && waitpid(pid, &status, 0) == pid, "renderer");
    return status != 0;
}

int main(void)
{
    unsigned uid = getuid(), gid = getgid();
    int status = -1;

    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | SIGCHLD,
                               NULL, NULL, NULL, NULL);
    must(pid >= 0, "clone");
    if (pid == 0)
        _exit(zygote(uid, gid));
    must(waitpid(pid, &status, 0) == pid, "wait");
    return status != 0;
}
