#!/bin/bash
# A timeout ends the command although the caller is blocked, stopped or gone (the keeper has the
# deadline). No limits of time here: a stopped caller is continued after the processes of its command
# have vanished.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
LATE="*its timeout passed*"

# Every command here runs a copy of this file under a name that is in no other command line. The
# flood fills any stdout.
cat >"$T/job" <<'X'
touch "up-$0"
case $1 in
flood) yes "$0" ;;
deaf)
    trap '' TERM
    while :; do (exec -a "$0" sleep 100000); done
    ;;
*) (exec -a "$0" sleep 100000) ;;
esac
touch "after-$0"
X
FLOOD='bash "$(cat name)" flood' DEAF='bash "$(cat name)" deaf' SLEEP='bash "$(cat name)" sleep'
# fresh: a new $job, and $mark, a pattern that matches it and not itself
jobs_n=0
fresh()
{
    jobs_n=$((jobs_n + 1))
    job=${T##*.}-job-$jobs_n- mark="${T##*.}-[j]ob-$jobs_n-"
    cp "$T/job" "$T/ws/$job"
    echo "$job" >"$T/ws/name"
}
running() { grep -qsa "$mark" /proc/[0-9]*/cmdline; }
vanished() { ! running; }
is_up() { test -e "$T/ws/up-$job" && running; }
# begin ARGUMENT...: runs the program in the background; its pid in $caller
begin()
{
    "$CAISSON" "$@" 2>"$T/err" &
    caller=$!
}
# ended NAME: the caller's status and message are those of a timeout
ended()
{
    wait "$caller"
    is "$1: the status is 124" $? 124
    like "$1: the message" "$(cat "$T/err")" "$LATE"
    holds "$1: nothing ran after it" ! test -e "$T/ws/after-$job"
}
# A pipe that this shell holds open at both ends and does not read.
mkfifo "$T/full"
exec 8<>"$T/full"
drain() { cat <&8 >/dev/null & drainer=$!; }
drained() { kill "$drainer" && wait "$drainer" 2>/dev/null; }

blocked()
{
    fresh
    begin exec "$id" --timeout 2s "${@:3}" -c "$2" >"$T/full"
    holds "$1: it runs" eventually is_up
    holds "$1: its processes are gone, the caller is blocked" eventually vanished
    holds "$1: the caller still runs" kill -0 "$caller"
    drain
    ended "$1"
    drained
}

stopped()
{
    fresh
    begin exec "$id" --timeout 2s "${@:3}" -c "$2" >"$T/out"
    holds "$1: it runs" eventually is_up
    kill -STOP "$caller"
    holds "$1: its processes are gone, the caller is stopped" eventually vanished
    kill -CONT "$caller"
}

for backend in jail local; do
    if [ "$backend" = jail ] && ! cs run --backend jail --workspace "$T/ws" -- true 2>"$T/err"; then
        skip "jail" "$(head -n 1 "$T/err")"
        [ -z "${CSN_MUST_WORK-}" ] || fail "jail"
        continue
    fi
    id=$(new --backend "$backend")

    # ---- the caller is blocked ----
    blocked "$backend, blocked stdout" "$FLOOD"
    blocked "$backend, blocked stdout in a session" "$FLOOD" --session s
    fresh
    "$CAISSON" exec "$id" --timeout 2s -c "$FLOOD" 2>"$T/err" |
        { eventually is_up; eventually vanished && touch "$T/vanished"; }
    is "$backend, a reader that leaves: the status is 124" "${PIPESTATUS[0]}" 124
    like "$backend, a reader that leaves: the message" "$(cat "$T/err")" "$LATE"
    holds "$backend, a reader that leaves: the processes were gone before" test -e "$T/vanished"
    rm -f "$T/vanished"

    # ---- the caller is stopped ----
    stopped "$backend, stopped caller" "$SLEEP"
    ended "$backend, stopped caller"
    stopped "$backend, stopped caller of a command that ignores SIGTERM" "$DEAF"
    ended "$backend, stopped caller of a command that ignores SIGTERM"
    stopped "$backend, stopped caller in a session" "$SLEEP" --session s
    ended "$backend, stopped caller in a session"
    stopped "$backend, stopped caller, --json" "$SLEEP" --json
    wait "$caller"
    is "$backend, stopped caller, --json: the status is 124" $? 124
    json "$backend, stopped caller, --json: the result" "$(cat "$T/out")" \
        'v["timed_out"] and v["interrupted"] and v["killed_by"] == "timeout"'

    # a session in which SIGTERM ends the command and not the shell: its status is not the result
    fresh
    begin exec "$id" --timeout 2s --session s -c \
        'trap "" TERM; touch "up-$(cat name)"; (trap - TERM; exec -a "$(cat name)" sleep 100000)'
    holds "$backend, a shell that ignores SIGTERM: it runs" eventually is_up
    kill -STOP "$caller"
    holds "$backend, a shell that ignores SIGTERM: the command is gone" eventually vanished
    kill -CONT "$caller"
    ended "$backend, a shell that ignores SIGTERM"

    # ---- the caller is gone ----
    fresh
    begin exec "$id" --timeout 1000s -c "$DEAF"
    holds "$backend, killed caller: it runs" eventually is_up
    kill -KILL "$caller"
    wait "$caller" 2>/dev/null
    holds "$backend, killed caller: its processes are gone" eventually vanished

    # ---- in the background, on a terminal ----
    fresh
    status "$backend, in the background" 0 cs exec "$id" -d --timeout 2s -c "$DEAF"
    holds "$backend, in the background: it runs" eventually is_up
    holds "$backend, in the background: it is gone" eventually vanished
    fresh
    begin exec "$id" -t --timeout 2s -c "$FLOOD" >"$T/full" </dev/null
    holds "$backend, on a terminal: it runs" eventually is_up
    holds "$backend, on a terminal: it is gone, the caller is blocked" eventually vanished
    drain
    wait "$caller"
    is "$backend, on a terminal: the status is 124" $? 124
    drained
    fresh
    begin run --backend "$backend" --workspace "$T/ws" -t --timeout 2s -c "$DEAF" </dev/null >"$T/out"
    holds "$backend, run -t: it runs" eventually is_up
    kill -STOP "$caller"
    holds "$backend, run -t: it is gone, the caller is stopped" eventually vanished
    kill -CONT "$caller"
    wait "$caller"
    is "$backend, run -t: the status is 124" $? 124
    fresh
    begin run --backend "$backend" --workspace "$T/ws" --timeout 2s -c "$SLEEP" >"$T/out"
    holds "$backend, run: it runs" eventually is_up
    kill -STOP "$caller"
    holds "$backend, run: it is gone, the caller is stopped" eventually vanished
    kill -CONT "$caller"
    ended "$backend, run"

    # ---- a command that ends in time is not touched by its deadline ----
    # 100000 bytes: more than the full pipe holds, less than that and the command's own pipe
    fresh
    begin exec "$id" --session kept --timeout 2s -c 'kept=yes; printf %100000s x; touch done' >"$T/full"
    holds "$backend, in time: it has ended" eventually test -e "$T/ws/done"
    status "$backend, in time: its timeout passes" 124 cs exec "$id" --timeout 3s -- sleep 100000
    holds "$backend, in time: the caller is blocked" kill -0 "$caller"
    drain
    wait "$caller"
    is "$backend, in time: its own status" $? 0
    drained
    is "$backend, in time: the session lives on" "$(cs exec "$id" --session kept -c 'echo $kept')" yes
    rm -f "$T/ws/done"
    cs destroy "$id"
    [ "$backend" = jail ] || continue

    # ---- the gateway is stopped ----
    echo "{\"audit\": \"$T/audit\"}" >"$T/audit.json"
    id=$(new --backend jail --allow ok.test --policy "$T/audit.json")
    gateway=$(grep -lsa "^caisson-gateway.$id" /proc/[0-9]*/cmdline | tr -dc '0-9\n')
    kill -STOP "$gateway"
    fresh
    begin exec "$id" --timeout 2s -c "$SLEEP" >"$T/out"
    ended "stopped gateway"
    holds "stopped gateway: the command is gone" vanished
    like "stopped gateway: the audit log has what is not known" "$(cat "$T/audit")" \
        '*"the network gateway does not answer"*'
    status "stopped gateway: no network of its own for a command" 125 \
        cs exec "$id" --timeout 1s --allowed-domain ok.test -c 'touch after-own'
    like "stopped gateway: and why" "$err" "*gateway does not answer*"
    holds "stopped gateway: that command did not run" ! test -e "$T/ws/after-own"
    kill -CONT "$gateway"
    status "continued gateway: it serves as before" 0 cs exec "$id" --allowed-domain ok.test -- true
    kill -STOP "$gateway"
    status "stopped gateway: destroy" 0 cs destroy "$id"
    holds "stopped gateway: it is gone" gone "$gateway"

    # and its queue is full, so that no connection is accepted
    id=$(new --backend jail --allow ok.test)
    gateway=$(grep -lsa "^caisson-gateway.$id" /proc/[0-9]*/cmdline | tr -dc '0-9\n')
    kill -STOP "$gateway"
    python3 - "$(find "$XDG_RUNTIME_DIR" -path "*$id*" -name net.sock)" <<'X'
import socket, sys
try:
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        s.connect(sys.argv[1])
except BlockingIOError:
    pass
X
    fresh
    begin exec "$id" --timeout 2s -c "$SLEEP" >"$T/out"
    ended "full queue of the gateway"
    status "full queue of the gateway: destroy" 0 cs destroy "$id"
    holds "full queue of the gateway: it is gone" gone "$gateway"
done
