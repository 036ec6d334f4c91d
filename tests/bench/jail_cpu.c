/* jail_cpu.c: processor time of the whole tree, of `caisson run` and of bwrap.
 *
 * How long something takes depends on who else wants the processor; how much of it it uses
 * hardly does. The measurement is made in a child that adopts orphans (keepers are meant to be
 * orphans) and waits for all of them, so that the sum has everybody in it. What the kernel does
 * later in threads of its own, such as taking a network namespace apart, is in neither side's
 * sum. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail.h"
#include "measure.h"

#define DONE 10 /* the child's exit status: this and how many goals were missed */

enum { BWRAP, TYPED, LIBRARY, PLAIN, CONTESTANTS };

static const char *const names[CONTESTANTS] = {"bwrap strict, true", "caisson run -- true",
                                               "library: create, run true, destroy",
                                               "posix_spawn + 2 pipes, true"};

static double used_us(int who)
{
    struct rusage u;

    if (getrusage(who, &u) < 0)
        bench_die("getrusage: %m");
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Waits for everybody: the time of a child is in the sum only once it has been reaped. */
static void once(int which)
{
    static char *const plain[] = {BENCH_PAYLOAD, NULL};

    switch (which) {
    case BWRAP:
        (void)bench_spawn(bench.bwrap, "");
        break;
    case TYPED:
        (void)bench_spawn(bench.caisson, "");
        break;
    case LIBRARY:
        bench_create_run_destroy();
        break;
    default:
        (void)bench_spawn(plain, "");
        break;
    }
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
        ;
}

static bool wanted(int which)
{
    return which == BWRAP ? bench.bwrap != NULL : which != TYPED || bench.caisson != NULL;
}

static unsigned compare(size_t rounds)
{
    double median[CONTESTANTS] = {0}, *sample[CONTESTANTS];
    unsigned missed = 0;

    for (int i = 0; i < CONTESTANTS; i++)
        if (!(sample[i] = calloc(rounds, sizeof(double))))
            bench_die("out of memory");
    for (size_t r = 0; r < rounds; r++)
        for (int i = 0; i < CONTESTANTS; i++) {
            int which = (int)((r * 7 + (size_t)i) % CONTESTANTS); /* each goes first in turn */
            if (!wanted(which))
                continue;
            double before = used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN);
            once(which);
            sample[which][r] = used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN) - before;
        }
    for (int i = 0; i < CONTESTANTS; i++) {
        median[i] = bench_median(sample[i], rounds);
        if (wanted(i))
            printf("%-34s %12.0f us of processor\n", names[i], median[i]);
        free(sample[i]);
    }
    if (wanted(BWRAP) && wanted(TYPED))
        missed += !bench_verdict("i. caisson run / bwrap, processor time",
                                 median[TYPED] / median[BWRAP], "", 0.70, 0.50);
    if (wanted(BWRAP))
        missed += !bench_verdict("i. library / bwrap, processor time",
                                 median[LIBRARY] / median[BWRAP], "", 0.50, 0.40);
    return missed;
}

unsigned bench_part_cpu(size_t rounds)
{
    int status = 0;

    fflush(NULL);
    pid_t pid = fork(); /* adopting orphans would change the other parts */
    if (pid < 0)
        bench_die("fork: %m");
    if (pid == 0) {
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
        unsigned missed = compare(rounds);
        fflush(NULL);
        _exit(DONE + (int)missed);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) < DONE)
        bench_die("the part in processor time failed");
    return (unsigned)(WEXITSTATUS(status) - DONE);
}
