/* vfork_loop: spends most of its time waiting for a vfork child that has not called exec. Such
 * a process cannot be stopped; cow.sh takes a snapshot while it runs. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    static const struct timespec before_exec = {.tv_nsec = 20000000};

    for (;;) {
        pid_t pid = vfork();
        if (pid == 0) {
            nanosleep(&before_exec, NULL);
            execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) < 0)
            return 1;
    }
}
