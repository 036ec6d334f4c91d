/* explain_phrase.c: find the error phrase in one line of output.
 *
 * The command controls the bytes and may try to mislead. Work is linear in the line, and a
 * match only makes the line a candidate: probes decide later. The phrases are those that common
 * programs print, compared in lower case, since libc prints "No such file" and Go "no such
 * file". */
#include <string.h>

#include "base/strv.h"
#include "policy/explain_internal.h"

enum {
    SHELL_ONLY = 1, /* other programs use it with another meaning */
    HOST_NEXT = 2,  /* the host follows the phrase */
    IF_DOWN = 4,    /* only in a line that also reports a network or name failure */
    WEAK = 8,       /* needs a second word in the line */
};

typedef struct phrase {
    const char *text; /* lower case */
    csn_phrase_kind what;
    unsigned flags;
} phrase;

/* The first match in table order counts: specific phrases stand before the errno texts that end
 * the same lines. */
static const phrase phrases[] = {
    {"command not found", CSN_PHRASE_NO_COMMAND, 0},
    {"executable file not found in $path", CSN_PHRASE_NO_COMMAND, 0},
    {"cannot run program \"", CSN_PHRASE_NO_COMMAND, 0},
    {"error: linker `", CSN_PHRASE_NO_COMMAND, 0},
    {" enoent", CSN_PHRASE_NO_COMMAND, WEAK},
    {"cannot open shared object file", CSN_PHRASE_NO_LIBRARY, 0},
    {"rustup could not choose a version of", CSN_PHRASE_NO_TOOLCHAIN, 0},
    {"cannot execute: required file not found", CSN_PHRASE_NO_INTERPRETER, 0},
    {"failed to connect to the docker api at unix://", CSN_PHRASE_MISSING, 0},
    {"could not resolve host: ", CSN_PHRASE_NET, HOST_NEXT},
    {"could not resolve hostname ", CSN_PHRASE_NET, HOST_NEXT},
    {"could not resolve '", CSN_PHRASE_NET, HOST_NEXT},
    {"unable to resolve host address ", CSN_PHRASE_NET, HOST_NEXT},
    {"failed to resolve '", CSN_PHRASE_NET, HOST_NEXT},
    {"temporary failure resolving '", CSN_PHRASE_NET, HOST_NEXT},
    {"getaddrinfo eai_again ", CSN_PHRASE_NET, HOST_NEXT},
    {"getaddrinfo enotfound ", CSN_PHRASE_NET, HOST_NEXT},
    {"unable to look up ", CSN_PHRASE_NET, HOST_NEXT},
    {"bad address '", CSN_PHRASE_NET, HOST_NEXT},
    {"bad hostname '", CSN_PHRASE_NET, HOST_NEXT},
    {"unknownhostexception: ", CSN_PHRASE_NET, HOST_NEXT},
    {"connect enetunreach ", CSN_PHRASE_NET, HOST_NEXT},
    {"dial tcp: lookup ", CSN_PHRASE_NET, HOST_NEXT},
    {"dial tcp ", CSN_PHRASE_NET, HOST_NEXT | IF_DOWN},
    {"connect to host ", CSN_PHRASE_NET, HOST_NEXT | IF_DOWN},
    {"failed to connect to ", CSN_PHRASE_NET, HOST_NEXT},
    {"connecting to ", CSN_PHRASE_NET, HOST_NEXT | IF_DOWN},
    {"remote host (", CSN_PHRASE_NET, HOST_NEXT | IF_DOWN},
    {"/dev/tcp/", CSN_PHRASE_NET, HOST_NEXT | IF_DOWN},
    {"host='", CSN_PHRASE_NET, HOST_NEXT | IF_DOWN},
    {"temporary failure in name resolution", CSN_PHRASE_NET, 0},
    {"name or service not known", CSN_PHRASE_NET, 0},
    {"network is unreachable", CSN_PHRASE_NET, 0},
    {"read-only file system", CSN_PHRASE_READ_ONLY, 0},
    {"erofs", CSN_PHRASE_READ_ONLY, 0},
    {"no space left on device", CSN_PHRASE_DISK, 0},
    {"disk quota exceeded", CSN_PHRASE_DISK, 0},
    {"enospc", CSN_PHRASE_DISK, 0},
    {"wrote only ", CSN_PHRASE_DISK, WEAK},           /* tar */
    {"(disk full?)", CSN_PHRASE_DISK, 0},             /* unzip */
    {"out of diskspace", CSN_PHRASE_DISK, 0},         /* git */
    {"database or disk is full", CSN_PHRASE_DISK, 0}, /* sqlite */
    {"file too large", CSN_PHRASE_FILE, 0},
    {"efbig", CSN_PHRASE_FILE, 0},
    {"cannot fork", CSN_PHRASE_PIDS, 0},
    {"fork: retry", CSN_PHRASE_PIDS, 0},
    {"can't start new thread", CSN_PHRASE_PIDS, 0},
    {"pthread_create failed (eagain)", CSN_PHRASE_PIDS, 0},
    {"resource temporarily unavailable", CSN_PHRASE_PIDS, WEAK},
    {"cannot allocate memory", CSN_PHRASE_MEMORY, 0},
    {"memory exhausted", CSN_PHRASE_MEMORY, 0},
    {"out of memory", CSN_PHRASE_MEMORY, WEAK},
    {"xrealloc: cannot allocate", CSN_PHRASE_MEMORY, 0},
    {"xmalloc: cannot allocate", CSN_PHRASE_MEMORY, 0},
    {"std::bad_alloc", CSN_PHRASE_MEMORY, 0},
    {"fatal process oom", CSN_PHRASE_MEMORY, 0},
    {"memoryerror", CSN_PHRASE_MEMORY, WEAK},
    {"permission denied", CSN_PHRASE_ACCESS, 0},
    {"eacces", CSN_PHRASE_ACCESS, 0},
    {"accessdeniedexception", CSN_PHRASE_ACCESS, 0},
    {"operation not permitted", CSN_PHRASE_NOT_PERMITTED, 0},
    {"eperm", CSN_PHRASE_NOT_PERMITTED, 0},
    {"no such file", CSN_PHRASE_MISSING, 0},
    {"enoent", CSN_PHRASE_MISSING, 0},
    {"directory nonexistent", CSN_PHRASE_MISSING, 0},
    {"can't cd to ", CSN_PHRASE_MISSING, 0},
    {"cannot find module ", CSN_PHRASE_MISSING, 0},
    {"cannot find or open ", CSN_PHRASE_MISSING, 0},
    {"can't locate ", CSN_PHRASE_MISSING, 0},
    {"nosuchfileexception: ", CSN_PHRASE_MISSING, 0},
    {"unable to access jarfile ", CSN_PHRASE_MISSING, 0},
    {"unable to open database ", CSN_PHRASE_MISSING, 0},
    {"not a git repository: ", CSN_PHRASE_MISSING, 0},
    {"no rule to make target ", CSN_PHRASE_MISSING, 0},
    {"docker daemon at unix://", CSN_PHRASE_MISSING, 0},
    {"not a directory", CSN_PHRASE_MISSING, WEAK},
    {"file not found", CSN_PHRASE_MISSING, 0},
    {"does not exist", CSN_PHRASE_MISSING, 0},
    {": not found", CSN_PHRASE_NO_COMMAND, SHELL_ONLY},
};
#define PHRASES (sizeof(phrases) / sizeof(phrases[0]))

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool csn_is_word(char c)
{
    c = lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool has(const csn_line *l, const char *low)
{
    return memmem(l->low, l->len, low, strlen(low)) != NULL;
}

/* Only as a whole word: "mount" is not in "amount". */
static bool has_word(const csn_line *l, const char *low)
{
    size_t n = strlen(low);

    for (const char *at = l->low;;) {
        at = memmem(at, l->len - (size_t)(at - l->low), low, n);
        if (!at)
            return false;
        if ((at == l->low || !csn_is_word(at[-1])) && !csn_is_word(at[n]))
            return true;
        at += n;
    }
}

/* The length of the terminal sequence at s: CSI up to its final byte, OSC up to BEL or ST. */
static size_t escape_len(const char *s, size_t len)
{
    size_t i = 2;

    if (len < 2)
        return len;
    if (s[1] == '[') {
        while (i < len && !(s[i] >= 0x40 && s[i] <= 0x7e))
            i++;
        return i < len ? i + 1 : len;
    }
    if (s[1] != ']')
        return 2;
    while (i < len && s[i] != '\a' && s[i] != '\x1b')
        i++;
    if (i < len && s[i] == '\x1b' && i + 1 < len && s[i + 1] == '\\')
        i++;
    return i < len ? i + 1 : len;
}

bool csn_line_set(csn_line *l, const char *bytes, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        if (bytes[i] == '\x1b') {
            i += escape_len(bytes + i, len - i);
            continue;
        }
        if (n == CSN_EXPLAIN_LINE)
            return false;
        char c = bytes[i++];
        l->text[n++] = c ? c : '\x01';
    }
    for (size_t i = 0; i < n; i++)
        l->low[i] = lower(l->text[i]);
    l->text[n] = l->low[n] = '\0';
    l->len = n;
    return true;
}

