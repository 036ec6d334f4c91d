/* cow_work.c: ordinary work in a copy-on-write workspace against the same in a workspace that
 * the jail writes to.
 *
 * git status on a large tree reads, unpacking a package archive makes many small files, a C
 * build does both. Two directories have the same files, and each sample of the one is followed
 * or preceded by one of the other; what a command made is removed between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cow.h"
#include "measure.h"

#define FILES    10000
#define SOURCES  24
#define PACKAGES 200
#define MEMBERS  10

typedef struct task {
    const char *name, *command;
    const char *clean; /* removes what the command made; NULL: nothing */
} task;

static csn_sandbox *direct, *copied;
static const task *now;

static uint64_t in_direct(void)
{
    uint64_t took = cow_sh(direct, now->command);

    if (now->clean)
        (void)cow_sh(direct, now->clean);
    return took;
}

static uint64_t in_cow(void)
{
    csn_error *err = NULL;
    uint64_t took = cow_sh(copied, now->command);

    if (now->clean)
        cow_must(csn_discard(copied, &err), "discard", err);
    return took;
}

/* ---- the files ---- */

static void make_sources(const char *dir)
{
    static const char function[] = "int f%d_%d(int n)\n{\n    int s = 0;\n"
                                   "    for (int i = 0; i < n; i++)\n"
                                   "        s += printf(\"%%d\\n\", i) * %d;\n"
                                   "    return s;\n}\n";
    char path[400], text[16384];

    for (int i = 0; i < SOURCES; i++) {
        int len = snprintf(text, sizeof(text), "#include <stdio.h>\n#include <stdlib.h>\n");
        for (int k = 0; k < 40; k++)
            len += snprintf(text + len, sizeof(text) - (size_t)len, function, i, k, i + k);
        if (i == 0)
            len += snprintf(text + len, sizeof(text) - (size_t)len,
                            "int main(void)\n{\n    return f0_0(0);\n}\n");
        snprintf(path, sizeof(path), "%s/src/s%d.c", dir, i);
        cow_write_file(path, text, (size_t)len);
    }
}

static void make_archive(const char *dir)
{
    char modules[320], path[400], archive[400], data[2048];
    const char *const tar[] = {"tar", "cf", archive, "-C", modules, ".", NULL};

    memset(data, 'y', sizeof(data));
    snprintf(modules, sizeof(modules), "%s/modules", cow.top);
    snprintf(archive, sizeof(archive), "%s/modules.tar", dir);
    if (mkdir(modules, 0755) < 0)
        bench_die("%s: %m", modules);
    for (int p = 0; p < PACKAGES; p++) {
        snprintf(path, sizeof(path), "%s/package-%d", modules, p);
        if (mkdir(path, 0755) < 0)
            bench_die("%s: %m", path);
        for (int i = 0; i < MEMBERS; i++) {
            snprintf(path, sizeof(path), "%s/package-%d/file-%d.js", modules, p, i);
            cow_write_file(path, data, sizeof(data));
        }
    }
    cow_run(tar);
    cow_remove(modules);
}

static void make_repository(const char *dir)
{
    const char *const init[] = {"git", "-C", dir, "init", "-q", NULL};
    const char *const add[] = {"git", "-C", dir, "add", "-A", NULL};
    const char *const commit[] = {"git",          "-C",     dir,  "-c", "user.name=b", "-c",
                                  "user.email=b", "commit", "-q", "-m", "all",         NULL};
    char path[400];

    cow_make_tree(dir, FILES);
    snprintf(path, sizeof(path), "%s/src", dir);
    if (mkdir(path, 0755) < 0)
        bench_die("%s: %m", path);
    make_sources(dir);
    make_archive(dir);
    cow_run(init);
    cow_run(add);
    cow_run(commit);
}

/* ---- the contest ---- */

static unsigned compare(const task *t, size_t rounds, size_t runs)
{
    enum { SPAWN, DIRECT, COW };
    bench_contestant list[] = {
        [SPAWN] = {.name = "posix_spawn", .run = cow_spawn_true, .wanted = true},
        [DIRECT] = {.name = "direct", .run = in_direct, .wanted = true},
        [COW] = {.name = "copy-on-write", .run = in_cow, .wanted = true},
    };
    bench_contest c = {
        .list = list, .count = 3, .reference = SPAWN, .rounds = rounds, .runs = runs};
    char what[64];

    now = t;
    printf("\n%s\n", t->name);
    bench_contest_run(&c);
    snprintf(what, sizeof(what), "f. %s, copy-on-write / direct", t->name);
    return !bench_ratio(&c, what, COW, DIRECT, 1.1, 1.0);
}

unsigned cow_part_work(size_t rounds, size_t runs)
{
    static const task tasks[] = {
        {"git status", "git status --porcelain", NULL},
        {"unpacking packages", "mkdir node_modules && tar xf modules.tar -C node_modules",
         "rm -rf node_modules"},
        {"C build",
         "mkdir obj && for f in src/*.c; do o=${f##*/}; cc -O1 -c $f -o obj/${o%.c}.o || exit "
         "1; "
         "done && cc -o obj/app obj/*.o",
         "rm -rf obj"},
    };
    unsigned missed = 0;

    printf("\nwork in a tree of %d files; %d packages of %d files; %d sources\n", FILES,
           PACKAGES, MEMBERS, SOURCES);
    make_repository(cow.tree);
    make_repository(cow.direct);
    copied = cow_open(cow.tree, CSN_OPEN_COW);
    direct = cow_open(cow.direct, 0);
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
        missed += compare(&tasks[i], rounds, runs);
    csn_close(copied);
    csn_close(direct);
    cow_remove(cow.tree);
    cow_remove(cow.direct);
    return missed;
}
