/* die_at CALL PROGRAM [ARG...]: runs a program that the kernel kills (SIGSYS, which it cannot
 * catch) instead of executing the system call CALL. cow.sh interrupts commits with it. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {{"renameat2", SYS_renameat2},
             {"unlinkat", SYS_unlinkat},
             {"copy_file_range", SYS_copy_file_range}};

static int forbid(unsigned number)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {.len = sizeof(f) / sizeof(f[0]), .filter = f};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0
               ? -1
               : 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(argv[1], calls[i].name) == 0 && forbid(calls[i].number) == 0)
            execvp(argv[2], argv + 2);
    perror("die_at");
    return 99;
}
