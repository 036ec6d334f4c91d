#!/bin/bash
# C10: two sandboxes share nothing: no file, no ipc, no socket, no process, no user.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

mkdir -p "$T/wa" "$T/wb" && cp "$PROBE" "$T/wa/probe" && cp "$PROBE" "$T/wb/probe"
a=$(cs create --workspace "$T/wa")
b=$(cs create --workspace "$T/wb")
in_a() { cs exec "$a" -- "$T/wa/probe" "$@" 2>&1; }
in_b() { cs exec "$b" -- "$T/wb/probe" "$@" 2>&1; }
# shared NAME WORDS...: planted in A, tried in B; the control tries it in A itself
shared()
{
    local name=$1
    shift
    judge "$name" "$(in_b "$@")" "$(in_a "$@")"
}

# ---- files ----
for d in /tmp /var/tmp /dev/shm /home/sandbox; do
    cs exec "$a" -c "echo secret >$d/planted && chmod 644 $d/planted"
    shared "a file in $d" read $d/planted
done
echo secret >"$T/wa/planted"
shared "a file of the workspace" read "$T/wa/planted"
shared "a new file in the workspace" create "$T/wa"

# ---- ipc ----
number=$((0x44000000 + $$))
shm=$(in_a make-ipc $number /csn-planted)
like "ipc in the first" "$shm" "[0-9]*"
shared "System V shared memory" shm $number
shared "by number" shm-id "$shm"
shared "System V semaphores" sem $number
shared "System V messages" msg $number
shared "a POSIX message queue" mq /csn-planted

# ---- sockets ----
port=$((20000 + $$ % 12000)) # below those that the kernel gives away
cs exec "$a" -d -- "$T/wa/probe" hold-sockets csn-planted /tmp/planted.sock $port >/dev/null
up() { case $(in_a port $port) in ESCAPED*) ;; *) return 1 ;; esac }
holds "sockets in the first" eventually up
shared "an abstract socket" abstract csn-planted
shared "a named socket" named /tmp/planted.sock
shared "a port of loopback" port $port
is "the port is not the host's either" "$(outside port $port)" "held ECONNREFUSED"

# ---- processes ----
mark=csn-first-$$-$RANDOM other=csn-second-$$-$RANDOM
cs exec "$a" -d -c "exec -a $mark sleep 1000" >/dev/null
cs exec "$b" -d -c "exec -a $other sleep 1000" >/dev/null
pid_of() { grep -lsaz "^$1\$" /proc/[0-9]*/cmdline | head -n 1 | cut -d/ -f3; }
there() { [ -n "$(pid_of $mark)" ] && [ -n "$(pid_of $other)" ]; }
holds "a process in each" eventually there
shared "a process of the other" word-in-procs "${mark/-/-,}"
pa=$(pid_of $mark) pb=$(pid_of $other)
for ns in user mnt pid net ipc uts cgroup; do
    holds "$ns namespaces differ" test "$(readlink "/proc/$pa/ns/$ns")" != "$(readlink "/proc/$pb/ns/$ns")"
done
uid_of() { awk '/^Uid:/ { print $2 }' "/proc/$1/status"; }
if [ "$ROOT" = yes ]; then
    holds "users differ" test "$(uid_of "$pa")" != "$(uid_of "$pb")"
fi
