/* double.c: a node program as a child whose standard input is ours to close.
 *
 * The write end of that pipe closes with this process, however it ends, and the double ends
 * with it. Only for tests. */
#include "doubles/double.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 60000

#define DOUBLES_MAX 8

static struct {
    pid_t pid;
    int fd;
} started[DOUBLES_MAX];
static size_t started_count;
static char why[256] = "the double was not started";

const char *csn_double_why(void)
{
    return why;
}

static int fail(const char *text)
{
    snprintf(why, sizeof(why), "%s", text);
    return -1;
}

/* "port N" from its standard output. */
static int read_port(int fd)
{
    char text[64];
    size_t len = 0;
    int port = 0;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, START_MS) <= 0)
            return fail("the double does not say where it listens");
        ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
        if (n <= 0)
            return fail("the double ended at once");
        len += (size_t)n;
        text[len] = '\0';
        if (strchr(text, '\n') || len == sizeof(text) - 1)
            break;
    }
    if (sscanf(text, "port %d", &port) != 1)
        return fail("the double says something else than its port");
    return port;
}

static void become(const char *file, const char *const *args, int in, int out)
{
    const char *argv[16] = {"node", file};

    for (size_t i = 0; args[i] && i < 12; i++)
        argv[2 + i] = args[i];
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
        _exit(126);
    setsid(); /* signals to the test's group are not for it */
    execvp("node", (char *const *)argv);
    _exit(127);
}

int csn_double_start(const char *file, const char *const *args)
{
    const char *dir = getenv("CSN_TEST_DOUBLES");
    char path[4096];
    int in[2], out[2];

    if (!dir)
        return fail("CSN_TEST_DOUBLES does not say where the doubles are");
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (access(path, R_OK) != 0)
        return fail("the double is not there");
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return fail("no pipe for the double");
    pid_t pid = fork();
    if (pid == 0)
        become(path, args, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    int port = pid < 0 ? fail("cannot fork") : read_port(out[0]);
    close(out[0]);
    if (port < 0) {
        close(in[1]);
    } else if (started_count < DOUBLES_MAX) {
        started[started_count].pid = pid;
        started[started_count++].fd = in[1];
    }
    int status = 0;
    if (port < 0 && pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
        WEXITSTATUS(status) == 127)
        return fail("node is not installed (Debian: nodejs)");
    return port;
}

void csn_double_end_all(void)
{
    while (started_count > 0) {
        started_count--;
        close(started[started_count].fd);
        while (waitpid(started[started_count].pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
}

int csn_double_e2b(const char *root)
{
    const char *const args[] = {"--root", root, NULL};
    char url[64];
    int port = csn_double_start("e2b.mjs", args);

    if (port < 0)
        return -1;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
    setenv("E2B_API_URL", url, 1);
    setenv("E2B_SANDBOX_URL", url, 1);
    setenv("E2B_API_KEY", "key-of-the-double", 1);
    unsetenv("E2B_DOMAIN");
    return 0;
}

/* No double: engine.mjs has started a real engine around the whole test. */
int csn_double_docker(const char *root)
{
    (void)root;
    return getenv("CSN_TEST_ENGINE") ? 0 : fail("no engine: run this by doubles/engine.mjs");
}

int csn_double_vercel(const char *root)
{
    const char *const args[] = {"--root", root, NULL};
    char url[64];
    int port = csn_double_start("vercel.mjs", args);

    if (port < 0)
        return -1;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/api", port);
    setenv("CAISSON_VERCEL_URL", url, 1);
    setenv("VERCEL_TOKEN", "token-of-the-double", 1);
    setenv("VERCEL_TEAM_ID", "team_double", 1);
    setenv("VERCEL_PROJECT_ID", "prj_double", 1);
    unsetenv("VERCEL_OIDC_TOKEN");
    return 0;
}

int csn_double_dagger(const char *root)
{
    const char *const args[] = {"--root", root, "--token", "token-of-the-double", NULL};
    char text[16];
    int port = csn_double_start("dagger.mjs", args);

    if (port < 0)
        return -1;
    snprintf(text, sizeof(text), "%d", port);
    setenv("DAGGER_SESSION_PORT", text, 1);
    setenv("DAGGER_SESSION_TOKEN", "token-of-the-double", 1);
    return 0;
}
