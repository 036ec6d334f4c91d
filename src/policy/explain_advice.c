/* explain_advice.c: failures of well-known programs whose message names neither a path nor a
 * system call.
 *
 * The command controls the text, so a row contributes only its own words, and only if the
 * sandbox refuses what the row names. */
#include <string.h>

#include "base/strv.h"
#include "policy/explain_internal.h"

#define NO_SETUID                                                                              \
    "a set-uid program gets no rights in a sandbox; run what needs another user outside"
#define NO_INSTALL                                                                             \
    "the system is read-only in a sandbox; install its packages outside, or use --image with " \
    "a backend that has images"
#define NO_MOUNT                                                                               \
    "mounts are fixed when a sandbox is opened: --workspace and --read add directories, "      \
    "--nested permits mounts inside"
#define NO_PERF   "perf_event_open is refused in the sandbox; measure outside"
#define NO_SET_ID "set-id bits are refused in a sandbox of root; leave out --shared"
#define NO_PING   "the sandbox has no raw sockets; test a TCP port instead"
#define NO_BUS    "no grant is offered: a service of the host answers there"
#define OWN_DIR                                                                                \
    "screen needs a directory of its own: mkdir -m 700 ~/.screen; export SCREENDIR=~/.screen"

typedef struct advice {
    const char *phrase; /* lower case; "^": at the start of the line */
    const char *fact;   /* for csn_explain_in.refuses; NULL: true in every sandbox */
    const char *op, *target, *rule, *hint;
} advice;

static const advice rows[] = {
    {"\"no new privileges\" flag is set", NULL, "exec", "sudo", "no set-uid", NO_SETUID},
    {"^sudo: effective uid is not 0", NULL, "exec", "sudo", "no set-uid", NO_SETUID},
    {"sudo must be owned by uid 0 and have the setuid bit", NULL, "exec", "sudo", "no set-uid",
     NO_SETUID},
    {"^su: critical error", NULL, "exec", "su", "no set-uid", NO_SETUID},
    {"^su: authentication failure", NULL, "exec", "su", "no set-uid", NO_SETUID},
    {"^su: cannot set groups", NULL, "exec", "su", "no set-uid", NO_SETUID},
    {"^su: must be suid to work properly", NULL, "exec", "su", "no set-uid", NO_SETUID},
    {"pkexec must be setuid root", NULL, "exec", "pkexec", "no set-uid", NO_SETUID},
    {"must be superuser to use mount", "mount", "syscall", "mount", "system call refused",
     NO_MOUNT},
    {"must be superuser to unmount", "umount2", "syscall", "umount2", "system call refused",
     NO_MOUNT},
    {"^ping: socket: ", NULL, "syscall", "socket", "no raw sockets", NO_PING},
    {"^ping: prctl: ", NULL, "syscall", "socket", "no raw sockets", NO_PING},
    {"^ping: socktype: ", NULL, "syscall", "socket", "no raw sockets", NO_PING},
    {"^ping: permission denied (are you root?)", NULL, "syscall", "socket", "no raw sockets",
     NO_PING},
    {"ping: lacking privilege for icmp socket", NULL, "syscall", "socket", "no raw sockets",
     NO_PING},
    {"^no permission to enable ", "perf_event_open", "syscall", "perf_event_open",
     "system call refused", NO_PERF},
    {"access to performance monitoring and observability operations is limited",
     "perf_event_open", "syscall", "perf_event_open", "system call refused", NO_PERF},
    /* git */
    {" writable by group", "set-id bits", "syscall", "chmod", "set-id bits refused", NO_SET_ID},
    {"cannot make directory '/run/screen", NULL, "write", "/run/screen", "read-only", OWN_DIR},
    {"cannot make directory '/var/run/screen", NULL, "write", "/var/run/screen", "read-only",
     OWN_DIR},
    {"could not open lock file /var/lib/dpkg/", NULL, "write", "/var/lib/dpkg", "read-only",
     NO_INSTALL},
    {"unable to acquire the dpkg frontend lock", NULL, "write", "/var/lib/dpkg", "read-only",
     NO_INSTALL},
    {"failed to connect to bus: ", NULL, "read", "/run/dbus", CSN_EXPLAIN_OUTSIDE, NO_BUS},
};

static bool row_holds(const csn_explain_state *w, const advice *r)
{
    const csn_line *l = &w->line;
    bool found = r->phrase[0] == '^'
                     ? csn_str_starts(l->low, r->phrase + 1)
                     : memmem(l->low, l->len, r->phrase, strlen(r->phrase)) != NULL;

    return found && (!r->fact || (w->in->refuses && w->in->refuses(w->in->ctx, r->fact)));
}

bool csn_explain_advise(csn_explain_state *w)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const advice *r = &rows[i];
        if (!row_holds(w, r))
            continue;
        csn_denial d = {.op = r->op, .target = r->target, .rule = r->rule, .hint = r->hint};
        csn_explain_deny(w, &d);
        return true;
    }
    return false;
}
