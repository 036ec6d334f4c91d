#!/bin/bash
# Limits of a jail: what bounds it, what is told when a command runs into one, that its neighbours
# do not notice, and that nothing stays behind however it ends.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
export CAISSON_BACKEND=jail
w=$T/ws
cd "$w" || exit 1

if ! cs run -- true 2>"$T/why"; then
    if [ "${CSN_MUST_WORK:-0}" = 1 ]; then
        fail "a jail" "$(cat "$T/why")"
    else
        skip "limits of a jail" "no jail on this host: $(head -n 1 "$T/why")"
    fi
    exit 0
fi
command -v perl >/dev/null || { skip "limits of a jail" "no perl to write bombs in" && exit 0; }

# layer JSON: what the layer `limits` of a result says
layer() { python3 -c 'import json,sys
print([l["detail"] for l in json.load(sys.stdin)["layers"] if l["name"] == "limits"][0])' <<<"$1"; }
bomb='push @a, "x" x 1048576 while 1'
# many processes of 8 MiB each: none of them is large
# all of them are there at the same time: they end when the last has been there for a while
swarm='pipe R, W; for (1..30) { if (!fork) { close W; $x = "x" x 8388608; sysread R, $y, 1; exit } }
    sleep 4; close W; 1 while wait > 0'

# what is said
said=$(layer "$(cs run --json -- true)")
like "by default there are limits" "$said" "memory * by sampling; 1024 processes by rlimit; private disk 1 GiB and 66560 files by tmpfs; *"
said=$(layer "$(cs run --json --memory none --pids none --disk none -- true)")
like "none lifts them" "$said" "* processes*; no limit on disk; *"
holds "none lifts that on memory" test "${said#memory}" = "$said"
said=$(layer "$(cs run --json --memory 64M --limit-file 1M -- true)")
like "memory has its means" "$said" "memory 64 MiB by *; 1024 processes by rlimit;*a file 1 MiB by rlimit*"
case $said in *"memory 64 MiB by cgroup"*) groups=1 ;; *) groups=0 ;; esac
[ "$groups" = 1 ] || like "or is sampled" "$said" "memory 64 MiB by sampling*"

# the default: three quarters of what the container has, told by a file of its control group
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    j=$(unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && echo 268435456 >/sys/fs/cgroup/memory.max &&
        exec "$CAISSON" run --json -- perl -e "$1"' sh "$bomb")
    json "without --memory a bomb stops too" "$j" 'v["killed_by"] == "memory" and any(
        d["rule"].startswith("memory limit 192 MiB reached, peak ") for d in v["denials"])'
fi

# memory
neighbour=$(new)
j=$(cs run --json --memory 64M -- perl -e "$bomb")
json "a bomb is killed by memory" "$j" 'v["killed_by"] == "memory" and v["failed"]'
json "with limit and peak" "$j" '[d["rule"] for d in v["denials"] if d["op"] == "limit" and
    d["target"] == "memory"][0].startswith("memory limit 64 MiB reached, peak ")'
json "the peak is that of the bomb" "$j" 'v["usage"]["peak_memory"] > 48 << 20 and
    v["usage"]["peak_memory"] < 512 << 20'
status "a neighbour has not noticed" 0 cs exec "$neighbour" -- true
j=$(timeout 120 "$CAISSON" run --json --memory 64M -- perl -e "$swarm")
if [ "$groups" = 1 ]; then # the kernel kills one after the other until the rest fits
    json "small ones are summed up" "$j" 'v["usage"]["peak_memory"] > 48 << 20 and
        v["usage"]["peak_memory"] <= 65 << 20'
else
    json "small ones are summed up" "$j" 'v["killed_by"] == "memory"'
fi
# that limit is the mark by which the keeper tells commands apart
if [ "$groups" = 0 ] && bash -c 'ulimit -S -R 1000000' 2>/dev/null; then
    json "also of who drops its mark" "$(cs run --json --memory 64M -- \
        bash -c "ulimit -S -R 1000000; perl -e '$swarm'")" 'v["killed_by"] == "memory"'
