/* options.h: every option of a sandbox, in one table.
 *
 * A row describes one field of csn_config: its type, its name in JSON, its flag on the command
 * line, and the bit by which a backend declares that it honours the option. The JSON reader and
 * writer, the command line and its help, the refusal of options that a backend does not honour,
 * the capability words and the table in caisson-policy(5) all use these rows. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caisson/caisson.h"

/* The type of the field, and the forms that its value has in JSON and on the command line. */
typedef enum csn_option_type {
    CSN_TYPE_STRING,   /* const char * */
    CSN_TYPE_LIST,     /* const char *const *; JSON also accepts one string */
    CSN_TYPE_ENV,      /* a list of NAME or NAME=value; in JSON also {NAME: value} */
    CSN_TYPE_RULES,    /* rules and rule_count */
    CSN_TYPE_FLAG,     /* one bit of csn_config.flags */
    CSN_TYPE_SIZE,     /* uint64_t, bytes: 512K */
    CSN_TYPE_COUNT,    /* uint64_t */
    CSN_TYPE_CPUS,     /* uint64_t, thousandths: 0.5 */
    CSN_TYPE_DURATION, /* uint64_t, milliseconds: 30s */
} csn_option_type;

/* What a value of the option in a project's caisson.json may do before the user has trusted the
 * file (cli/narrow.c): nothing but narrow what a sandbox may do. */
typedef enum csn_direction {
    CSN_DIRECTION_UNDECIDED, /* counts as WIDENS */
    CSN_DIRECTION_WIDENS,    /* every value needs trust */
    CSN_DIRECTION_NARROWS,   /* no value grants anything */
    CSN_DIRECTION_SMALLER,   /* a number that is at most the one that holds without the file */
    CSN_DIRECTION_SUBSET,    /* a list of what the list that holds without the file also has */
    CSN_DIRECTION_DENIALS,   /* rules that deny */
    CSN_DIRECTION_NONE,      /* the word "none" */
    CSN_DIRECTION_SAME,      /* the value that holds without the file */
    CSN_DIRECTION_PROJECT,   /* the project's own directory */
} csn_direction;

/* As `usual`: three quarters of the machine's memory. */
#define CSN_USUAL_MEMORY 0u

typedef struct csn_option {
    const char *name; /* in JSON; "limits.memory" is the key "memory" of the object "limits" */
    csn_option_type type;
    size_t at;           /* offset in csn_config */
    uint64_t bit;        /* CSN_OPTION_*; 0: the core honours it for every backend */
    const char *flag;    /* on the command line, without the dashes; or NULL */
    const char *metavar; /* of its value; NULL: it takes none */
    const char *help;    /* NULL: not one of the options that run and create share */
    const char *word;    /* the capability of backends that honour it; or NULL */
    const char *choices; /* "a|b", or NULL: any value */
    uint32_t open_flag;  /* CSN_TYPE_FLAG: the CSN_OPEN_* bit */
    csn_direction direction;
    uint64_t usual; /* SMALLER: what holds when no value is set, for the strictest backend and
                       command */
} csn_option;

extern const csn_option csn_options[]; /* ends with a NULL name */
#define CSN_OPTION_COUNT 44u           /* at least the number of rows */

/* The option's key if it belongs to the JSON object `group` (NULL: to the top level), else
 * NULL. */
const char *csn_option_key(const csn_option *o, const char *group);
bool csn_option_is_set(const csn_option *o, const csn_config *c);

/* The field of `c`: const char *, const char *const * or uint64_t, as the type says. */
static inline void *csn_option_field(const csn_option *o, const csn_config *c)
{
    return (char *)(uintptr_t)c + o->at;
}

static inline const char **csn_option_string(const csn_option *o, const csn_config *c)
{
    return csn_option_field(o, c);
}

static inline const char *const **csn_option_list(const csn_option *o, const csn_config *c)
{
    return csn_option_field(o, c);
}

static inline uint64_t *csn_option_number(const csn_option *o, const csn_config *c)
{
    return csn_option_field(o, c);
}
