#!/bin/sh
# headertest.sh: compiles each public header alone: C99 pedantic, C11, C17, C++11, C++17, every
# warning an error. TAP on stdout.
#
#   headertest.sh INCLUDE_DIR CC... -- CXX|none -- HEADER...
#
# Twice in one unit too, for the include guards, and with a use of the one macro that makes an
# object. Without a C++ compiler those cases are skips, or failures with CSN_MUST_WORK=1.
# shellcheck disable=SC2086 # options are words
set -u
include=$1
shift
cc=
while [ "$1" != -- ]; do
    cc="$cc $1"
    shift
done
cxx=$2
shift 3

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
strict='-O1 -c -o /dev/null -Wall -Wextra -Werror -pedantic -pedantic-errors -Wshadow -Wundef'
strict_c="$strict -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition"
strict_cxx="$strict -Wold-style-cast -Wnon-virtual-dtor"
echo "1..$(($# * 6))"
n=0

# check NAME COMMAND...
check() {
    name=$1
    shift
    n=$((n + 1))
    if "$@" > "$work/log" 2>&1; then
        echo "ok $n - $name"
    else
        sed 's/^/# /' "$work/log"
        echo "not ok $n - $name"
    fi
}

for header; do
    printf '#include <%s>\n#include <%s>\nextern int csn_unit;\nint csn_unit;\n' \
        "$header" "$header" > "$work/unit.c"
    cp "$work/unit.c" "$work/unit.cc"
    cat >> "$work/unit.c" << END
const char *use(csn_sandbox *sb, csn_exec_result **r, csn_error **e);
const char *use(csn_sandbox *sb, csn_exec_result **r, csn_error **e)
{
    csn_status st = csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = 5), r, e);
    return csn_status_name(st);
}
END
    for std in c99 c11 c17; do
        check "$header as $std" $cc -std=$std $strict_c -I "$include" "$work/unit.c"
    done
    cp "$work/unit.c" "$work/old.c" # a C99 program that has no GNU attributes
    check "$header as c99 without GNU C" $cc -std=c99 $strict_c -U__GNUC__ -I "$include" \
        "$work/old.c"
    for std in c++11 c++17; do
        if [ "$cxx" = none ]; then
            n=$((n + 1))
            [ -n "${CSN_MUST_WORK:-}" ] && printf 'not '
            echo "ok $n - $header as $std # SKIP no C++ compiler"
            continue
        fi
        check "$header as $std" "$cxx" -std=$std $strict_cxx -I "$include" "$work/unit.cc"
    done
done
