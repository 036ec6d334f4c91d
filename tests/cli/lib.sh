# shellcheck shell=bash
# lib.sh: TAP for the tests of the command line, sourced by each of them.
#
# A test gets CAISSON (the program), a private state, runtime and config directory, the backend
# local, and a directory $T to work in. When it ends, every sandbox it made is destroyed, and a
# process or file that stayed behind is a failure of the test.

set -u
CAISSON=${CAISSON:?set CAISSON to the program to test}
T=$(mktemp -d "${CSN_TEST_TOP:-/tmp}/csn-cli.XXXXXX") || exit 1
export XDG_STATE_HOME=$T/state XDG_RUNTIME_DIR=$T/run XDG_CONFIG_HOME=$T/config HOME=$T/home
export CAISSON_BACKEND=local LC_ALL=C.UTF-8
mkdir -p "$XDG_STATE_HOME" "$XDG_RUNTIME_DIR" "$XDG_CONFIG_HOME" "$HOME" "$T/ws"
chmod 700 "$T" "$XDG_STATE_HOME" "$XDG_RUNTIME_DIR"
cd "$T" || exit 1

tap_n=0 tap_failed=0

cs() { "$CAISSON" "$@"; }

pass() { tap_n=$((tap_n + 1)); echo "ok $tap_n - $1"; }
fail()
{
    tap_n=$((tap_n + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_n - $1"
    shift
    printf '%s\n' "$@" | sed 's/^/# /'
}
skip() { tap_n=$((tap_n + 1)); echo "ok $tap_n - $1 # SKIP $2"; }

# is NAME GOT WANT
is()
{
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:  $2" "want: $3"; fi
}
# like NAME GOT PATTERN (a shell pattern)
like()
{
    # shellcheck disable=SC2254
    case $2 in $3) pass "$1" ;; *) fail "$1" "got:  $2" "want: $3" ;; esac
}
# status NAME WANT COMMAND...: runs it, keeps stdout in $out and stderr in $err
status()
{
    local name=$1 want=$2 got
    shift 2
    "$@" >"$T/.out" 2>"$T/.err" </dev/null
    got=$?
    out=$(tr -d '\0' <"$T/.out") err=$(tr -d '\0' <"$T/.err")
    if [ "$got" = "$want" ]; then
        pass "$name"
    else
        fail "$name" "status $got, want $want" "stdout: ${out:0:300}" "stderr: ${err:0:300}"
    fi
}
# holds NAME COMMAND...: it succeeds (with a leading !: it fails)
holds()
{
    local name=$1 want=0
    shift
    if [ "$1" = ! ]; then want=1 && shift; fi
    "$@"
    if [ "$(($? != 0))" -eq "$want" ]; then pass "$name"; else fail "$name" "$*"; fi
}
# json NAME TEXT EXPRESSION: the text parses and the Python expression over `v` is true
json()
{
    local why
    if why=$(printf '%s' "$2" | python3 -c '
import json, sys
v = json.load(sys.stdin)
sys.exit(0 if eval("(" + sys.argv[1] + ")") else "not true: " + sys.argv[1])' "$3" 2>&1); then
        pass "$1"
    else
        fail "$1" "$(tail -n 1 <<<"$why")" "json: ${2:0:600}"
    fi
}
# gone PID...: none of them runs any more; a minute is for machines that stand still
gone()
{
    local _ pid alive
    for _ in $(seq 1200); do
        alive=
        for pid in "$@"; do
            # a zombie has ended: somebody else's reaper is just slow
            grep -qs '^State:.[^ZX]' "/proc/$pid/status" && alive=$pid
        done
        [ -z "$alive" ] && return 0
        sleep 0.05
    done
    return 1
}
# eventually COMMAND...: true within a minute, which only what never happens takes
eventually()
{
    local _
    for _ in $(seq 1200); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}

new() { cs create --workspace "$T/ws" "$@"; }

# What there is of our sandboxes, as files and as processes.
files_left()
{
    find "$XDG_RUNTIME_DIR" -mindepth 1 -not -name caisson 2>/dev/null
    find "$XDG_STATE_HOME"/caisson/{sandboxes,names} -mindepth 1 2>/dev/null
}
processes_left()
{
    grep -lsa "XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR" /proc/[0-9]*/environ 2>/dev/null |
        grep -v "/proc/\(self\|$$\|$BASHPID\)/" | while read -r f; do
            tr '\0' ' ' 2>/dev/null <"${f%environ}cmdline"
        done | grep -a 'caisson' | grep -v 'grep'
}
nothing_is_left() { [ -z "$(files_left)" ] && [ -z "$(processes_left)" ]; }

finish()
{
    local code=$? ids
    trap - EXIT
    ids=$(cs list -q 2>/dev/null)
    # shellcheck disable=SC2086
    [ -n "$ids" ] && cs destroy $ids >/dev/null 2>&1
    eventually nothing_is_left # the last one may be ending just now
    is "no file of a sandbox is left" "$(files_left)" ""
    is "no process of caisson is left" "$(processes_left)" ""
    cd / && rm -rf "$T"
    echo "1..$tap_n"
    [ "$tap_failed" -eq 0 ] && [ "$code" -eq 0 ] && exit 0
    exit 1
}
trap finish EXIT
