# shellcheck shell=bash
# lib.sh: one published advisory, tried without a sandbox and in the sandbox under test.
#
# A file of this directory says in its head which advisory it is, sets NEEDS (what a sandbox must
# offer for the advisory to concern it), sources this file and defines
#   prepare   on the host, first: fills $WS (the project) and $OUT (what lies outside); both are empty
#   attack    what happens: `inside FRAGMENT` runs bash in the sandbox, in $WS; the rest is the host's
#   escaped   true when something that can be observed on the host shows that the attack succeeded
# `attempt NAME` then runs the three twice: once with no sandbox, the control, which must escape, and
# once in the sandbox, which must hold. The last line is `# outcome: held`, `ESCAPED` or `n/a`.
#
#   FILE [caller|user]        SANDBOX=caisson (default), bwrap, firejail, srt or codex
#
# With `user` a root caller becomes a user without account first. NEEDS=world puts the file on a host in
# an internet of its own (tests/net/world.py). A sandbox other than caisson is never a failure: `compare`
# reads the outcome.

SANDBOX=${SANDBOX:-caisson} NEEDS=${NEEDS:-commands}
here=$(realpath "${BASH_SOURCE[0]%/*}")

if [ "${1-}" = user ] && [ "$(id -u)" -eq 0 ]; then
    uid=$((50000 + $$ % 10000)) # its own: what is left behind is found by it
    drop=(setpriv --reuid "$uid" --regid "$uid" --clear-groups --)
    command -v setpriv >/dev/null || { echo "1..0 # SKIP needs setpriv" && exit 0; }
    "${drop[@]}" test -x "$CAISSON" || { echo "1..0 # SKIP a user cannot reach the program" && exit 0; }
    exec "${drop[@]}" env CSN_TEST_UID_IS_OURS=1 TMPDIR=/tmp bash "$0"
elif [ "${1-}" = user ]; then
    echo "1..0 # SKIP the caller is an ordinary user already"
    exit 0
fi
case " $NEEDS " in
*' world '*)
    if [ -z "${WORLD-}" ]; then
        PATH=$PATH:/usr/sbin:/sbin "$here/../net/world.py" -- bash "$0"
        code=$?
        [ $code -eq 77 ] && echo "1..0 # SKIP no network namespaces for us here" && exit 0
        exit $code
    fi ;;
esac

# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh"
# shellcheck source=tests/advisories/sandboxes.sh
. "$here/sandboxes.sh"
must_work() { [ "${CSN_MUST_WORK:-0}" != 0 ]; }
rounds=0 outcome=held which="" shown="" ran=""
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git config --global init.defaultBranch main 2>/dev/null

# The end says how it went, after the lines of tests/cli/lib.sh.
advisory_end()
{
    local code=$?
    [ "$outcome" = held ] && [ -z "$shown" ] && outcome=n/a which="the attack is not possible on this host"
    [ "$outcome" = held ] && [ -z "$ran" ] && outcome=n/a
    echo "# outcome: $outcome${which:+ (${which#;})}"
    [ "$SANDBOX" = caisson ] || tap_failed=0
    (exit $code)
    finish
}
trap advisory_end EXIT

# No jail here (a container that refuses user namespaces): nothing can be said about it.
if ! why=$(lacks); then
    outcome=n/a which=$why
    skip "all of it" "$why"
    exit 0
fi

