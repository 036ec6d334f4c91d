/* process.h: between process.c, which starts background processes, and process_control.c. */
#pragma once
#include "remote/remote.h"

/* The directory inside in which every process of this sandbox has one of its own. */
void csn_remote_base(const csn_remote *r, char *buf, size_t size);
