/* fuzz_tar.c: the input is a tar stream, as somebody sends it for import.
 *
 * Beside not crashing: whatever reaches the callback keeps the promises of archive/tar.h, which
 * the consumer builds its own safety on, and the limits hold. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/tar.h"
#include "base/error.h"

#define ENTRIES 50u
#define BYTES   100000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const csn_tar_api *api;

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

/* The module is where the build leaves it: two directories above this program. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char path[4300];
    csn_error *err = NULL;

    (void)argc;
    (void)argv;
    ssize_t n = readlink("/proc/self/exe", path, 4096);
    must(n > 0);
    path[n] = '\0';
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(path, '/');
        must(slash);
        *slash = '\0';
    }
    snprintf(path + strlen(path), 100, "/caisson-archive.so");
    csn_tar_module_path_set(getenv("CSN_TEST_MODULE") ? getenv("CSN_TEST_MODULE") : path);
    if (csn_tar_load(&api, &err) < 0) {
        fprintf(stderr, "%s\n", csn_error_message(err));
        exit(1);
    }
    return 0;
}

typedef struct input {
    const uint8_t *data;
    size_t left;
    uint64_t entries, bytes;
} input;

static int64_t input_read(void *ctx, void *buf, size_t len)
{
    input *in = ctx;
    size_t n = len < in->left ? len : in->left;

    memcpy(buf, in->data, n);
    in->data += n;
    in->left -= n;
    return (int64_t)n;
}

static bool plain(const char *p)
{
    for (;;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        if (!p[n])
            return true;
        p += n + 1;
    }
}

static csn_status entry(void *ctx, const csn_tar_entry *e, const csn_source *data,
                        csn_error **err)
{
    input *in = ctx;
    uint32_t type = e->mode & S_IFMT;
    uint64_t got = 0;
    char chunk[300];
    int64_t n = 0;

    must(plain(e->path));
    must(type == S_IFREG || type == S_IFDIR || type == S_IFLNK);
    must((e->mode & ~(uint32_t)(S_IFMT | 0777)) == 0);
    must((type == S_IFLNK) == (e->target && e->target[0]));
    must(++in->entries <= ENTRIES);
    must((in->bytes += e->file_size) <= BYTES);
    if (in->entries % 3 == 0)
        return CSN_OK; /* not read: skipped */
    while ((n = data->read(data->ctx, chunk, sizeof(chunk))) > 0)
        got += (uint64_t)n;
    must(type != S_IFREG || got <= e->file_size);
    if (n < 0 && in->entries % 2 == 0)
        return csn_fail(err, CSN_IO, "data");
    return CSN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {.data = data, .left = size};
    const csn_source source = {.read = input_read, .ctx = &in};
    csn_error *err = NULL;

    csn_status st = api->read(&source, ENTRIES, BYTES, entry, &in, &err);
    must((st < 0) == (err != NULL));
    must(st == CSN_OK || csn_error_message(err)[0]);
    csn_error_free(err);
    return 0;
}
