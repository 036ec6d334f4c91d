#!/bin/bash
# What was done and what runs: log for people and for programs, the logs that are removed, list
# with the sandboxes of processes that run, ps of all sandboxes.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# until_true COMMAND...: as soon as it succeeds; a minute is for machines that stand still
until_true()
{
    for _ in $(seq 600); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}

# ---- no log yet ----
status "log without any" 1 cs log
like "says so" "$err" "caisson: log: there is no audit log yet*"
status "list without any" 0 cs list
is "prints nothing" "$out" ""
status "ps without any" 0 cs ps
is "prints nothing" "$out" ""
json "ps --json without any" "$(cs ps --json)" 'v == []'

# ---- log of the last run ----
status "a run" 3 cs run --workspace ws --json -c $'printf "\\033[2J"; : "a\nb\e[2J\t"; exit 3'
json "its result has the id" "$out" 'v["sandbox"].startswith("local-")'
id=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["sandbox"])' <<<"$out")
status "log without an id" 0 cs log
like "is that of the last run" "$out" "sandbox $id"$'\n'"*"
is "with one line for each operation" "$(wc -l <<<"$out")" 3
like "open" "$(sed -n 2p <<<"$out")" "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]  open  *ok *ms  $T/ws"
like "exec, its result, duration and command" "$(sed -n 3p <<<"$out")" "*  exec  *exit 3 *s  printf*a*b*exit 3"
holds "control characters are escaped, in a pipe too" ! grep -q $'[\e\t]' <<<"$out"
status "log with the id" 0 cs log "$id"
is "has the same lines" "$(wc -l <<<"$out")" 2
status "log --json" 0 cs log --json
is "has the bytes of the file" "$out" "$(cat "$XDG_STATE_HOME/caisson/audit/$id.jsonl")"
status "log --verify without an id" 0 cs log --verify
is "checks the same log" "$out" "ok, 2 lines"
echo 'no json' >>"$XDG_STATE_HOME/caisson/audit/$id.jsonl"
status "a damaged line" 0 cs log "$id"
like "is shown as such" "$out" "*damaged*no json"
status "and found" 1 cs log --verify "$id"

# ---- a log at another place ----
mkdir logs
status "a run with a log of its own" 0 cs run --workspace ws --audit logs/a.jsonl -- true
status "log --file" 0 cs log --file logs/a.jsonl
like "prints it" "$out" "*  exec  *true"
status "log --file --verify" 0 cs log --file logs/a.jsonl --verify
is "checks it" "$out" "ok, 2 lines"
status "a path without --file" 0 cs log logs/a.jsonl --verify
status "a file in this directory" 0 env -C logs "$CAISSON" log --file a.jsonl --verify
sed -i '2s/"op":"[a-z]*"/"op":"none"/' logs/a.jsonl
status "a line that was changed" 1 cs log --file logs/a.jsonl --verify
like "is found" "$out" "bad, line 2: *"
status "a file that is missing" 1 cs log --file nope.jsonl
like "is named" "$err" "*nope.jsonl*No such file*"
status "--file and an id" 2 cs log --file a "$id"

# ---- a sandbox that runs ----
mkfifo go up
"$CAISSON" run --workspace ws -c "echo >'$T/up'; read x <'$T/go'" &
running=$!
read -r _ <up
status "list while it runs" 0 cs list
like "has it" "$out" "*local-* attached *$T/ws"
json "list --json too" "$(cs list --json)" 'len(v) == 1 and v[0]["state"] == "attached" and v[0]["backend"] == "local"
    and v[0]["workspace"].endswith("/ws") and v[0]["name"] is None'
is "list -q has only those that stay" "$(cs list -q)" ""
one=$(cs list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
status "its log" 0 cs log "$one"
status "is not removed while it runs" 0 cs log --prune --older 1ms
holds "it is there" test -e "$XDG_STATE_HOME/caisson/audit/$one.jsonl"
holds "the log of the ended one is not" test ! -e "$XDG_STATE_HOME/caisson/audit/$id.jsonl"
echo >go
wait "$running"
is "list after it ended" "$(cs list)" ""

# ---- ps of all ----
a=$(cs create --workspace ws --name first) b=$(cs create --workspace ws)
cs create --workspace ws >/dev/null
pa=$(cs exec first -d -- sleep 600) pb=$(cs exec "$b" -d -- sleep 601)
status "ps" 0 cs ps
like "has a heading" "$out" "ID * PID *COMMAND"$'\n'"*"
like "and the processes of all" "$out" "*$a * $pa  running *sleep 600*$b * $pb  running *sleep 601"
is "only" "$(wc -l <<<"$out")" 3
json "ps --json" "$(cs ps --json)" "len(v) == 3 and [len(s['processes']) for s in v] == [1, 1, 0]
    and v[0]['sandbox'] == '$a' and v[1]['processes'][0]['pid'] == $pb"
status "ps of one" 0 cs ps first
holds "has no column for it" ! grep -q "$a" <<<"$out"

# ---- follow ----
"$CAISSON" log -f first >follow.txt &
follower=$!
holds "log -f prints what was there" until_true grep -q 'sleep 600' follow.txt
cs exec first -- true
holds "and what comes" until_true grep -q ' exec .*true' follow.txt
cs destroy first
wait "$follower"
is "and ends with the sandbox" "$?" 0
like "with its last line" "$(tail -n 1 follow.txt)" "*  destroy  *ok *"
is "each line once" "$(wc -l <follow.txt)" 4
cs list -q | xargs "$CAISSON" destroy

# ---- prune ----
for _ in 1 2 3; do cs run --workspace ws -- true; done
mapfile -t logs < <(cd "$XDG_STATE_HOME/caisson/audit" && ls -tr ./*.jsonl)
touch -d '8 days ago' "$XDG_STATE_HOME/caisson/audit/${logs[0]}"
n=${#logs[@]}
status "prune by age" 0 cs log --prune --older 7d --json
json "counts" "$out" 'v["removed"] == 1 and v["bytes"] > 0'
holds "the old one is gone" test ! -e "$XDG_STATE_HOME/caisson/audit/${logs[0]}"
is "the others are not" "$(find "$XDG_STATE_HOME/caisson/audit" -name '*.jsonl' | wc -l)" $((n - 1))
status "prune by size that all have" 0 cs log --prune --larger 100M
is "removes none" "$out" "0 logs removed, 0 bytes"
newest=$(cs log --json | sed -n '1s/.*"sandbox":"\([^"]*\)".*/\1/p')
status "prune by size" 0 cs log --prune --larger 4K
is "keeps the newest" "$(cd "$XDG_STATE_HOME/caisson/audit" && echo *.jsonl)" "$newest.jsonl"
status "prune without a bound" 2 cs log --prune
status "prune with an id" 2 cs log --prune --older 1d x
status "a bound without prune" 2 cs log --older 1d
status "a bad age" 2 cs log --prune --older soon
like "is shown" "$err" "*--older*'soon'*"
status "no age" 2 cs log --prune --older 0
status "a bad size" 2 cs log --prune --larger big
like "is shown" "$err" "*--larger*'big'*"
