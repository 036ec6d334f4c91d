/* Failures of well-known programs, as they print them, and the advice that each gets; disk
 * limits in the words of other programs. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "explain_world.h"

#define SETUID                                                                                 \
    "a set-uid program gets no rights in a sandbox; run what needs another user outside"
#define MOUNT                                                                                  \
    "mounts are fixed when a sandbox is opened: --workspace and --read add directories, "      \
    "--nested permits mounts inside"
#define PERF "perf_event_open is refused in the sandbox; measure outside"
#define PING "the sandbox has no raw sockets; test a TCP port instead"
#define INSTALL                                                                                \
    "the system is read-only in a sandbox; install its packages outside, or use --image with " \
    "a backend that has images"
#define SCREEN                                                                                 \
    "screen needs a directory of its own: mkdir -m 700 ~/.screen; export SCREENDIR=~/.screen"

static const struct {
    const char *text;
    const char *want; /* in a sandbox that refuses every system call */
    bool always;      /* in any sandbox */
} rows[] = {
    {"sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.\n"
     "sudo: If sudo is running in a container, you may need to adjust the container "
     "configuration to disable the flag.\n",
     "exec sudo -> " SETUID, true},
    {"sudo: effective uid is not 0, is /usr/bin/sudo on a file system with the 'nosuid' option "
     "set or an NFS file system without root privileges?\n",
     "exec sudo -> " SETUID, true},
    {"sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set\n",
     "exec sudo -> " SETUID, true},
    {"su: Critical error - immediate abort\n", "exec su -> " SETUID, true},
    {"Password: \nsu: Authentication failure\n", "exec su -> " SETUID, true},
    {"su: must be suid to work properly\n", "exec su -> " SETUID, true},
    {"pkexec must be setuid root\n", "exec pkexec -> " SETUID, true},
    {"mount: /tmp: must be superuser to use mount.\n"
     "       dmesg(1) may have more information after failed mount system call.\n",
     "syscall mount -> " MOUNT, false},
    {"umount: /tmp: must be superuser to unmount.\n", "syscall umount2 -> " MOUNT, false},
    {"ping: socktype: SOCK_RAW\nping: socket: Operation not permitted\n"
     "ping: => missing cap_net_raw+p capability or setuid?\n",
     "syscall socket -> " PING, true},
    {"ping: prctl: Operation not permitted\n", "syscall socket -> " PING, true},
    {"ping: permission denied (are you root?)\n", "syscall socket -> " PING, true},
    {"/bin/ping: Lacking privilege for icmp socket.\n", "syscall socket -> " PING, true},
    {"Error:\nNo permission to enable task-clock event.\n\n\n",
     "syscall perf_event_open -> " PERF, false},
    {"perf_event_open(..., 0) failed unexpectedly with error 1 (Operation not permitted)\n"
     "Error:\nAccess to performance monitoring and observability operations is limited.\n",
     "syscall perf_event_open -> " PERF, false},
    {"fatal: Could not make /proj/x.git/hooks/ writable by group\n",
     "syscall chmod -> set-id bits are refused in a sandbox of root; leave out --shared",
     false},
    {"Cannot make directory '/run/screen': Read-only file system\n",
     "write /run/screen -> " SCREEN, true},
    {"Cannot make directory '/var/run/screen': Permission denied\n",
     "write /var/run/screen -> " SCREEN, true},
    {"E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n"
     "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you "
     "root?\n",
     "write /var/lib/dpkg -> " INSTALL, true},
    {"System has not been booted with systemd as init system (PID 1). Can't operate.\n"
     "Failed to connect to bus: Host is down\n",
     "read /run/dbus -> " SERVICE, true},
    {"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
     "running?\n",
     "read /var/run/docker.sock -> " SERVICE, true},
    {"failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is "
     "correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such "
     "file or directory\n",
     "read /var/run/docker.sock -> " SERVICE, true},
    /* the same words in another place are no such failure */
    {"note: su: authentication failure was the cause last time\n", "", true},
    {"make: fatal: could not make target\n", "", true},
    {"fatal: could not make the build work\n", "", true},
    {"warning: no permission to enable nothing\n", "", true},
};

static bool refuses_all(void *ctx, const char *syscall)
{
    (void)ctx;
    (void)syscall;
    return true;
}

static bool refuses_none(void *ctx, const char *syscall)
{
    (void)ctx;
    (void)syscall;
    return false;
}

static void each_program_gets_its_advice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        csn_explain_in in = input(rows[i].text);
        in.refuses = refuses_all;
        check_in(&in, rows[i].want);
        in.refuses = refuses_none;
        check_in(&in, rows[i].always ? rows[i].want : "");
        in.refuses = NULL;
        check_in(&in, rows[i].always ? rows[i].want : "");
        in.exit_code = 0;
        check_in(&in, "");
    }
}

static void a_full_disk_is_known_in_many_words(void **state)
{
    static const char *const texts[] = {
        "tar: big: Wrote only 512 of 10240 bytes\n"
        "tar: Exiting with failure status due to previous errors\n",
        "tar: big: Cannot write: No space left on device\n",
        "cp: error writing '/tmp/big': No space left on device\n",
        "fatal: unable to write loose object file: No space left on device\n",
        "fatal: sha1 file '/proj/.git/index.lock' write error. Out of diskspace\n",
        "npm error code ENOSPC\nnpm error syscall write\n",
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on "
        "device\n",
        "ERROR: Could not install packages due to an OSError: [Errno 122] Disk quota "
        "exceeded\n",
        "big:  write error (disk full?).  Continue? (y/n/^C)\n",
        "Error: database or disk is full\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check(texts[i], "limit disk -> --disk 128M");
    check("it wrote only half of the story\n", "");
}

/* A command that did not end in time has a signal and no exit code. */
static void what_ran_out_of_time_is_read_too(void **state)
{
    csn_explain_in in = input("cp: error writing '/tmp/big': No space left on device\n");

    (void)state;
    in.exit_code = 0;
    in.signal = SIGTERM;
    check_in(&in, "limit disk -> --disk 128M");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_program_gets_its_advice),
        cmocka_unit_test(a_full_disk_is_known_in_many_words),
        cmocka_unit_test(what_ran_out_of_time_is_read_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
