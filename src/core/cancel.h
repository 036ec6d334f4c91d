/* cancel.h: cancel handles, which let another thread stop a call; the core polls their
 * descriptor. */
#pragma once
#include "caisson/caisson.h"

int csn_cancel_fd(const csn_cancel *c); /* -1 for NULL */
int csn_cancel_fired(const csn_cancel *c);
