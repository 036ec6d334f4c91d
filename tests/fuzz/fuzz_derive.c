/* fuzz_derive.c: the input is what the tools of a sandbox answer to a derived file operation.
 *
 * First byte: which operation; second: how the answer is cut into writes; then stdout. Whoever
 * owns the sandbox owns its tools: nothing they say may crash the host, and a path that a list
 * passes on is a plain one. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/fallback.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

typedef struct answer {
    const uint8_t *data;
    size_t len, step;
} answer;

static csn_status answer_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                              csn_exec_end *ret, csn_error **err)
{
    const answer *a = state;
    char drop[4096];

    (void)err;
    while (req->input && req->input->read(req->input->ctx, drop, sizeof(drop)) > 0)
        continue;
    for (size_t at = 0; at < a->len; at += a->step) {
        size_t n = a->len - at < a->step ? a->len - at : a->step;
        /* an exact copy: what is read beyond it is seen */
        void *copy = malloc(n);
        must(copy != NULL);
        memcpy(copy, a->data + at, n);
        int next = sink->write(sink->ctx, at % 7 == 6 ? CSN_STDERR : CSN_STDOUT, copy, n);
        free(copy);
        if (next == CSN_SINK_STOP)
            break;
    }
    ret->how = CSN_END_EXITED;
    ret->exit_code = a->len > 0 && a->data[a->len - 1] == 0xff ? 113 : 0;
    return CSN_OK;
}

static int entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    unsigned *count = ctx;

    must(path[0] != '/' && !strstr(path, "//") && strcmp(path, "..") != 0);
    must(strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
    must((st->mode & 0170000) != 0);
    must(!target || strlen(target) < 1u << 20);
    return ++*count > 1000;
}

static int out(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    must(data != NULL);
    *(size_t *)ctx += len;
    return CSN_SINK_MORE;
}

static int64_t content(void *ctx, void *buf, size_t len)
{
    size_t *left = ctx;
    size_t n = len < *left ? len : *left;

    memset(buf, 'x', n);
    *left -= n;
    return (int64_t)n;
}

static void write_two(const csn_fs *fs, csn_error **err)
{
    size_t left[2] = {5, 7};
    csn_write_req reqs[2] = {
        {.path = "/a", .source = {.read = content, .ctx = &left[0]}},
        {.path = "/b", .source = {.read = content, .ctx = &left[1]}},
    };
    csn_written w[2] = {0};

    if (csn_derive_write(fs, reqs, 2, w, err) == CSN_OK)
        must(w[0].bytes == 5 && w[1].bytes == 7);
    free(w[0].resolved_path);
    free(w[1].resolved_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const csn_backend_ops ops = {.size = sizeof(ops), .name = "a", .exec = answer_exec};
    csn_file_stat st;
    char *target = NULL;
    csn_error *err = NULL;
    size_t got = 0;
    unsigned count = 0;

    if (size < 2)
        return 0;
    answer a = {.data = data + 2, .len = size - 2, .step = 1u + data[1]};
    const csn_fs fs = {.ops = &ops, .state = &a};
    const csn_sink sink = {.write = out, .ctx = &got};
    switch (data[0] % 5) {
    case 0:
        (void)csn_derive_list(&fs, "/d", 0, entry, &count, &err);
        break;
    case 1:
        (void)csn_derive_walk(&fs, "d", 0, entry, &count, &err);
        break;
    case 2:
        (void)csn_derive_stat(&fs, "/f", CSN_FILE_NOFOLLOW, &st, &target, &err);
        break;
    case 3:
        (void)csn_derive_read(&fs, "/f", 0, data[1], 1000, &sink, &st, &err);
        must(got <= 1000);
        break;
    default:
        write_two(&fs, &err);
        break;
    }
    free(target);
    csn_error_free(err);
    return 0;
}
