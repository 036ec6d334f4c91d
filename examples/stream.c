/* stream.c: output while a command runs. The callback gets every byte as it arrives; here it
 * passes on what it gets and stops the command after the third line. A deadline would end the
 * command otherwise, with all of its children.
 *
 *   cc -std=c11 -Wall stream.c $(pkg-config --cflags --libs caisson) -o stream && ./stream */
#include <caisson/caisson.h>
#include <stdio.h>

struct lines {
    int seen, wanted;
};

/* Called on the thread of csn_sh. Any value but 0 cancels the command. */
static int on_output(void *ctx, int stream, const void *data, size_t len)
{
    struct lines *lines = ctx;
    const char *bytes = data;

    for (size_t i = 0; i < len && lines->seen < lines->wanted; i++) {
        fputc(bytes[i], stream == CSN_STDERR ? stderr : stdout);
        lines->seen += bytes[i] == '\n';
    }
    fflush(stdout);
    return lines->seen >= lines->wanted;
}

int main(void)
{
    struct lines lines = {.wanted = 3};
    csn_sandbox *sb = NULL;
    csn_exec_result *res = NULL;
    csn_error *err = NULL;
    int ok = csn_open(NULL, &sb, &err) == CSN_OK &&
             csn_sh(sb, "i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.1; done",
                    CSN_OPTS(csn_exec_opts, .timeout_ms = 60000, .on_output = on_output,
                             .on_output_ctx = &lines),
                    &res, &err) == CSN_OK;

    if (ok)
        printf("ended by: %s\n", res->killed_by ? res->killed_by : "itself");
    else
        fprintf(stderr, "%s\n", csn_error_message(err));
    csn_exec_result_free(res);
    csn_close(sb);
    csn_error_free(err);
    return ok ? 0 : 1;
}
