/* cmd_race.c: `race`: runs candidates in forks of one copy-on-write sandbox, side by side, and
 * keeps the changes of one.
 *
 * The forks are not detached: they end with this process, whatever happens, and leave nothing
 * behind. A thread runs each candidate; the main thread draws the status lines and decides. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"
#include "cli/changes_view.h"
#include "cli/commands.h"
#include "cli/run_review.h"
#include "cli/sandbox_opts.h"
#include "cli/tool_dirs.h"
#include "wire/result_json.h"
#include "wire/workspace_json.h"

#define COUNT_MAX  64u
#define EACH_MAX   (1024u * 1024u)
#define OUTPUT_MAX (256u * 1024u)
#define REPAINT_MS 200

typedef struct race_opts {
    csn_sandbox_opts sandbox;
    uint64_t count;
    const char *command, *each, *commit;
    csn_review_opts review;
} race_opts;

typedef struct candidate {
    struct race *race;
    csn_sandbox *sb;
    const char *command; /* a shell string, or NULL: the race's argv */
    pthread_t thread;
    bool started, ended;
    double ms;
    csn_exec_result *result; /* NULL: failed with `err` */
    csn_error *err;
    csn_diff_result *diff; /* or NULL */
} candidate;

typedef struct race {
    csn_cli *c;
    const race_opts *o;
    uint64_t timeout;
    csn_cancel *stop;
    candidate *v;
    size_t count;
    pthread_mutex_t lock; /* guards what follows, and `ended` of each candidate */
    pthread_cond_t changed;
    size_t running;
    size_t first; /* the first that succeeded, counted from 1; 0: none */
} race;

static bool succeeded(const candidate *k)
{
    return k->result && !k->result->failed;
}

static bool is_first_success(const race *r)
{
    return r->o->commit && strcmp(r->o->commit, "first-success") == 0;
}

/* ---- running ------------------------------------------------------------------------- */

static void *run_one(void *arg)
{
    candidate *k = arg;
    race *r = k->race;
    const csn_diff_opts d = {.size = sizeof(d), .flags = CSN_DIFF_COUNTS};
    csn_exec_opts x = {.size = sizeof(x),
                       .flags = CSN_EXEC_KEEP_TAIL,
                       .timeout_ms = r->timeout,
                       .output_max = OUTPUT_MAX,
                       .cancel = r->stop};
    uint64_t start = csn_now_ns();

    (void)(k->command ? csn_sh(k->sb, k->command, &x, &k->result, &k->err)
                      : csn_exec(k->sb, r->c->argv, &x, &k->result, &k->err));
    k->ms = (double)(csn_now_ns() - start) / 1e6;
    (void)csn_diff(k->sb, &d, &k->diff, NULL);
    pthread_mutex_lock(&r->lock);
    k->ended = true;
    r->running--;
    if (r->first == 0 && succeeded(k)) {
        r->first = (size_t)(k - r->v) + 1;
        if (is_first_success(r))
            csn_cancel_fire(r->stop);
    }
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static const char *state_of(const candidate *k, char buf[32])
{
    const csn_exec_result *r = k->result;

    if (!k->ended)
        return "running";
    if (!r)
        return "failed";
    if (r->killed_by)
        return strcmp(r->killed_by, "cancel") == 0 ? "stopped" : r->killed_by;
    snprintf(buf, 32, "exit %d", r->exit_code);
    return buf;
}

/* With the lock held. */
static void draw(const race *r, bool again, uint64_t start)
{
    csn_autobuf text;
    char state[32];

    csn_buf_init(&text, 65536);
    if (again)
        csn_buf_printf(&text, "\033[%zuA", r->count);
    for (size_t i = 0; i < r->count; i++) {
        const candidate *k = &r->v[i];
        double s = k->ended ? k->ms / 1000 : (double)(csn_now_ns() - start) / 1e9;
        csn_buf_printf(&text, "\033[K[%zu] %s %.1fs\n", i + 1, state_of(k, state), s);
    }
    if (!text.err)
        (void)csn_cli_write(STDERR_FILENO, text.data, text.len);
}

/* Lines that have left the screen cannot be drawn again. */
static bool fits(size_t lines)
{
    struct winsize w;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && (w.ws_row == 0 || lines < w.ws_row);
}

/* Waits for all, and draws meanwhile if there is a terminal. */
static void wait_all(race *r)
{
    bool live = !r->c->json && fits(r->count), drawn = false;
    uint64_t start = csn_now_ns();
    struct timespec until;

    pthread_mutex_lock(&r->lock);
    while (r->running > 0) {
        if (live)
            draw(r, drawn, start);
        drawn = live;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += REPAINT_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
    }
    if (live)
        draw(r, drawn, start);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->count; i++)
        if (r->v[i].started)
            pthread_join(r->v[i].thread, NULL);
}

