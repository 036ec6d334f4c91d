#!/bin/bash
# C8: commands cannot slow, limit or stop the keeper, which ends them in time.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

# ---- calls that name a process ----
for which in 0 1; do # a process, a process group
    attempt "setpriority $which" set-priority $which 1 -- set-priority $which child
done
for which in 1 2; do
    attempt "ioprio_set $which" set-ioprio $which 1 -- set-ioprio $which child
done
for call in scheduler param attr affinity limit; do
    attempt "$call" set-$call 1 -- set-$call child
done

# ---- files of /proc: they belong to the user of the keeper, which is that of commands ----
attempt "oom_score_adj of the keeper" proc-write 1 oom_score_adj 1000 -- proc-write child oom_score_adj 1000
attempt "coredump_filter of the keeper" proc-write 1 coredump_filter 0 -- proc-write child coredump_filter 0
attempt "clear_refs of the keeper" proc-write 1 clear_refs 1 -- proc-write child clear_refs 1
attempt "sched of the keeper" proc-write 1 sched 0 -- proc-write child sched 0
if [ "$ROOT" = yes ]; then # others get EAGAIN when they write it often
    attempt "autogroup of the keeper" proc-write 1 autogroup 19 -- proc-write child autogroup 19
fi
# A process may lower its score to 0 where it can write it.
attempt "a command cannot lower its OOM score" proc-self-write oom_score_adj 0

# ---- what commands do to themselves works ----
status "nice, ionice, taskset, chrt, renice, prlimit" 0 "${IN[@]}" -c '
set -e
[ "$(nice -n 5 nice)" = $(($(nice) + 5)) ] # the caller may be nice already
[ "$(ionice -c 3 ionice)" = idle ]
taskset -c 0 true
chrt -b 0 true
prlimit --nofile=64 true
sleep 100 &
renice -n 3 -p $!
ionice -c 3 -p $!
taskset -p 1 $!
prlimit --pid $! --nofile=64
kill $!'

# ---- a keeper that does not run: the caller ends the command, and all others with it ----
id=$(cs create --workspace "$WS")
keeper=$(cs info "$id" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["keeper_pid"])')
kill -STOP "$keeper"
status "a stopped keeper answers no question" 1 cs ps "$id"
kill -CONT "$keeper"
status "and a question does not kill it" 0 cs exec "$id" -- true

# stop_during NAME OPTION...: a timeout while the keeper is stopped
stop_during()
{
    local name=$1
    shift
    rm -f "$WS/runs"
    cs exec "$id" --json --timeout 2s "$@" -c 'touch runs; sleep 1000' >"$T/stopped" &
    eventually test -e "$WS/runs" && kill -STOP "$keeper"
    wait $!
    json "$name" "$(cat "$T/stopped")" 'v["killed_by"] == "timeout" and v["timed_out"]'
    holds "$name: the keeper is killed" gone "$keeper"
}
stop_during "a timeout is kept without the keeper"
id=$(cs create --workspace "$WS")
keeper=$(cs info "$id" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["keeper_pid"])')
stop_during "so is that of a session" --session s

# ---- all processes of the user: the keeper has the same. The control slows this script. ----
attempt "setpriority, the user" of-user nice
attempt "ioprio_set, the user" of-user ioprio
