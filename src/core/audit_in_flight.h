/* audit_in_flight.h: the operations that have begun and have no line in the audit log yet.
 *
 * The head file counts them ("open"). A handle with such operations also locks one byte of the
 * head file for each (OFD locks, beyond its text), and the kernel drops the locks of a process
 * that is killed. The operations without a lock are therefore lost: their line will not come.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The operations in flight of one handle. */
typedef struct csn_audit_in_flight {
    int64_t at; /* offset of the first byte that it locks; 0: not chosen yet */
    unsigned count;
} csn_audit_in_flight;

/* Does an operation of this name change something? Its line is reserved before it acts. */
bool csn_audit_has_effect(const char *op);

/* Counts one more or one less and changes the lock on `head_fd` (-1: no head). */
void csn_audit_in_flight_add(csn_audit_in_flight *f, int head_fd);
void csn_audit_in_flight_drop(csn_audit_in_flight *f, int head_fd);
/* Locks again on a head file that was opened again. */
void csn_audit_in_flight_renew(csn_audit_in_flight *f, int head_fd);

/* Of `open` operations in the head file, those that neither this handle (`own` operations) nor
 * another one is doing. 0 if the file system cannot tell. */
uint64_t csn_audit_in_flight_lost(int head_fd, uint64_t open, uint64_t own);

/* A lock for the life of a handle: logs in use are not removed. */
void csn_audit_use_mark(int head_fd);
bool csn_audit_in_use(int head_fd);
