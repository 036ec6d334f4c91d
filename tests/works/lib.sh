# shellcheck shell=bash
# lib.sh: one line of ordinary work in a jail is one check; sourced by the scripts here.
#
# The promise under test: a developer's tools do inside what they do outside, for a root caller
# and for an ordinary user. Tools are looked for on the host, not inside: a tool that the host
# has and the jail hides is a failure. One that the host lacks is skipped, unless it belongs to
# the packages of tools/deps or to every Debian and CSN_MUST_WORK is 1.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/../cli/lib.sh"
export CAISSON_BACKEND=jail
# the system's own tools: a version manager's in somebody's home are not inside
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset LD_PRELOAD

always=" awk bash busybox cp date dd df diff dpkg du find flock free g++ gcc git grep gzip hostname \
id ionice ldconfig ldd ln locale ls make mandoc meson mkfifo mv nice ninja nohup nproc perl \
pkg-config prlimit ps python3 renice script sed setpriv setsid sh sha256sum sleep stat stdbuf stty \
tar taskset tee timeout top touch tr unshare whoami xargs "

# missing TOOL...: nothing, or the name of one that is missing
missing()
{
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "$tool" && return; }
    done
}

# works NAME TOOLS SCRIPT [OPTION...]: the script succeeds in a jail, in an empty workspace that
# is deleted afterwards. It runs with -eu; what it prints is shown when it fails.
works()
{
    local name=$1 tools=$2 script=$3 lacks
    shift 3
    # shellcheck disable=SC2086
    lacks=$(missing $tools)
    if [ -n "$lacks" ] && [ "${CSN_MUST_WORK:-}" = 1 ] && [[ $always = *" $lacks "* ]]; then
        fail "$name" "$lacks is not installed"
        return
    elif [ -n "$lacks" ]; then
        skip "$name" "$lacks is not installed"
        return
    fi
    rm -rf "$T/ws" && mkdir "$T/ws"
    if cs run --workspace "$T/ws" --timeout 300s "$@" -c "set -eu
$script" >"$T/.out" 2>&1 </dev/null; then
        pass "$name"
    else
        fail "$name" "status $?" "$(tail -n 12 "$T/.out")"
    fi
}

# All or nothing: where there is no jail there is nothing to test.
if ! why=$(cs run --workspace "$T/ws" -- true 2>&1); then
    if [ "${CSN_MUST_WORK:-}" = 1 ]; then
        fail "a jail" "$why"
    else
        skip "a jail" "this host refuses one: ${why//$'\n'/ }"
    fi
    exit 0
fi
