# shellcheck shell=bash
# lib.sh: attempts from inside a jail, each with its control. Sourced by the scripts of this
# directory, one for each promise.
#
# A script gets what tests/cli/lib.sh gives, with the backend jail, PROBE (the program that tries),
# a workspace $WS that has a copy of it, and a directory $OUT beside it, for the controls. With the
# argument `user` a root caller becomes a user without account first: every promise holds for both.
# The control is the same attempt without any sandbox: a check whose control fails as well has shown
# nothing and is a skip, with CSN_MUST_WORK=1 a failure where that caller could have done it.

PROBE=${PROBE:?set PROBE to the program that tries}
must_work() { [ "${CSN_MUST_WORK:-0}" != 0 ]; }
skip_script()
{
    echo "1..0 # SKIP $1"
    exit 0
}

if [ "${1-}" = user ] && [ "$(id -u)" -ne 0 ]; then
    skip_script "the caller is an ordinary user already"
elif [ "${1-}" = user ]; then
    uid=$((50000 + $$ % 10000)) # its own: what is left behind is found by it
    drop=(setpriv --reuid "$uid" --regid "$uid" --clear-groups --)
    command -v setpriv >/dev/null || skip_script "needs setpriv"
    "${drop[@]}" test -x "$CAISSON" -a -x "$PROBE" || skip_script "a user cannot reach the programs"
    exec "${drop[@]}" env CSN_TEST_UID_IS_OURS=1 bash "$0"
fi

# shellcheck source=tests/cli/lib.sh
. "${0%/*}/../cli/lib.sh"
export CAISSON_BACKEND=jail
WS=$T/ws OUT=$T/out
mkdir -p "$OUT"
cp "$PROBE" "$WS/probe"
ROOT=$([ "$(id -u)" -eq 0 ] && echo yes || echo no)
IN=(cs run --workspace "$WS" --timeout 300s) # how something is run inside
cd "$WS" || exit 1

inside() { "${IN[@]}" -- "$WS/probe" "$@" 2>&1; }
inside_sh() { "${IN[@]}" -c "$1" 2>&1; }
outside() { (cd "$OUT" && "$PROBE" "$@" 2>&1); }

# A host without user namespaces, or a container that refuses them, has no jail: SPEC says so.
if ! err=$(inside_sh true); then
    must_work && fail "a jail starts" "$err" && exit 1
    skip "all of it" "no jail here: ${err%%$'\n'*}"
    exit 0
fi

# judge NAME INSIDE CONTROL: the words of the two runs. MAY_FAIL: even root may be refused outside, by
# a container or the firmware.
judge()
{
    case $2 in
    'held '*) ;;
    *) fail "$1" "inside: $2" && return ;;
    esac
    case $3 in
    ESCAPED*) pass "$1" ;;
    none*) pass "$1 (no control:${3#none})" ;;
    held\ ENOENT | held\ ENODATA | held\ ENOSYS | held\ ENODEV | held\ ENXIO | held\ E*NOSUPPORT)
        skip "$1" "inside ${2#held }; this host has none: ${3#held }" ;;
    held\ EPERM | held\ EACCES)
        if must_work && [ "$ROOT" = yes ] && [ -z "${MAY_FAIL-}" ]; then
            fail "$1" "control: $3"
        else
            skip "$1" "inside ${2#held }; this caller may not either: ${3#held }"
        fi ;;
    *) fail "$1" "control: $3" ;;
    esac
}

# attempt NAME WORDS... [-- CONTROL WORDS... | -- none WHY]: one attempt. Without words of its own
# the control gets the same.
attempt()
{
    local name=$1 inner=() outer=() to=inner
    shift
    for word in "$@"; do
        if [ "$word" = -- ]; then to=outer; elif [ $to = inner ]; then inner+=("$word"); else outer+=("$word"); fi
    done
    [ ${#outer[@]} -eq 0 ] && outer=("${inner[@]}")
    if [ "${outer[0]}" = none ]; then
        judge "$name" "$(inside "${inner[@]}")" "${outer[*]}"
    else
        judge "$name" "$(inside "${inner[@]}")" "$(outside "${outer[@]}")"
    fi
}
