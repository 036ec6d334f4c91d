/* hello.c: the example of README.md. Opens a sandbox on the current directory, runs one command
 * in it and prints what came back. No configuration is the default: the backend `jail`. On a
 * host that refuses what a jail is made of, csn_open fails and says why.
 *
 *   cc -std=c11 -Wall hello.c $(pkg-config --cflags --libs caisson) -o hello && ./hello */
#include <caisson/caisson.h>
#include <stdio.h>

int main(void)
{
    csn_sandbox *sb = NULL;
    csn_exec_result *res = NULL;
    csn_error *err = NULL;

    if (csn_open(NULL, &sb, &err) == CSN_OK &&
        csn_sh(sb, "echo hello from $PWD", NULL, &res, &err) == CSN_OK)
        printf("exit %d: %s", res->exit_code, res->out.data);
    else
        fprintf(stderr, "%s\n", csn_error_message(err));
    int status = res ? res->exit_code : 1;
    csn_exec_result_free(res);
    csn_close(sb);
    csn_error_free(err);
    return status;
}
