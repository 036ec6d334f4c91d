#!/bin/bash
# C9: however a command, a sandbox or its owner ends, no process of it is left, nor anything else.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

mark=csn-linger-$$-$RANDOM
marked() { grep -lsa "${mark/csn-/csn[-]}" /proc/[0-9]*/cmdline; } # a search that does not find itself
# Keepers are known to root by what they have mounted; to a user who is nobody else by their name.
keepers()
{
    if [ "$ROOT" = yes ]; then
        grep -lsF " $WS " /proc/[0-9]*/mountinfo | cut -d/ -f3
    elif [ "${CSN_TEST_UID_IS_OURS:-}" = 1 ]; then
        pgrep -r R,S,D,T,t -u "$(id -u)" caisson # a zombie is gone
    fi
}
left() { marked; keepers; grep -F "$T" /proc/self/mountinfo; find "$XDG_RUNTIME_DIR" -mindepth 1 -not -name caisson; }
nothing_left() { [ -z "$(left)" ]; }
clean() # NAME
{
    if eventually nothing_left; then
        pass "$1: nothing is left"
    else
        fail "$1: nothing is left" "$(left)" "$(marked | while read -r f; do tr '\0' ' ' <"$f" && grep -E '^(State|PPid)' "${f%cmdline}status"; done)"
    fi
    rm -f "$WS/ready"
}
go=("$WS/probe" linger "$mark" "$WS/ready")
# One that leaves its session and takes off what the keeper knows its commands by.
untagged=("$WS/probe" linger-untagged "$mark" "$WS/ready")

# control: without a sandbox they stay
(cd "$OUT" && "$PROBE" linger "$mark" "$OUT/ready" >/dev/null 2>&1)
all_there() { [ "$(marked | wc -l)" -ge 5 ]; }
holds "control: without a sandbox all kinds stay" eventually all_there
marked | cut -d/ -f3 | xargs -r kill -KILL
eventually nothing_left

# ---- ends of a command ----
status "a command that returns" 0 "${IN[@]}" -- "${go[@]}"
holds "its processes did run" test -e "$WS/ready"
clean "after return"
status "a command that took off its tag" 0 "${IN[@]}" -- "${untagged[@]}"
clean "after that"
status "a command that fails" 3 "${IN[@]}" -c "${go[*]}; exit 3"
clean "after failure"
# until_ready COMMAND...: with the first timeout in which its processes get ready
until_ready()
{
    local t code
    for t in 1 4 16 64; do
        "${@/TIMEOUT/${t}s}"
        code=$?
        [ -e "$WS/ready" ] && break
    done
    return $code
}
status "a timeout" 124 until_ready cs run --workspace "$WS" --timeout TIMEOUT -- "${go[@]}" stay
holds "its processes did run" test -e "$WS/ready"
clean "after a timeout"
id=$(cs create --workspace "$WS")
status "a command that starves its keeper" 1 cs exec "$id" -c \
    'ok=1; for l in data nofile nproc stack as; do prlimit --pid 1 --$l=0:0 2>/dev/null && ok=0; done; exit $ok'
status "the keeper still answers" 0 cs exec "$id" -- true
status "and the sandbox can be destroyed" 0 cs destroy "$id"
clean "after that"
for signal in TERM INT HUP KILL; do
    python3 -c 'import os, signal, sys
for s in (signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$CAISSON" run --workspace "$WS" -- "${go[@]}" stay >/dev/null 2>&1 &
    run=$!
    eventually test -e "$WS/ready" || fail "SIG$signal: processes to end"
    kill -$signal $run
    wait $run 2>/dev/null
    clean "after SIG$signal"
done
{ "${IN[@]}" -c "${go[*]}; while :; do echo y; done" | head -n 1; } >/dev/null 2>&1
clean "after its reader went away"

# ---- ends of a sandbox ----
id=$(new)
status "a background process" 0 cs exec "$id" -d -- "${go[@]}" stay
eventually test -e "$WS/ready" || fail "processes to end"
status "destroy" 0 cs destroy "$id"
clean "after destroy"
no_marked() { [ -z "$(marked)" ]; }
for kind in go untagged; do
    declare -n start=$kind
    id=$(new)
    status "$kind: timeout of an exec" 124 until_ready cs exec --timeout TIMEOUT "$id" -- "${start[@]}" stay
    holds "$kind: its processes did run" test -e "$WS/ready"
    holds "$kind: after a timeout no process of the command is left" eventually no_marked
    is "$kind: the sandbox is still there" "$(cs exec "$id" -- echo yes)" yes
    rm -f "$WS/ready"
    "$CAISSON" exec "$id" -- "${start[@]}" stay >/dev/null 2>&1 &
    run=$!
    eventually test -e "$WS/ready" || fail "$kind: processes to end"
    kill -KILL $run
    wait $run 2>/dev/null
    holds "$kind: after kill -9 of its exec no process of the command is left" eventually no_marked
    status "$kind: destroy" 0 cs destroy "$id"
    clean "$kind: after destroy"
done
id=$(cs create --workspace "$WS" --lifetime 2s)
cs exec "$id" -d -- "${go[@]}" stay >/dev/null
clean "after its lifetime"
cs destroy "$id" >/dev/null 2>&1

# ---- the keeper itself is killed ----
"$CAISSON" run --workspace "$WS" -- "${go[@]}" stay >/dev/null 2>&1 &
run=$!
eventually test -e "$WS/ready" || fail "processes to end"
keeper=$(keepers | while read -r p; do grep -qsa '^caisson-keeper' "/proc/$p/cmdline" && echo "$p"; done | head -n 1)
if [ -n "$keeper" ]; then
    kill -KILL "$keeper"
    wait $run
    is "the caller learns that its keeper is gone" "$?" 125
    clean "after kill -9 of the keeper"
else
    skip "kill -9 of the keeper" "it cannot be told from others"
    kill $run && wait $run 2>/dev/null
fi
status "code inside cannot kill it" 0 "${IN[@]}" -c 'kill -KILL 1; kill -STOP 1; kill -SEGV 1; kill -HUP 1; echo alive'
is "it goes on" "$out" alive
clean "afterwards"

# ---- the caller is killed at any moment ----
for i in $(seq 20); do
    "$CAISSON" run --workspace "$WS" -- "${go[@]}" stay >/dev/null 2>&1 &
    run=$!
    sleep "0.0$(printf %02d $((i * 2 + RANDOM % 5)))" # from before the keeper is there to well after
    kill -KILL $run 2>/dev/null
    wait $run 2>/dev/null
done
clean "after 20 times kill -9 of the caller"
for i in $(seq 20); do
    "$CAISSON" create --workspace "$WS" --name "n$i" >/dev/null 2>&1 &
    run=$!
    sleep "0.0$(printf %02d "$i")"
    kill -KILL $run 2>/dev/null
    wait $run 2>/dev/null
done
# some were made: they are listed, and so can be ended
cs list -q | xargs -r -n 1 "$CAISSON" destroy >/dev/null 2>&1
# and what a maker left that was killed half-way is removed by whoever lists next
swept() { cs list -q && nothing_left; }
eventually swept
clean "after 20 times kill -9 of create, and destroy of what is listed"
# A failure stays here.
keepers | xargs -r kill -KILL
eventually nothing_left || rm -rf "$XDG_RUNTIME_DIR"/caisson/*