/* Makes the forks one after another, then starts all. */
static csn_status start_all(race *r, csn_error **err)
{
    for (size_t i = 0; i < r->count; i++) {
        csn_status st = csn_fork(r->c->sb, NULL, &r->v[i].sb, err);
        if (st < 0)
            return st;
    }
    for (size_t i = 0; i < r->count; i++) {
        candidate *k = &r->v[i];
        pthread_mutex_lock(&r->lock);
        r->running++;
        k->started = pthread_create(&k->thread, NULL, run_one, k) == 0;
        r->running -= !k->started;
        k->ended = !k->started;
        pthread_mutex_unlock(&r->lock);
    }
    return CSN_OK;
}

/* ---- results ------------------------------------------------------------------------- */

static void print_table(const race *r)
{
    char state[32];

    printf("%-5s %-10s %8s  %s\n", "INDEX", "STATUS", "TIME", "CHANGES");
    for (size_t i = 0; i < r->count; i++) {
        const candidate *k = &r->v[i];
        csn_autobuf size;
        csn_buf_init(&size, 256);
        if (k->diff)
            csn_view_totals(&size, k->diff->changes, k->diff->count);
        printf("%-5zu %-10s %7.2fs  %s\n", i + 1, state_of(k, state), k->ms / 1000,
               size.data ? size.data : "-");
        if (k->err)
            csn_cli_note(r->c, "%zu: %s", i + 1, csn_error_message(k->err));
    }
}

static void put_candidate(csn_json *j, const candidate *k, size_t index, bool committed)
{
    csn_json_object(j);
    csn_json_kuint(j, "index", index);
    csn_json_kstr(j, "command", k->command);
    csn_json_kbool(j, "committed", committed);
    csn_json_key(j, "result");
    if (k->result)
        csn_wire_exec(j, k->result);
    else
        csn_json_null(j);
    csn_json_key(j, "error");
    if (k->err)
        csn_wire_error(j, k->err, "race");
    else
        csn_json_null(j);
    csn_json_key(j, "diff");
    if (k->diff)
        csn_wire_diff(j, k->diff);
    else
        csn_json_null(j);
    csn_json_object_end(j);
}

static int print_json(const race *r, size_t committed)
{
    csn_answer a;
    csn_json *j = csn_answer_begin(&a);

    csn_json_array(j);
    for (size_t i = 0; i < r->count; i++)
        put_candidate(j, &r->v[i], i + 1, committed == i + 1);
    csn_json_array_end(j);
    return csn_answer_end(r->c, &a);
}

/* The number of a candidate in the text; 0: none. */
static size_t index_of(const char *text, size_t count)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    while (*end == '\n' || *end == '\r')
        end++;
    return *end == '\0' && n >= 1 && n <= count ? n : 0;
}

static bool is_none(const char *line)
{
    return strchr("\r\n", line[0]) || strcasecmp(line, "n\n") == 0 ||
           strcasecmp(line, "none\n") == 0;
}

