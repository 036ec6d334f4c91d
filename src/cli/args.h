/* args.h: parses command-line options into structs, as described by tables.
 *
 * A row names an option, its kind and the offset of the field that it fills. Help, error
 * messages and shell completion come from the same row. Strings point into argv; lists are
 * copies, which csn_args_release frees. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum csn_opt_kind {
    CSN_OPT_END = 0,
    CSN_OPT_FLAG,     /* bool */
    CSN_OPT_STR,      /* const char * */
    CSN_OPT_LIST,     /* char **, one item for each use */
    CSN_OPT_U64,      /* uint64_t, may be 0 */
    CSN_OPT_COUNT,    /* uint64_t, at least 1 */
    CSN_OPT_LIMIT,    /* the same; "none" is CSN_NO_LIMIT */
    CSN_OPT_SIZE,     /* uint64_t, 512K 64M 2G, at least 1; "none" is CSN_NO_LIMIT */
    CSN_OPT_DURATION, /* uint64_t in ms; 0 and "none" are CSN_NO_LIMIT */
    CSN_OPT_CPUS,     /* uint64_t in thousandths: 0.5, 2 */
} csn_opt_kind;

typedef struct csn_opt {
    csn_opt_kind kind;
    char brief;          /* '\0': none */
    const char *name;    /* without the dashes; NULL: only the letter */
    size_t at;           /* offset in the group's struct */
    const char *metavar; /* name of the value in help; NULL for flags */
    const char *help;    /* NULL: an alias, not shown in help */
    const char *choices; /* STR: "a|b|c", NULL: any value */
} csn_opt;

typedef struct csn_opt_group {
    const char *title;
    const csn_opt *opts; /* NULL ends a list of groups */
    size_t at;           /* offset of the group's struct in the command's */
} csn_opt_group;

#define CSN_ARGS_GROUPS 4

/* An option with the value that was typed for it. */
typedef struct csn_typed {
    const csn_opt *opt;
    const char *value;
} csn_typed;

typedef struct csn_args {
    const csn_opt_group *groups; /* at most CSN_ARGS_GROUPS */
    void *into;                  /* the command's struct, with its defaults */
    bool rest_ok;                /* "--" starts an argument vector of its own */
    bool json, help;             /* --json and -h are options of every command */
    const char **pos;            /* positional arguments, NULL-terminated */
    size_t npos;
    csn_typed *typed; /* options with values, in the order of the command line */
    size_t ntyped;
    const char *const *rest; /* after "--" when rest_ok; NULL: no "--" */
} csn_args;

/* Message and hint for a wrong command line. */
typedef struct csn_usage {
    char message[512];
    char hint[256];
} csn_usage;

/* Parses argv[0..argc). Returns false and fills in `why` for a wrong command line. Call
 * csn_args_release in both cases. */
bool csn_args_parse(csn_args *a, int argc, char **argv, csn_usage *why);
void csn_args_release(csn_args *a);

/* The value that was typed for option `name`: the last one, or the nth of a list. NULL if it
 * was not typed. */
const char *csn_args_typed(const csn_args *a, const char *name, size_t nth);
/* Copies untrusted text for a message: escapes control bytes, shortens long text. */
void csn_args_quote(const char *text, char *ret, size_t size);