# one_round SANDBOX: in directories of its own; 0 when it escaped
one_round()
{
    local escaped=1
    BOX=$1 rounds=$((rounds + 1))
    DENY=() READ=() WRITE=() ALLOW=() EXTRA=() CAISSON_RUN=("$CAISSON") BOX_ID="" idle=0
    R=$T/r$rounds WS=$T/r$rounds/ws OUT=$T/r$rounds/out
    mkdir -p "$WS" "$OUT"
    LOG=$R/log
    cd "$WS" || return 1
    prepare >>"$LOG" 2>&1
    attack >>"$LOG" 2>&1
    escaped >>"$LOG" 2>&1 && escaped=0
    box_close
    cd "$T" || return 1
    return $escaped
}
# attempt NAME [CONTROL]: the control may be impossible for this caller or host: CONTROL is then a
# command that is true where it is possible
attempt()
{
    local name=$1
    shift
    if [ $# -gt 0 ] && ! "$@" >/dev/null 2>&1; then
        skip "control: $name" "not possible here for this caller"
    elif ! one_round none; then
        fail "control: $name" "$(tail -n 20 "$LOG")"
        return
    else
        pass "control: $name" && shown=yes
    fi
    if one_round "$SANDBOX"; then
        fail "$SANDBOX: $name" "$(tail -n 20 "$LOG")"
        [ "$outcome" = ESCAPED ] || which=
        outcome=ESCAPED ran=yes which="$which;$name"
    elif [ "$idle" -ne 0 ] && [ -z "${MAY_REFUSE-}" ]; then
        fail "$SANDBOX: $name" "nothing ran inside" "$(tail -n 20 "$LOG")"
        which="$which;$name: it did not start"
    else
        ran=yes
        pass "$SANDBOX: $name"
    fi
    return 0
}

# ---- what several advisories use ----

# A secret outside and whether it came out, in $R/said, where `inside` leaves what it printed.
SECRET=dG9wIHNlY3JldA
secret_out() { printf '%s\n' "$SECRET" >"$OUT/secret"; }
secret_seen() { grep -qs "$SECRET" "$R"/said* || grep -rqs "$SECRET" "$WS"; }
# A program for the host to start by mistake; it leaves a mark.
plant() { printf '#!/bin/sh\ntouch %s\nexit 0\n' "'$OUT/marker'" >"$1" && chmod +x "$1"; }
marked() { [ -e "$OUT/marker" ]; }
# What a host does with a project: a prompt, an editor, a review. DIR...
host_git()
{
    local d
    rm -f "$OUT/marker" # what ran inside may have set it in the control
    for d in "${@:-$WS}"; do
        (cd "$d" && git status && git diff && git add -A && git commit -qm host && git checkout -q HEAD~0 && git log -1 -p) </dev/null
    done
}
repo() { git init -q "$1" && echo 1 >"$1/file" && git -C "$1" add file && git -C "$1" commit -qm one; }
# probe WORDS...: probe.py inside, told in one line
probe()
{
    cp "$here/probe.py" "$WS/probe.py"
    inside "/usr/bin/python3 probe.py $*"
}
probe_escaped() { grep -qs '^ESCAPED' "$R"/said*; }
# race TIMES OPERATION: OPERATION runs again and again while a process inside exchanges the directory d
# of the project with the link l, which leads to $OUT. The control may need more, and has it.
race()
{
    local i times=$1
    shift
    cp "$here/swap.py" "$WS/swap.py"
    mkdir -p "$WS/d" && ln -s "$OUT" "$WS/l"
    box_open
    if [ "$BOX" = none ]; then
        /usr/bin/python3 "$WS/swap.py" "$WS/d" "$WS/l" &
        times=100000
    else
        "$CAISSON" exec -d "$BOX_ID" -- /usr/bin/python3 "$WS/swap.py" "$WS/d" "$WS/l"
    fi
    for ((i = 0; i < times; i++)); do
        "$@" "$i"
        [ "$BOX" = none ] && escaped && break
    done
    touch "$WS/stop"
    [ "$BOX" != none ] || wait
}
# mcp_calls: pairs of lines, a tool and its arguments, as calls to a server on the project; its answers
mcp_calls()
{
    /usr/bin/python3 -c '
import json, sys
lines = sys.stdin.read().splitlines()
out = [{"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"}}}, {"method": "notifications/initialized"}]
for i in range(0, len(lines), 2):
    out.append({"id": i + 1, "method": "tools/call",
                "params": {"name": lines[i], "arguments": json.loads(lines[i + 1])}})
for m in out:
    print(json.dumps(dict(m, jsonrpc="2.0")))' | "$CAISSON" mcp --backend jail --workspace "$WS"
}
# mcp_call TOOL ARGUMENTS...: one call for each
mcp_call()
{
    local tool=$1 a
    shift
    for a in "$@"; do printf '%s\n%s\n' "$tool" "$a"; done | mcp_calls
}
mcp_bash() { mcp_call bash "$@"; }
# EVIL: a fragment that makes `evil` in the project, a program that leaves the mark when the host runs it
# shellcheck disable=SC2016
EVIL='printf "#!/bin/sh\ntouch $OUT/marker\n" >evil; chmod +x evil; E=$PWD/evil;'
# config_with FILE LINES: a fragment that appends lines to a git config; \$E is the program
config_with() { printf '%s printf "%s" "$E" >>%s;' "$EVIL" "${2//\"/\\\"}" "$1"; }
# In the world: how often its servers and its DNS server saw something, and an attempt of
# tests/net/client.py inside.
served() { grep -c "$1" "$WORLD/served"; }
asked() { grep -c "$1" "$WORLD/queries"; }
client()
{
    cp "$here/../net/client.py" "$WS/client.py"
    inside "SILENCE=3 /usr/bin/python3 client.py $*"
}
# settle: what was sent has arrived; an own question and an own connection are written down last
settle()
{
    local n=$RANDOM$RANDOM
    /usr/bin/python3 "$here/../net/client.py" dns A "settle$n.evil.test" >/dev/null
    curl -s --max-time 20 "http://93.184.216.20/settle$n" >/dev/null
    eventually grep -q "settle$n" "$WORLD/queries" && eventually grep -q "93.184.216.20" "$WORLD/served"
}
# proxied CONTROL-FRAGMENT: the control runs behind a proxy that has the published mistakes
naive_start()
{
    cp "$here/through.py" "$WS/through.py"
    [ "$BOX" = none ] || return 0
    /usr/bin/python3 "$here/naive_proxy.py" "$R/proxy" &
    naive=$!
    eventually test -s "$R/proxy"
    ALL_PROXY=socks5h://127.0.0.1:$(cat "$R/proxy") HTTP_PROXY=http://127.0.0.1:$(cat "$R/proxy")
    export ALL_PROXY HTTP_PROXY
}
naive_stop()
{
    [ "$BOX" = none ] || return 0
    unset ALL_PROXY HTTP_PROXY
    kill "$naive"
    wait "$naive"
}
# without_netfilter: caisson as it is where the kernel has no nf_tables: a proxy too
without_netfilter() { [ "$BOX" != caisson ] || [ -z "${PROBE-}" ] || CAISSON_RUN=("$PROBE" without netfilter "$CAISSON"); }