fi
id=$(new --memory 64M)
cs exec "$id" --json -- perl -e "$bomb" >"$T/bomb" &
while kill -0 $! 2>/dev/null && ! pgrep -f 'perl -e push' >/dev/null; do sleep 0.02; done
status "and it has not noticed that either" 0 cs exec "$neighbour" -- sh -c 'echo yes'
wait $!
json "in a sandbox that lives on" "$(cat "$T/bomb")" 'v["killed_by"] == "memory"'
json "the next command is its own" "$(cs exec "$id" --json -- false)" 'v["killed_by"] is None'
json "and works" "$(cs exec "$id" --json -- true)" 'v["exit_code"] == 0 and v["killed_by"] is None'
cs exec "$id" --session s -c 'x=1'
json "a session" "$(cs exec "$id" --session s --json -c "perl -e '$bomb'; exit 3")" \
    'v["killed_by"] == "memory"'
shared='$x = "x" x 20971520; for (1..12) { if (!fork) { select undef, undef, undef, 0.5; exit } }
    1 while wait > 0'
status "memory that is shared counts once" 0 cs exec "$id" -- perl -e "$shared"
status "destroy" 0 cs destroy "$id"
for little in 1 1M 4095K; do
    status "$little is too little to live on" 2 cs run --memory "$little" -- true
    is "and refused" "$err" "caisson: run: --memory '$little': a jail needs at least 4 MiB"
done
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    status "without a control group, too" 2 unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$0" run --memory 1M -- true' "$CAISSON"
fi

json "commands go before their keeper" "$(cs run --json -c 'cat /proc/self/oom_score_adj /proc/1/oom_score_adj')" \
    'int(v["stdout"].split()[0]) > int(v["stdout"].split()[1]) > 0'

# processes
fork20='for (1..40) { $p = fork; exit 9 unless defined $p; if (!$p) { sleep 20; exit } $n++ }'
j=$(cs run --json --pids 20 -- perl -e "$fork20")
json "the limit on processes" "$j" 'v["exit_code"] == 9'
if [ "$groups" = 1 ]; then
    json "is told" "$j" 'v["killed_by"] == "pids" and
        "process limit 20 reached" in v["denials"][0]["rule"]'
fi
json "and is exact" "$(cs run --json --pids 20 -- perl -e 'for (1..40) { $p = fork;
    if (!defined $p) { print $n + 1; exit } if (!$p) { sleep 20; exit } $n++ }')" 'v["stdout"] == "20"'
cs run --pids 100 --timeout 2s --json -c ':(){ :|:& };:; sleep 10' >"$T/forks" 2>/dev/null &
bomber=$!
for _ in 1 2 3; do
    sleep 0.3
    cs exec "$neighbour" -- true || echo slow >>"$T/slow"
done
holds "a fork bomb leaves the neighbour alone" test ! -e "$T/slow"
wait "$bomber"
cs destroy "$neighbour"

# cpu
if [ "$groups" = 1 ] && cs run --cpus 0.2 -- true 2>"$T/why"; then
    j=$(cs run --cpus 0.2 --json -- timeout 2 sh -c 'while :; do :; done')
    json "half of a cpu at the very most" "$j" \
        'v["usage"]["cpu_ms"] < v["duration_ms"] / 2 and v["duration_ms"] > 1000'
    like "by a control group" "$(layer "$j")" "*; cpu 0.200 by cgroup*"
elif [ "$(id -u)" = 0 ]; then
    skip "a share of the cpu" "$(head -n 1 "$T/why")"
else
    status "no share of the cpu without a control group" 125 cs run --cpus 0.2 -- true
    like "and it says why" "$err" "*--cpus: needs a control group: *"
fi

# disk, files, descriptors
status "disk" 1 cs run --disk 8M -- dd if=/dev/zero of=/tmp/x bs=1M count=16
like "is full" "$err" "*No space left*"
status "inodes" 1 cs run --disk 8M -c 'i=0; while [ $i -lt 3000 ]; do : >/tmp/$i || exit 1; i=$((i+1)); done'
status "the same is possible with more" 0 \
    cs run --disk 64M -c 'i=0; while [ $i -lt 3000 ]; do : >/tmp/$i || exit 1; i=$((i+1)); done'
