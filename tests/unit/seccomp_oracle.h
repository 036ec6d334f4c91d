/* seccomp_oracle.h: what the written policy says, read straight from its table.
 *
 * The tests compare with this, not with the generator: nothing here knows of trees, intervals
 * or instructions. Names and numbers come from the generated seccomp_names.inc, which
 * os_seccomp.c checks against the headers of the system. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "os/seccomp.h"
#include "os/seccomp_policy.h"

#include "seccomp_names.inc"

#define ORACLE_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ORACLE_NUMBERS  ORACLE_COUNT(x86_64_calls)

typedef struct oracle_abi {
    const char *name;
    uint32_t audit;
    const char *const *calls;
    uint32_t private_first, private_last; /* numbers outside the table that are allowed */
} oracle_abi;

static const oracle_abi oracle_x86_64 = {"x86_64", 0xc000003e, x86_64_calls, UINT32_MAX,
                                         UINT32_MAX};
static const oracle_abi oracle_i386 = {"i386", 0x40000003, i386_calls, UINT32_MAX, UINT32_MAX};
static const oracle_abi oracle_aarch64 = {"aarch64", 0xc00000b7, aarch64_calls, UINT32_MAX,
                                          UINT32_MAX};
static const oracle_abi oracle_arm = {"arm", 0x40000028, arm_calls, 0xf0001, 0xf0006};

#if defined(__aarch64__)
#define ORACLE_NATIVE oracle_aarch64
#else
#define ORACLE_NATIVE oracle_x86_64
#endif

static inline const char *oracle_name(const oracle_abi *abi, uint32_t number)
{
    return number < ORACLE_NUMBERS ? abi->calls[number] : NULL;
}

/* The number of a call, or -1. */
static inline int oracle_number(const oracle_abi *abi, const char *call)
{
    for (size_t n = 0; n < ORACLE_NUMBERS; n++) {
        if (abi->calls[n] && strcmp(abi->calls[n], call) == 0)
            return (int)n;
    }
    return -1;
}

static inline bool oracle_cond_holds(const csn_seccomp_cond *c, const uint64_t args[6])
{
    uint32_t value = (uint32_t)args[c->arg] & c->mask;
    bool listed = false;

    if (c->op == CSN_COND_NONE)
        return true;
    for (size_t i = 0; i < c->count; i++)
        listed = listed || c->values[i] == value;
    return listed == (c->op == CSN_COND_IN);
}

/* On i386 and arm only chown32 and the like, and fchownat, have ids of 32 bits. */
static inline bool oracle_short_ids(const oracle_abi *abi, const char *call)
{
    size_t len = strlen(call);

    return (abi == &oracle_i386 || abi == &oracle_arm) && strcmp(call, "fchownat") != 0 &&
           strcmp(call + len - 2, "32") != 0;
}

static inline bool oracle_rule_applies(const oracle_abi *abi, const csn_seccomp_rule *r,
                                       uint32_t variant)
{
    switch (r->variants) {
    case CSN_RULE_ONE_ID:
        return (variant & (CSN_SECCOMP_USERNS | CSN_SECCOMP_NO_SOCKETS)) == 0 &&
               !oracle_short_ids(abi, r->call);
    case CSN_RULE_NO_USERNS:
        return (variant & CSN_SECCOMP_USERNS) == 0;
    case CSN_RULE_NOSUID:
        return (variant & CSN_SECCOMP_NOSUID) != 0;
    case CSN_RULE_NO_SOCKETS:
        return (variant & CSN_SECCOMP_NO_SOCKETS) != 0;
    default:
        return true;
    }
}

/* 0: allowed; else the errno the call must give. */
static inline int oracle_errno(const oracle_abi *abi, uint32_t variant, uint32_t number,
                               const uint64_t args[6])
{
    const char *call = oracle_name(abi, number);

    if (number == UINT32_MAX)
        return 0;
    if (number >= abi->private_first && number <= abi->private_last)
        return 0;
    if (!call || number > CSN_SECCOMP_NEWEST)
        return ENOSYS;
    for (size_t i = 0; i < ORACLE_COUNT(csn_seccomp_rules); i++) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        if (strcmp(r->call, call) == 0 && oracle_rule_applies(abi, r, variant) &&
            oracle_cond_holds(&r->conds[0], args) && oracle_cond_holds(&r->conds[1], args))
            return r->error;
    }
    return 0;
}
