/* name_table.h: assign each queried name an address of its own inside the sandbox.
 *
 * Address n of the IPv4 or IPv6 range stands for name n. When the table is full, the least
 * recently queried name without a connection loses its number. At the permitted query rate,
 * filling the table takes minutes, longer than the TTL of the answers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "policy/domain.h"
#include "policy/netaddr.h"

#define GW_NAMES_FIRST 2u     /* 1 is the DNS stub */
#define GW_NAMES_MAX   65536u /* numbers are smaller than this */

typedef struct gw_names gw_names;

gw_names *gw_names_new(void);
void gw_names_free(gw_names *n);
/* Returns the number of a name, allocating one if needed (*is_new). 0: no memory, or all
 * numbers are in use. */
uint32_t gw_names_number(gw_names *n, const csn_domain *name, bool *is_new);
/* false: the number is not assigned. */
bool gw_names_get(const gw_names *n, uint32_t number, csn_domain *ret);
/* A held number is not reassigned. */
void gw_names_hold(gw_names *n, uint32_t number);
void gw_names_release(gw_names *n, uint32_t number);

csn_netaddr gw_names_address(uint32_t number, unsigned family); /* family: 4 or 6 */
/* false: a is outside the two ranges. *ret may be a number that is not assigned. */
bool gw_names_from_address(const csn_netaddr *a, uint32_t *ret);
