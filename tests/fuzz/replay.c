/* replay.c: runs a fuzz target over files instead of under a fuzzer.
 *
 * Linked with each target in ordinary builds, so that every input that once crashed it is a
 * test of every suite run, with any compiler and no fuzzer. Arguments are files or directories;
 * each file is one input. Speaks TAP: one line an input. An input that crashes ends the
 * program, and with it the plan, which the test runner takes for a failure; the name is printed
 * before. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A target may have one; ours is for those that have none. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

#define INPUT_MAX (1u << 20)

static unsigned count;

static int run_bytes(const char *name, const uint8_t *data, size_t size)
{
    /* An exact heap copy: a read past the end is one the sanitizers see. */
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        return -1;
    if (size)
        memcpy(copy, data, size);
    printf("# %s\n", name);
    fflush(stdout);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    printf("ok %u - %s\n", ++count, name);
    return 0;
}

static int run_file(const char *path)
{
    static uint8_t data[INPUT_MAX];
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        perror(path);
        return -1;
    }
    for (;;) {
        ssize_t n = read(fd, data + len, sizeof(data) - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    const char *slash = strrchr(path, '/');
    return run_bytes(slash ? slash + 1 : path, data, len);
}

static int no_dots(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int run_dir(const char *path)
{
    struct dirent **names;
    int n = scandir(path, &names, no_dots, alphasort);
    int r = 0;

    if (n < 0) {
        perror(path);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (run_file(file) < 0)
            r = -1;
        free(names[i]);
    }
    free(names);
    return r;
}

int main(int argc, char **argv)
{
    int r = 0;

    LLVMFuzzerInitialize(&argc, &argv);
    /* Every target must stand nothing at all, and a byte that is no text. */
    if (run_bytes("(empty)", NULL, 0) < 0 ||
        run_bytes("(one byte)", (const uint8_t *)"\xff", 1) < 0)
        r = 1;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) < 0) {
            perror(argv[i]);
            r = 1;
        } else if ((S_ISDIR(st.st_mode) ? run_dir(argv[i]) : run_file(argv[i])) < 0) {
            r = 1;
        }
    }
    printf("1..%u\n", count);
    return r;
}
