#!/usr/bin/env bash
# The audit log on a full and on a read-only file system: what cannot be recorded does not start,
# and a result that could not be recorded is a gap that --verify reports.
#
# The state directory is a small tmpfs in a mount namespace of this test.
if [ -z "${CSN_LOG_NAMESPACE:-}" ]; then
    if [ "$(id -u)" = 0 ]; then user=; else user=-Ur; fi
    # shellcheck disable=SC2086
    CSN_LOG_NAMESPACE=1 exec unshare -m $user -- "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

S=$XDG_STATE_HOME W=$T/ws RESERVE=$XDG_STATE_HOME/caisson/audit/reserve
mount -t tmpfs -o size=2m,mode=0700 tmpfs "$S" || exit 1

fill() { cat /dev/zero >"$S/fill" 2>"$T/.fill" && exit 1; }
free_space() { rm "$S/fill"; }
lines() { cs log "$1" --json | grep -c "\"op\":\"$2\""; }

id=$(cs create --workspace "$W") || exit 1
printf old >"$W/kept"
holds "space for lines is allocated in advance" test "$(stat -c %b "$RESERVE")" -ge 512

# ---- full, without the reserve: nothing starts ----
: >"$RESERVE"
fill
status "exec on a full disk is refused" 125 cs exec "$id" -- touch "$W/ran"
like "with the log, the reason and the fix" "$err" "caisson: exec: audit log of $id: $S/caisson/audit: No space left on device*hint: free space there*"
holds "and does not run" test ! -e "$W/ran"
status "exec -d likewise" 125 cs exec -d "$id" -- sh -c "touch '$W/ran'; sleep 600"
is "prints no pid" "$out" ""
status "and starts no process" 0 cs ps "$id" --json
json "at all" "$out" "v == []"
holds "nor anything else" test ! -e "$W/ran"
status "write is refused" 1 cs write "$id" kept
like "by name" "$err" "caisson: write: audit log of $id: *No space left on device*"
is "and changes nothing" "$(cat "$W/kept")" old
status "delete too" 1 cs rm "$id" kept
holds "the file is there" test -e "$W/kept"
status "create is refused" 1 cs create --workspace "$W"
like "with all that helps" "$err" "caisson: create: audit log of local-*: $S/caisson/audit: No space left on device*hint: free space there, set XDG_STATE_HOME to another directory, or start without a log: --audit none*"
status "run is refused" 125 cs run --workspace "$W" -- touch "$W/ran"
holds "before it starts" test ! -e "$W/ran"
status "without a log it runs" 0 cs run --workspace "$W" --audit none -- touch "$W/without"
is "and leaves no file of a log" "$(ls "$S/caisson/audit")" "days
$id.head
$id.jsonl
reserve"
status "what was refused is no gap" 0 cs log "$id" --verify
free_space
status "with space everything works again" 0 cs exec "$id" -- touch "$W/ran"
status "and the log is whole" 0 cs log "$id" --verify

# ---- full, with the reserve: what starts is recorded ----
fill
ran=0
while [ "$ran" -lt 1000 ] && cs exec "$id" -- sh -c "echo x >>'$W/count'; : $(printf 'y%.0s' {1..2000})" 2>"$T/.err"; do
    ran=$((ran + 1))
done
like "until the reserve is used up" "$(cat "$T/.err")" "caisson: exec: audit log of $id: *No space left on device*"
holds "commands run" test "$ran" -ge 1
is "and each that ran is in the log" "$(wc -l <"$W/count") $(lines "$id" exec)" "$ran $((ran + 1))"
status "without a gap" 0 cs log "$id" --verify
free_space

# ---- the disk is full when the command ends ----
mkfifo "$T/go" "$T/up"
long=$(printf 'y%.0s' {1..4000}) # the line needs a block more
"$CAISSON" exec "$id" -- sh -c "echo >'$T/up'; read x <'$T/go'; echo done; : $long" >"$T/done" &
read -r _ <"$T/up"
: >"$RESERVE"
fill
status "a command that runs is no gap" 0 cs log "$id" --verify
echo >"$T/go"
wait $!
is "its result is returned" "$? $(cat "$T/done")" "0 done"
status "its missing line is a gap" 1 cs log "$id" --verify
is "which verify counts" "$out" "bad: 1 operation has no recorded result: the caller was killed, or the log could not be written"
free_space
status "the next operation marks it" 0 cs write "$id" new
status "for good" 1 cs log "$id" --verify --json
json "with its line" "$out" "v['ok'] is False and v['gaps'] == 1 and v['bad_line'] > 1 and v['lines'] == v['bad_line'] + 1"
is "once" "$(lines "$id" gap)" 1
cs destroy "$id"

# ---- the caller is killed ----
id=$(cs create --workspace "$W") || exit 1
"$CAISSON" exec "$id" -- sh -c "echo >'$T/up'; sleep 600" &
caller=$!
read -r _ <"$T/up"
kill -KILL "$caller"
wait "$caller" 2>"$T/.err"
status "a caller that was killed leaves a gap" 1 cs log "$id" --verify
cs destroy "$id"
status "which its log keeps" 1 cs log "$id" --verify
is "before the line of destroy" "$(cs log "$id" --json | sed -n 's/.*"op":"\([a-z]*\)".*/\1/p' | tr '\n' ' ')" "open gap destroy "

# ---- read-only ----
id=$(cs create --workspace "$W") || exit 1
rm -f "$W/ran"
mount -o remount,bind,ro "$S" || exit 1
status "exec is refused on a read-only file system" 125 cs exec "$id" -- touch "$W/ran"
like "with the reason" "$err" "caisson: exec: audit log of $id: $S/caisson/audit: Read-only file system*hint: make it writable*"
holds "before it runs" test ! -e "$W/ran"
status "create too" 1 cs create --workspace "$W"
status "a read returns nothing" 1 cs read "$id" kept
is "at all" "$out" ""
status "the log can be verified" 0 cs log "$id" --verify
mount -o remount,bind,rw "$S"
status "afterwards it works" 0 cs exec "$id" -- touch "$W/ran"

# ---- destroy always ends the sandbox ----
pid=$(cs exec -d "$id" -- sleep 600)
: >"$RESERVE"
fill
status "destroy works on a full disk" 0 cs destroy "$id"
holds "and ends its processes" gone "$pid"
free_space
status "its log is whole" 0 cs log "$id" --verify
is "with the line of destroy" "$(lines "$id" destroy)" 1
id=$(cs create --workspace "$W") || exit 1
pid=$(cs exec -d "$id" -- sleep 600)
mount -o remount,bind,ro "$S" || exit 1
status "destroy works on a read-only file system" 0 cs destroy "$id"
holds "likewise" gone "$pid"
mount -o remount,bind,rw "$S"
umount "$S"
