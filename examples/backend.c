/* backend.c: a backend of one's own, in one function.
 *
 * Only `name` and `exec` are needed: the core derives every file operation from exec. This one
 * starts commands with posix_spawn and gives all their output to the sink. It honours cwd,
 * input and the exit status, and leaves out what a real one must have: the deadline and cancel
 * descriptors of the request. See caisson-backends(7).
 *
 *   cc -std=c11 -Wall backend.c $(pkg-config --cflags --libs caisson) -o backend && ./backend
 */
#define _GNU_SOURCE
#include <caisson/backend.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Feeds the request's input from a file without a name: no pipe to deadlock on. */
static int input_file(const csn_exec_req *req)
{
    char buf[4096];
    FILE *f = tmpfile();
    int fd;

    if (!f)
        return -1;
    for (int64_t n;
         req->input && (n = req->input->read(req->input->ctx, buf, sizeof(buf))) > 0;)
        fwrite(buf, 1, (size_t)n, f);
    fflush(f);
    rewind(f);
    fd = dup(fileno(f));
    fclose(f);
    return fd;
}

static csn_status example_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                               csn_exec_end *ret, csn_error **err)
{
    int out[2], in, rc, status;
    posix_spawn_file_actions_t fa;
    char buf[65536];
    pid_t pid;

    (void)state;
    if ((in = input_file(req)) < 0 || pipe(out) < 0)
        return csn_error_set(err, CSN_IO, "example: no descriptors");
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addchdir_np(&fa, req->cwd ? req->cwd : "/");
    posix_spawn_file_actions_adddup2(&fa, in, 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    if (req->flags & CSN_EXEC_MERGE)
        posix_spawn_file_actions_adddup2(&fa, out[1], 2);
    posix_spawn_file_actions_addclosefrom_np(&fa, 3);
    rc = posix_spawnp(&pid, req->argv[0], &fa, NULL, (char *const *)req->argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    close(in);
    close(out[1]);
    if (rc != 0) {
        close(out[0]);
        ret->how = CSN_END_SPAWN;
        ret->exit_code = 127;
        snprintf(ret->message, sizeof(ret->message), "%s: %s", req->argv[0],
                 strerrordesc_np(rc));
        return CSN_OK;
    }
    for (ssize_t n; (n = read(out[0], buf, sizeof(buf))) > 0;)
        if (sink->write(sink->ctx, CSN_STDOUT, buf, (size_t)n) == CSN_SINK_STOP)
            kill(pid, SIGKILL);
    close(out[0]);
    waitpid(pid, &status, 0);
    ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return CSN_OK;
}

static const csn_backend_ops example = {
    .size = sizeof(example), .name = "example", .isolation = "none", .exec = example_exec};

int main(void)
{
    char dir[] = "/tmp/caisson-example-XXXXXX";
    csn_sandbox *sb = NULL;
    csn_read_result *text = NULL;
    csn_error *err = NULL;
    int ok = 0;

    if (!mkdtemp(dir))
        return 1;
    /* Neither write nor read is in the table: both arrive as commands. */
    if (csn_register_backend(&example, NULL, &err) == CSN_OK &&
        csn_open(CSN_OPTS(csn_config, .backend = "example", .workdir = dir), &sb, &err) ==
            CSN_OK &&
        csn_write(sb, "note.txt", "hello\n", 6, NULL, NULL, &err) == CSN_OK &&
        csn_read(sb, "note.txt", NULL, &text, &err) == CSN_OK &&
        csn_delete(sb, "note.txt", 0, &err) == CSN_OK) {
        printf("read back: %s", text->content);
        ok = strcmp(text->content, "hello\n") == 0;
    } else {
        fprintf(stderr, "%s\n", csn_error_message(err));
    }
    csn_read_result_free(text);
    csn_close(sb);
    csn_error_free(err);
    rmdir(dir);
    return ok ? 0 : 1;
}