/* Asks again after a mistake: the work of all candidates would be gone. */
static size_t ask(const race *r)
{
    char line[32];
    size_t chosen = 0;

    for (;;) {
        fprintf(stderr, "commit which [1-%zu], none [N]: ", r->count);
        if (!fgets(line, sizeof(line), stdin) || is_none(line))
            return 0;
        chosen = index_of(line, r->count);
        if (chosen > 0)
            return chosen;
        for (const char *end = strchr(line, '\n'); !end; end = strchr(line, '\n'))
            if (!fgets(line, sizeof(line), stdin))
                return 0;
        fprintf(stderr, "answer 1 to %zu, or n\n", r->count);
    }
}

static size_t choose(const race *r)
{
    bool terminal = !r->c->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    const char *how = r->o->commit ? r->o->commit : terminal ? "ask" : "none";

    if (csn_cli_caught() || strcmp(how, "none") == 0)
        return 0;
    if (strcmp(how, "first-success") == 0)
        return r->first;
    return strcmp(how, "ask") == 0 ? ask(r) : index_of(how, r->count);
}

static int finish(race *r)
{
    csn_sandbox *base = r->c->sb;

    if (!r->c->json)
        print_table(r);
    fflush(stdout);
    size_t chosen = choose(r);
    int status = chosen > 0 || r->first > 0 ? 0 : CSN_EXIT_FAILED;
    if (is_first_success(r) && chosen == 0)
        csn_cli_note(r->c, "no candidate succeeded: nothing is kept");
    else if (chosen == 0 && !csn_cli_caught())
        csn_cli_note(r->c, "nothing is kept");
    if (chosen > 0) {
        r->c->sb = r->v[chosen - 1].sb;
        status = csn_review_keep(r->c, &r->o->review, NULL);
        r->c->sb = base;
    }
    if (r->c->json) {
        int printed = print_json(r, status == 0 ? chosen : 0);
        status = printed ? printed : status;
    }
    return csn_cli_exit_of(status);
}

/* ---- the command --------------------------------------------------------------------- */

static bool names_index(const race_opts *o)
{
    static const char *const words[] = {"first-success", "ask", "none", NULL};

    return o->commit && !csn_strv_has(words, o->commit);
}

static int check(csn_cli *c, void *opts)
{
    const race_opts *o = opts;

    if ((o->each != NULL) + (o->command != NULL) + (c->argv != NULL) != 1)
        return csn_cli_usage(c, "caisson race -n 4 -- COMMAND, or --each FILE",
                             "give one of -c, --each and a command after --");
    if (c->argv && !c->argv[0])
        return csn_cli_usage(c, NULL, "no command after --");
    if (o->each && o->count)
        return csn_cli_usage(c, NULL, "--each has one candidate a line: no -n");
    if (o->count > COUNT_MAX)
        return csn_cli_usage(c, NULL, "-n: at most %u", COUNT_MAX);
    if (names_index(o) && !index_of(o->commit, COUNT_MAX))
        return csn_cli_usage(
            c, NULL, "--commit '%.64s' is not first-success, ask, none or an index", o->commit);
    return 0;
}

/* One candidate for each line of the file that is not empty. */
static csn_status read_each(race *r, csn_arena *a, csn_error **err)
{
    csn_autofree char *text = NULL;
    size_t len = 0;
    csn_status st = csn_cli_slurp(r->o->each, EACH_MAX, &text, &len, err);
    char *rest = text;

    for (char *line; st == CSN_OK && (line = strsep(&rest, "\n"));) {
        if (!*line)
            continue;
        if (r->count == COUNT_MAX)
            return csn_fail(err, CSN_TOO_LARGE, "--each: more than %u commands", COUNT_MAX);
        r->v[r->count++].command = csn_arena_strdup(a, line);
    }
    return st;
}

