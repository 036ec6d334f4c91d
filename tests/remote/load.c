/* load.c: many requests through one sandbox: neither memory, nor descriptors, nor threads grow.
 *
 *   remote_load [REQUESTS]
 *
 * Mostly calls that are one cheap request each; among them commands, files, watches and
 * requests that fail. Short in the suite; tools/stress runs 10 000. */
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "remote/fixture.h"

#define THREADS 4

static unsigned long requests = 600;

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static size_t resident_kb(void)
{
    unsigned long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu %lu", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static bool one_command(void)
{
    csn_exec_result *r = NULL;
    csn_status st = csn_exec(sb, (const char *const[]){"echo", "x", NULL}, NULL, &r, NULL);
    bool good = st == CSN_OK && r->exit_code == 0 && r->out.len == 2;

    csn_exec_result_free(r);
    return good;
}

static bool one_file(void)
{
    csn_read_result *r = NULL;
    bool good = csn_read(sb, "file", NULL, &r, NULL) == CSN_OK && r->content_len == 4;

    csn_read_result_free(r);
    r = NULL;
    return good && csn_read(sb, "missing", NULL, &r, NULL) == CSN_NOT_FOUND;
}

static bool one_watch(void)
{
    csn_watch *w = NULL;
    csn_status st = csn_watch_open(sb, ".", 0, &w, NULL);

    csn_watch_free(w);
    return st == CSN_OK;
}

typedef struct work {
    unsigned long count, good;
} work;

static void *do_many(void *arg)
{
    work *w = arg;

    for (unsigned long i = 0; i < w->count; i++) {
        bool good = i % 30 == 10   ? one_command()
                    : i % 30 == 20 ? one_file()
                    : i % 100 == 1 ? one_watch()
                                   : csn_extend(sb, 300000, NULL) == CSN_OK;
        if (!good && w->good == i)
            print_message("number %lu is the first to fail\n", i);
        w->good += good;
    }
    return NULL;
}

static void run(unsigned long count)
{
    work w[THREADS];
    pthread_t t[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        w[i] = (work){.count = count / THREADS};
        assert_int_equal(pthread_create(&t[i], NULL, do_many, &w[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(w[i].good, w[i].count);
    }
}

static void nothing_grows(void **state)
{
    (void)state;
    ready();
    char *path = csn_test_join(ws, "file");
    csn_test_put(path, "abc\n", 4);
    free(path);
    run(requests / 4);
    size_t heap = heap_bytes(), kb = resident_kb(), fds = csn_test_fd_count();
    run(requests - requests / 4);
    print_message("heap %zu to %zu bytes, resident %zu to %zu KiB, descriptors %zu to %zu\n",
                  heap, heap_bytes(), kb, resident_kb(), fds, csn_test_fd_count());
    assert_true(csn_test_fd_count() <= fds + 4); /* a connection more or less */
#ifndef __SANITIZE_ADDRESS__                     /* its quarantine grows on purpose */
    assert_true(heap_bytes() <= heap + 512 * 1024);
    assert_true(resident_kb() <= kb + 4096);
#endif
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_grows, setup, teardown),
    };

    if (argc > 1)
        requests = strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
