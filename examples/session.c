/* session.c: a shell that keeps its state. Commands of one session share the working directory,
 * variables and functions; a command outside of it sees none of them. A session is what an
 * agent's `bash` tool needs.
 *
 *   cc -std=c11 -Wall session.c $(pkg-config --cflags --libs caisson) -o session && ./session
 */
#include <caisson/caisson.h>
#include <stdio.h>

/* session NULL: a command on its own. */
static csn_status run(csn_sandbox *sb, const char *session, const char *command,
                      csn_error **err)
{
    csn_exec_result *res = NULL;
    csn_status st = csn_sh(sb, command, CSN_OPTS(csn_exec_opts, .session = session), &res, err);

    if (st == CSN_OK)
        printf("$ %s\n%s", command, res->out.data);
    csn_exec_result_free(res);
    return st;
}

int main(void)
{
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;
    int ok = csn_open(NULL, &sb, &err) == CSN_OK &&
             run(sb, "work", "cd /tmp && answer=42", &err) == CSN_OK &&
             run(sb, "work", "echo $answer in $PWD", &err) == CSN_OK &&
             run(sb, NULL, "echo ${answer-nothing}", &err) == CSN_OK;

    if (!ok)
        fprintf(stderr, "%s\n", csn_error_message(err));
    csn_close(sb);
    csn_error_free(err);
    return ok ? 0 : 1;
}