bool csn_line_is_shell(const csn_line *l)
{
    static const char *const shells[] = {
        "sh: ", "bash: ", "dash: ", "ash: ", "zsh: ", "ksh: ", "busybox: ", NULL};
    const char *start = l->low;

    for (const char *p = l->low; *p && *p != ':' && *p != ' '; p++)
        if (*p == '/')
            start = p + 1;
    for (const char *const *s = shells; *s; s++)
        if (csn_str_starts(start, *s))
            return true;
    return false;
}

/* `sh: 1: x: not found`, `exec: x: not found`; other lines with this end are about other
 * things. */
static bool printed_by_shell(const csn_line *l, size_t at)
{
    return at + strlen(": not found") == l->len &&
           (csn_line_is_shell(l) || memmem(l->low, at, "exec: ", 6));
}

static bool weak_holds(const csn_line *l, const phrase *p, size_t at)
{
    if (p->what == CSN_PHRASE_NO_COMMAND) /* node: "spawn x ENOENT" */
        return memmem(l->low, at, "spawn ", 6) != NULL;
    if (p->what == CSN_PHRASE_MISSING) /* for reads it is no denial */
        return csn_line_creates(l);
    if (p->what == CSN_PHRASE_DISK) /* "Wrote only 512 of 10240 bytes" */
        return has(l, " bytes");
    if (p->what == CSN_PHRASE_PIDS) /* a socket can be unavailable as well */
        return has(l, "fork") || has(l, "thread") || has(l, "/bin/sh") || has(l, "clone") ||
               has(l, "blockingioerror");
    /* a language heap has its own limit: OutOfMemoryError */
    return !has(l, "heap") && (at == 0 || !csn_is_word(l->low[at - 1]));
}