json "the size of a file" "$(cs run --limit-file 1M --json -- dd if=/dev/zero of=f bs=64k count=32 2>&1)" \
    'v["killed_by"] == "disk" and "file size limit 1 MiB" in v["denials"][0]["rule"]'
is "it has that size" "$(stat -c %s f)" 1048576
holds "descriptors" test "$(cs run -c 'ulimit -Hn')" -le 65536
limits_of() { python3 -c 'import json,sys
print(next(l["detail"] for l in json.load(sys.stdin)["layers"] if l["name"] == "limits"))'; }
(
    ulimit -n 500 && ulimit -u 300
    cs run --json -- true | limits_of >"$T/told"
    cs run -c 'ulimit -Hn; ulimit -Hu' >"$T/really"
    cs create --name low
) >/dev/null
is "the caller may have fewer" "$(tr '\n' ' ' <"$T/really")" "500 300 "
like "then that is told" "$(cat "$T/told")" "*; 299 processes by the caller's own rlimit;*; 500 descriptors by rlimit"
like "by another process too" "$(cs info low --json | limits_of)" "*; 299 processes*; 500 descriptors*"
cs destroy low

# nothing stays behind
#
# groups_of ID, sweeper_of ID, left_of ID: what there is of a sandbox; nothing: true for the last
groups_of() { find /sys/fs/cgroup -maxdepth 6 -name "caisson-$1" 2>/dev/null; }
sweeper_of() { pgrep -f "^caisson-sweeper $1"; }
has_sweeper() { [ -n "$(sweeper_of "$1")" ]; }
nothing_of() { [ -z "$(groups_of "$1")" ] && [ ! -e "$XDG_STATE_HOME/caisson/sandboxes/$1" ]; }

id=$(new --memory 64M)
holds "a detached sandbox has a sweeper" eventually has_sweeper "$id"
sweeper=$(sweeper_of "$id")
holds_these()
{
    [ "$(find "/proc/$sweeper/fd" -type l -printf '%l\n' | grep -v /dev/null | sed 's/:.*//' | sort)" = "$1" ]
}
mount= # of the workspace, for a root caller
[ "$(id -u)" != 0 ] || mount=/
# shellcheck disable=SC2086
holds "with the pidfd, the socket, a mount and nothing else" eventually holds_these \
    "$(printf '%s\n' anon_inode $mount "$XDG_STATE_HOME/caisson/sandboxes/$id/sock" | sort)"
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
holds "and as small as a keeper" test "$(rss "$sweeper")" -lt \
    $(($(rss "$(pgrep -f "^caisson-keeper $id")") + 256))
kill -TERM "$sweeper"
kill -HUP "$sweeper"
holds "no signal ends it" has_sweeper "$id"
[ "$groups" = 0 ] || holds "there is a control group" test -n "$(groups_of "$id")"
status "destroy" 0 cs destroy "$id"
holds "leaves nothing" eventually nothing_of "$id"
holds "not even the sweeper" gone "$sweeper"

id=$(new --memory 64M)
sweeper=$(sweeper_of "$id")
kill -KILL "$(pgrep -f "^caisson-keeper $id")"
holds "a killed keeper leaves nothing" eventually nothing_of "$id"
holds "not even a sweeper" gone "$sweeper"
status "the sandbox is gone" 125 cs exec "$id" -- true

id=$(new --lifetime 1s)
sweeper=$(sweeper_of "$id")
holds "one whose time is over leaves nothing" eventually nothing_of "$id"
holds "nor a sweeper" gone "$sweeper"

mark=$((300000 + $$)) # seconds that nobody else sleeps
"$CAISSON" run --memory 64M -- sleep $mark &
owner=$!
eventually pgrep -f "^sleep $mark"
inside=$(pgrep -f "^sleep $mark")
id=$(sed -n 's/.*caisson-\(jail-[^/]*\).*/\1/p' "/proc/$inside/cgroup" | head -n 1)
sweeper=$([ "$groups" = 1 ] && sweeper_of "$id")
kill -KILL "$owner"
wait "$owner" 2>/dev/null
# shellcheck disable=SC2086
holds "a killed owner takes its command along" gone $inside $sweeper
[ "$groups" = 0 ] || holds "and the control group" eventually nothing_of "$id"
