/* kill_wait.c: waits for the end of a command that the keeper was told to kill.
 *
 * The deadline of a command holds even if the keeper does not run: it may be stopped, or the
 * processes of the sandbox may take all processors. The keeper is then killed from here, and in
 * a pid namespace the kernel kills every process of the sandbox with it. Only the end of a
 * command at its deadline, at a cancellation or by a destroy kills a silent keeper; a question
 * that stays without an answer does not.
 *
 * A keeper that runs gets more time, so that a busy machine does not end a sandbox. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "runtime/link.h"

#define UNKNOWN UINT64_MAX

/* How often the keeper was scheduled: it rises when the keeper runs. */
static uint64_t count_switches(const csn_runtime *rt)
{
    static const char key[] = "\nvoluntary_ctxt_switches:";
    static const char key2[] = "\nnonvoluntary_ctxt_switches:";
    char path[40], text[4096];

    snprintf(path, sizeof(path), "/proc/%lld/status", (long long)rt->keeper_pid);
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return UNKNOWN;
    text[n] = '\0';
    const char *a = strstr(text, key), *b = strstr(text, key2);
    if (!a || !b)
        return UNKNOWN;
    return strtoull(a + sizeof(key) - 1, NULL, 10) + strtoull(b + sizeof(key2) - 1, NULL, 10);
}

static bool answers(csn_runtime *rt)
{
    csn_autofd int channel = -1;
    uint8_t buf[256];
    csn_msg m;

    if (csn_link_send(rt, CSN_MSG_HELLO, NULL, NULL, 0, &channel, NULL) < 0 ||
        csn_msg_await(channel, csn_deadline_in(CSN_KILL_STEP_MS), buf, sizeof(buf), &m) != 1)
        return false;
    csn_msg_release(&m);
    return true;
}

uint64_t csn_kill_wait_begin(const csn_runtime *rt, csn_kill_wait *w)
{
    w->switches = count_switches(rt);
    w->end_ns = csn_deadline_in(CSN_GRACE_MS + CSN_KILL_MAX_MS);
    w->answered = false;
    return csn_deadline_in(CSN_GRACE_MS + CSN_KILL_STEP_MS);
}

uint64_t csn_kill_wait_next(csn_runtime *rt, csn_kill_wait *w)
{
    uint64_t now = csn_now_ns(), switches = count_switches(rt);
    bool ran = switches == UNKNOWN || switches != w->switches;

    if (ran && now >= w->end_ns && !w->answered && answers(rt)) {
        w->answered = true; /* it has much to kill, or the machine is busy */
        w->end_ns = csn_deadline_in(CSN_KEEPER_ANSWER_MS);
    }
    if (ran && now < w->end_ns) {
        uint64_t next = csn_deadline_in(CSN_KILL_STEP_MS);
        return next < w->end_ns ? next : w->end_ns;
    }
    /* A keeper that answered has done what can be done: a process is stuck in the kernel. */
    if (!ran || !w->answered)
        csn_runtime_kill_keeper(rt);
    return 0;
}