static bool holds(const csn_line *l, const phrase *p, size_t at)
{
    if ((p->flags & SHELL_ONLY) != 0 && !printed_by_shell(l, at))
        return false;
    if ((p->flags & WEAK) != 0 && !weak_holds(l, p, at))
        return false;
    return (p->flags & IF_DOWN) == 0 || has(l, "unreachable") || has(l, "name resolution") ||
           has(l, "not known") || has(l, "failed to establish");
}

/* One pass over the line, with phrases chained by their first byte. Each phrase is tried a few
 * times only, which keeps a line full of phrases linear. */
csn_phrase_match csn_line_find_phrase(const csn_line *l)
{
    csn_phrase_match match = {.what = CSN_PHRASE_NONE};
    size_t best = PHRASES;
    unsigned char tries[PHRASES] = {0};
    unsigned char first[128] = {0}, next[PHRASES];

    for (size_t i = PHRASES; i-- > 0;) {
        unsigned char c = (unsigned char)phrases[i].text[0];
        next[i] = first[c];
        first[c] = (unsigned char)(i + 1);
    }
    for (size_t at = 0; at < l->len; at++) {
        unsigned char c = (unsigned char)l->low[at];
        for (size_t i = c < 128 ? first[c] : 0; i > 0 && i <= best; i = next[i - 1]) {
            const phrase *p = &phrases[i - 1];
            if (tries[i - 1] >= 4 || !csn_str_starts(l->low + at, p->text))
                continue;
            tries[i - 1]++;
            if (!holds(l, p, at))
                continue;
            best = i - 1;
            match = (csn_phrase_match){p->what, at, at + strlen(p->text),
                                       (p->flags & HOST_NEXT) != 0};
            break;
        }
    }
    return match;
}

bool csn_line_is_runner(const csn_line *l)
{
    static const char *const runners[] = {
        "env",  "xargs", "make", "gmake",  "timeout", "nice",    "nohup", "setsid", "stdbuf",
        "time", "watch", "exec", "strace", "ionice",  "taskset", "flock", NULL};
    char word[16];
    const char *end = strchr(l->text, ':'), *start = end;

    /* "make: *** x" is make's own complaint */
    if (!end || csn_str_starts(end, ": ***"))
        return false;
    while (start > l->text && start[-1] != '/' && start[-1] != ' ')
        start--;
    size_t n = (size_t)(end - start);
    if (n == 0 || n >= sizeof(word))
        return false;
    memcpy(word, start, n);
    word[n] = '\0';
    return csn_strv_has(runners, word);
}

bool csn_line_creates(const csn_line *l)
{
    static const char *const words[] = {"create",   "creating", "touch",  "mkdir",    "output",
                                        "write",    "writing",  "remove", "symlink",  "rename",
                                        "move",     "unlink",   "lock",   "template", "rmdir",
                                        "copyfile", NULL};

    for (const char *const *w = words; *w; w++)
        if (has_word(l, *w))
            return true;
    return false;
}

bool csn_line_is_redirect(const csn_line *l)
{
    return csn_line_is_shell(l) && !has(l, " cd: ");
}

const char *csn_line_syscall(const csn_line *l)
{
    static const struct {
        const char *word, *call;
    } calls[] = {
        {"unshare", "unshare"},
        {"new namespace", "unshare"},
        {"clone", "clone"},
        {"ptrace", "ptrace"},
        {"setns", "setns"},
        {"nsenter", "setns"},
        {"umount", "umount2"},
        {"mount", "mount"},
        {"pivot_root", "pivot_root"},
        {"chroot", "chroot"},
        {"mknod", "mknod"},
        {"bpf", "bpf"},
        {"perf_event_open", "perf_event_open"},
        {"io_uring_setup", "io_uring_setup"},
        {"io_uring_queue_init", "io_uring_setup"},
        {"userfaultfd", "userfaultfd"},
        {"keyctl", "keyctl"},
        {"add_key", "add_key"},
        {"setgroups", "setgroups"},
        {"sethostname", "sethostname"},
        {"settimeofday", "settimeofday"},
        {"set date", "settimeofday"},
        {"swapon", "swapon"},
        {"reboot", "reboot"},
        {"chown", "chown"},
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (has_word(l, calls[i].word))
            return calls[i].call;
    return NULL;
}
