/* name_table.h: the addresses inside that stand for names.
 *
 * Address n of either range is name n. A name keeps its number as long as the gateway lives;
 * only when the table is full does the one that was longest not asked for, and has no
 * connection, give its number away. That takes minutes at the rate names may be asked, longer
 * than answers live. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "policy/domain.h"
#include "policy/netaddr.h"

#define CSN_NAMES_FIRST 2u     /* 1 is the stub itself */
#define CSN_NAMES_MAX   65536u /* numbers below */

typedef struct gw_names gw_names;

gw_names *gw_names_new(void);
void gw_names_free(gw_names *n);
/* The number of a name, a new one if it has none (*fresh tells). 0: no memory, or every number
 * is in use. */
uint32_t gw_names_number(gw_names *n, const csn_domain *name, bool *fresh);
/* false: nobody was given that number. */
bool gw_names_get(const gw_names *n, uint32_t number, csn_domain *ret);
/* While it is held a number stays. */
void gw_names_hold(gw_names *n, uint32_t number);
void gw_names_drop(gw_names *n, uint32_t number);

/* family 4 or 6. */
csn_netaddr gw_names_address(uint32_t number, unsigned family);
/* Is it of our ranges? Then *ret is its number, which may be nobody's. */
bool gw_names_is_ours(const csn_netaddr *a, uint32_t *ret);
