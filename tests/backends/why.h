/* why.h: where the test backends leave the reason of a failed registration. */
#pragma once

void csn_test_backend_set_why(const char *what, const char *detail); /* detail may be NULL */