static int race_in(race *r, csn_arena *a, const csn_config *config)
{
    csn_error *err = NULL;

    r->v = csn_arena_array(a, COUNT_MAX, sizeof(*r->v));
    if (!r->v)
        return csn_cli_fail_text(r->c, CSN_NOMEM, "out of memory");
    if (r->o->each && read_each(r, a, &err) < 0)
        return csn_cli_fail(r->c, err);
    if (!r->o->each) {
        r->count = r->o->count ? r->o->count : 2;
        for (size_t i = 0; i < r->count; i++)
            r->v[i].command = r->o->command;
    }
    for (size_t i = 0; i < r->count; i++)
        r->v[i].race = r;
    if (r->count == 0)
        return csn_cli_fail_text(r->c, CSN_INVALID, "--each '%s': no command", r->o->each);
    if (names_index(r->o) && !index_of(r->o->commit, r->count))
        return csn_cli_usage(r->c, NULL, "--commit %s: there %s %zu candidate%s", r->o->commit,
                             r->count == 1 ? "is" : "are", r->count, r->count == 1 ? "" : "s");
    if (csn_open(config, &r->c->sb, &err) < 0)
        return csn_sandbox_opts_fail(r->c, &r->o->sandbox, config, err);
    int status = 0;
    if (start_all(r, &err) < 0) {
        status = csn_cli_fail(r->c, err);
    } else {
        wait_all(r);
        status = finish(r);
    }
    for (size_t i = 0; i < r->count; i++) {
        csn_exec_result_free(r->v[i].result);
        csn_diff_result_free(r->v[i].diff);
        csn_error_free(r->v[i].err);
        csn_close(r->v[i].sb);
    }
    csn_close(r->c->sb);
    return status;
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    race_opts *o = opts;
    race r = {.c = c, .o = o};
    csn_error *err = NULL;
    csn_config config;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    if (csn_sandbox_opts_config(&o->sandbox, a, &config, &err) < 0)
        return csn_cli_fail(c, err);
    config.name = NULL;
    config.flags = (config.flags & ~CSN_OPEN_DETACHED) | CSN_OPEN_COW;
    if (csn_tool_dirs_add(c, a, &config, NULL, &err) < 0)
        return csn_cli_fail(c, err);
    if (csn_cancel_new(&r.stop, &err) < 0)
        return csn_cli_fail(c, err);
    r.timeout = config.timeout_ms ? config.timeout_ms : CSN_NO_LIMIT;
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.changed, NULL);
    csn_cli_catch_signals(r.stop);
    int status = race_in(&r, a, &config);
    csn_cli_catch_signals(NULL);
    csn_cancel_free(r.stop);
    pthread_cond_destroy(&r.changed);
    pthread_mutex_destroy(&r.lock);
    return status;
}

#define AT(field) offsetof(race_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_COUNT, 'n', "count", AT(count), "COUNT", "how many candidates, default 2", NULL},
    {CSN_OPT_STR, 'c', NULL, AT(command), "STRING", "a shell string as the command", NULL},
    {CSN_OPT_STR, 0, "each", AT(each), "FILE", "one candidate a line, as shell strings", NULL},
    {CSN_OPT_STR, 0, "commit", AT(commit), "WHICH",
     "first-success, an index, ask or none; default: ask on a terminal", NULL},
    {CSN_OPT_FLAG, 0, "allow-protected", AT(review.allow_protected), NULL,
     "also write files that programs of the host would run", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_race = {
    .name = "race",
    .args = "",
    .usage = "[-n COUNT] [--commit WHICH] [SANDBOX OPTIONS]\n"
             "       (-c STRING | --each FILE | -- ARGV...)",
    .summary = "try several ways at once, and keep one",
    .intro =
        "Runs candidates side by side, each in a fork of one copy-on-write sandbox, and\n"
        "prints exit status, time and size of the changes of each. The changes of one are\n"
        "written to the workspace, those of the others are thrown away. With --commit\n"
        "first-success the others are stopped when the first one exits with 0.\n"
        "\n"
        "--json has the output of each. Exit status: 0 if changes were written, or one\n"
        "candidate succeeded; else 1.",
    .examples = "  caisson race -n 4 --commit first-success -- ./agent 'fix the test'\n"
                "  caisson race --each ways.txt --commit ask\n",
    .groups = {{"Race options", options, 0},
               {"Sandbox options", csn_sandbox_opt_table, offsetof(race_opts, sandbox)}},
    .opts_size = sizeof(race_opts),
    .flags = CSN_CMD_REST,
    .check = check,
    .run = run,
};
