#!/bin/bash
# C8: bombs stop at the limit, and a neighbour stays usable meanwhile.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

mkdir -p "$T/neighbour"
neighbour=$(cs create --workspace "$T/neighbour")
plain=("${IN[@]}")

# again WORDS...: the same bomb until $T/bombs is removed, whatever ends it
again()
{
    while [ -e "$T/bombs" ]; do
        "${IN[@]}" -c "touch going; while [ -e going ]; do ./probe $* >/dev/null; done"
    done >/dev/null 2>&1
}
# meanwhile NAME WORDS...: and a neighbour that works
meanwhile()
{
    local name=$1 bombs alive=0
    shift
    rm -f "$WS/going"
    touch "$T/bombs"
    again "$@" &
    bombs=$!
    eventually test -e "$WS/going" || fail "$name: no bomb"
    for _ in 1 2 3; do
        [ "$(timeout 60 "$CAISSON" exec "$neighbour" -- echo alive 2>&1)" = alive ] && alive=$((alive + 1))
    done
    is "$name: the neighbour works" $alive 3
    is "$name: and so does a new one" "$(timeout 60 "$CAISSON" run --workspace "$T/neighbour" -- echo alive 2>&1)" alive
    rm -f "$T/bombs" "$WS/going"
    wait $bombs
}

# ---- processes ----
IN=("${plain[@]}" --pids 50)
attempt "processes" fork-bomb 200
meanwhile "processes" fork-bomb 200
IN=("${plain[@]}")
MAY_FAIL=yes # where root has no CAP_SYS_RESOURCE
attempt "no limit on processes can be raised" raise-limits
MAY_FAIL=

# ---- disk: all scratch places together ----
IN=("${plain[@]}" --disk 8M)
for d in /tmp /var/tmp /home/sandbox /dev/shm; do
    attempt "space in $d" disk-bomb $d 32 -- disk-bomb "$OUT" 32
    attempt "files in $d" inode-bomb $d 5000 -- inode-bomb "$OUT" 5000
done
inside_sh 'for d in /tmp /var/tmp ~ /dev/shm; do head -c 6M /dev/zero >$d/part || exit 1; done' >/dev/null
is "they share one limit" $? 1
meanwhile "space" disk-bomb /tmp 32
meanwhile "files" inode-bomb /tmp 5000
IN=("${plain[@]}")

# ---- descriptors ----
hard=$(ulimit -Hn)
if [ "$hard" = unlimited ] || [ "$hard" -gt 70000 ]; then
    attempt "descriptors" fd-bomb 70000
else
    attempt "descriptors" fd-bomb 70000 -- none the caller has no more either
fi

# ---- memory ----
# bomb NAME WORDS...: it is ended or refused, and the result says why
bomb()
{
    local name=$1 out
    shift
    out=$("${IN[@]}" --json -- "$WS/probe" "$@" 2>&1)
    case $out in
    *'"error"'*) skip "$name" "no memory limit here: $(cut -c1-120 <<<"$out")" && return ;;
    *ESCAPED*) fail "$name" "$(grep -o 'memory [^;"]*' <<<"$out")" && return ;;
    esac
    json "$name" "$out" 'v["killed_by"] == "memory" or "held ENOMEM" in v["stdout"]'
    like "$name: control" "$(outside "${@/#\/tmp/$OUT}")" "ESCAPED*"
}
IN=("${plain[@]}" --memory 64M)
bomb "memory" memory-bomb 256
# Where there is no control group, /tmp counts as disk (see above), and memory that no process has
# mapped counts for nobody: README.md says so.
case $("${IN[@]}" --json -- true) in
*'by cgroup'*)
    bomb "memory that is a file" memfd-bomb 256
    bomb "memory that is in /tmp" disk-bomb /tmp 256
    ;;
*)
    skip "memory that is a file" "no control group here"
    skip "memory that is in /tmp" "no control group here"
    ;;
esac
bomb "memory of many processes" many-bomb 8 32
meanwhile "memory" memory-bomb 256
IN=("${plain[@]}")

# ---- output ----
most=$(python3 -c '
import resource, subprocess, sys
p = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
assert p.returncode == 0
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' \
    "$CAISSON" run --json --max-output 64K --workspace "$WS" -- "$WS/probe" flood 400)
holds "400 MB of output are not kept ($most MB)" test "${most:-9999}" -lt 200
meanwhile "output" flood 100

# ---- what the kernel counts per user: the user outside keeps a part of it ----
cat >"$WS/watches.py" <<'P'
import ctypes, os, sys, time
libc, n = ctypes.CDLL(None), 0
while libc.inotify_init() >= 0:
    n += 1
print(n, flush=True)
if len(sys.argv) > 1:
    open(sys.argv[1], "w").close()
    while os.path.exists(sys.argv[1]):
        time.sleep(0.05)
P
ulimit -n "$(ulimit -Hn)" # more than there are instances
all=$(python3 "$WS/watches.py")
"${IN[@]}" -- python3 "$WS/watches.py" "$WS/taken" >"$T/inside" &
for _ in $(seq 600); do [ -e "$WS/taken" ] && break || sleep 0.1; done
rest=$(python3 "$WS/watches.py")
rm -f "$WS/taken" && wait $!
holds "inotify: it takes some ($(cat "$T/inside") of $all)" test "$(cat "$T/inside")" -gt 0
holds "inotify: there are some left ($rest)" test "$rest" -gt "$((all / 4))"
