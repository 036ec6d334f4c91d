/* analyzer.h: what clang's analyzer cannot see from one file alone. tools/lint includes it
 * before every file but base/error.c; no build does.
 *
 * csn_fail returns the code it is given, and the errno forms always return a failure. Without
 * that the analyzer follows paths on which a call fails and succeeds at once. */
#pragma once
#include "base/error.h"

#define csn_fail(err, code, ...)                                                               \
    __extension__({                                                                            \
        csn_status code_ = (code);                                                             \
        (void)!(csn_fail)((err), code_, __VA_ARGS__);                                          \
        code_;                                                                                 \
    })
#define csn_fail_errno(err, errnum, ...)                                                       \
    __extension__({                                                                            \
        csn_status code_ = (csn_fail_errno)((err), (errnum), __VA_ARGS__);                     \
        if (code_ >= 0)                                                                        \
            __builtin_unreachable();                                                           \
        code_;                                                                                 \
    })
#define csn_wrap(st, err, ...)                                                                 \
    __extension__({                                                                            \
        csn_status code_ = (st);                                                               \
        (void)!(csn_wrap)(code_, (err), __VA_ARGS__);                                          \
        code_;                                                                                 \
    })
