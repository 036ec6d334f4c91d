/* vercel_targz.c: the archive in which a file travels, read back by tar and gzip themselves.
 *
 * Lengths around every boundary: of a tar block, of a stored block; names around those that a
 * plain header can hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/vercel/targz.h"
#include "support/support.h"

#define MEMBER(n, m, f, s) (&(csn_ustar_member){.name = n, .mode = m, .fd = f, .size = s})

static char *dir;

static int setup(void **state)
{
    (void)state;
    dir = csn_test_tmpdir();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    csn_test_remove(dir);
    free(dir);
    return 0;
}

static FILE *memory(void)
{
    int fd = memfd_create("content", MFD_CLOEXEC);

    return fd < 0 ? NULL : fdopen(fd, "w+e");
}

/* Writes the archive of `size` bytes under `name`, in pieces of `piece`. */
static void pack(const char *name, const char *data, size_t size, size_t piece)
{
    FILE *content = memory();
    csn_targz *t = calloc(1, sizeof(*t));
    char *path = csn_test_join(dir, "a.tgz"), *buf = malloc(piece);
    uint64_t total = 0;
    int64_t n;

    assert_true(content && t && buf);
    assert_int_equal(fwrite(data, 1, size, content), size);
    assert_int_equal(fflush(content), 0);
    assert_int_equal(csn_targz_init(t, MEMBER(name, 0640, fileno(content), size)), 0);
    assert_true(csn_targz_read(t, buf, 1) == 1); /* and from the start again */
    csn_targz_rewind(t);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    while ((n = csn_targz_read(t, buf, piece)) > 0) {
        assert_int_equal(fwrite(buf, 1, (size_t)n, out), n);
        total += (uint64_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(total, csn_targz_length(t));
    fclose(out);
    fclose(content);
    csn_targz_release(t);
    free(t);
    free(buf);
    free(path);
}

static int shell(const char *text)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void unpack(const char *name, const char *data, size_t size)
{
    char *cmd = csn_test_format(
        "cd '%s' && rm -rf x && mkdir x && gzip -t a.tgz && "
        "tar -xzf a.tgz -C x --no-same-owner && find x -type f -printf x | wc -c "
        ">count",
        dir);
    char *file = csn_test_format("%s/x/%s", dir, name);
    char *count = csn_test_join(dir, "count");
    size_t len = 0;

    assert_int_equal(shell(cmd), 0);
    char *text = csn_test_get(count, &len);
    assert_string_equal(text, "1\n");
    free(text);
    text = csn_test_get(file, &len);
    assert_non_null(text);
    assert_int_equal(len, size);
    assert_memory_equal(text, data, size);
    free(text);
    free(count);
    free(file);
    free(cmd);
}

static void lengths_around_every_boundary(void **state)
{
    static const size_t sizes[] = {0,     1,     511,   512,   513,    63486,
                                   63487, 63488, 65535, 65536, 131070, 300001};
    char *data = malloc(300001);

    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < 300001; i++)
        data[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pack("tmp/file", data, sizes[i], i % 2 ? 997 : 100000);
        unpack("tmp/file", data, sizes[i]);
    }
    free(data);
}

static void names_of_any_kind(void **state)
{
    char hundred[101], more[102], deep[700];

    (void)state;
    memset(hundred, 'n', 100);
    hundred[100] = '\0';
    memset(more, 'm', 101);
    more[101] = '\0';
    memset(deep, 'd', sizeof(deep) - 1);
    for (size_t i = 99; i < sizeof(deep) - 2; i += 100)
        deep[i] = '/';
    deep[sizeof(deep) - 1] = '\0';
    const char *const names[] = {hundred, more, deep, "h\303\251llo", "a b/\344\270\226",
                                 "=\n="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        pack(names[i], "content", 7, 64);
        unpack(names[i], "content", 7);
    }
}

static void content_that_is_shorter_than_said(void **state)
{
    FILE *content = memory();
    csn_targz *t = calloc(1, sizeof(*t));
    char buf[4096];
    int64_t n;

    (void)state;
    assert_true(content && t);
    assert_int_equal(csn_targz_init(t, MEMBER("f", 0644, fileno(content), 10)), 0);
    while ((n = csn_targz_read(t, buf, sizeof(buf))) > 0)
        continue;
    assert_int_equal(n, -1);
    csn_targz_release(t);
    assert_int_not_equal(csn_targz_init(t, MEMBER("f", 0644, fileno(content), UINT64_MAX / 2)),
                         0);
    csn_targz_release(t);
    free(t);
    fclose(content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lengths_around_every_boundary, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_any_kind, setup, teardown),
        cmocka_unit_test(content_that_is_shorter_than_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
