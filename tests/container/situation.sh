#!/bin/bash
# situation.sh FULL|OWN|LANDLOCK|NONE [user]: what caisson does in the situation it is run in.
#
# Run inside of a container, a user namespace or beside a filter that take something away. The first
# argument is the level that --allow-weaker must give here (FULL: also without it; NONE: refused).
# Checked: the refusal, the reports, the identity of commands, what uid 0 may do without
# capabilities (number0.py), files, protected files, timeouts, and that nothing is left.
# shellcheck disable=SC2016 # expanded inside
want=$1
here=$(cd "${0%/*}" && pwd)
# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh"
export CAISSON_BACKEND=jail
WS=${CSN_TEST_WS:-$T/ws} OUT=$T/out
mkdir -p "$OUT" "$WS"
cd "$WS" || exit 1
weak() { cs run --allow-weaker --workspace "$WS" --timeout 60s "$@"; }
weak_sh() { weak -c "$1" 2>&1 | grep -v '^caisson: run: weaker isolation'; }
level() { python3 -c '
import json, sys
print(next((x["detail"] for x in json.load(sys.stdin)["layers"] if x["name"] == "rung"), "full"))'; }

# ---- refused or not, and why ----
rm -f ran
if [ "$want" = FULL ]; then
    status "a full jail opens" 0 cs run --workspace "$WS" -- touch ran
    is "without a warning" "$err" ""
else
    status "refused without --allow-weaker" 125 cs run --workspace "$WS" -- touch ran
    holds "nothing ran" test ! -e ran
    like "one line says why" "${err%%$'\n'*}" "caisson: run: *[a-z]*"
    [ "$want" = NONE ] || like "a hint says what --allow-weaker gives" "${err#*$'\n'}" "hint: *--allow-weaker *"
fi
doctor=$(cs doctor --json 2>/dev/null)
case $want in
FULL) json "doctor finds a full jail" "$doctor" 'v["rung"] == "full"' ;;
NONE)
    json "doctor finds none" "$doctor" 'v["rung"] == "none"'
    status "refused with --allow-weaker as well" 125 weak -- touch ran
    holds "nothing ran" test ! -e ran
    exit 0
    ;;
*)
    json "doctor finds the weaker rung" "$doctor" 'v["rung"] == "weaker"'
    json "doctor says how the full jail is had" "$doctor" \
        'any(x["status"] == "missing" and x.get("fix") for x in v["checks"])'
    ;;
esac

# ---- the level, and that everything reports it ----
status "with --allow-weaker it runs" 0 weak --json -- true
got=$(level <<<"$out")
case $want in
FULL) is "the full jail" "$got" full ;;
OWN) like "namespaces with a uid that exists outside" "$got" "*namespaces in which commands have * uid (--allow-weaker)" ;;
LANDLOCK) like "Landlock and seccomp alone" "$got" "*only Landlock, seccomp and rlimits (--allow-weaker)" ;;
esac
if [ "$want" != FULL ]; then
    json "the result says so" "$out" 'any(x["name"] == "rung" and x["status"] == "weaker" for x in v["layers"])'
    like "one line on standard error" "$err" "caisson: run: weaker isolation: *"
    json "doctor named this rung" "$doctor" \
        "any(x['name'] == 'weaker rung' and ('Landlock' in x['detail']) == ('$want' == 'LANDLOCK') for x in v['checks'])"
fi

# ---- who commands are ----
is "no capability" "$(weak_sh 'cat /proc/self/status' | grep -c '^Cap\(Prm\|Eff\|Inh\|Amb\):.*[1-9a-f]')" 0
if [ "$want" != LANDLOCK ]; then
    is "no_new_privs" "$(weak_sh 'grep NoNewPrivs /proc/self/status' | tr -dc 01)" 1
    holds "not uid 0 inside" test "$(weak_sh 'id -u')" -ne 0
else
    is "no_new_privs: sudo and its like gain nothing" "$(weak_sh 'python3 -c "import ctypes; print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))"')" 1
fi
is "setuid is refused" "$(weak_sh 'python3 -c "import os; os.setuid(65534)"' | grep -c 'not permitted\|Invalid argument')" 1

# ---- what uid 0 may do without capabilities ----
echo secret >"$OUT/secret" && chmod 600 "$OUT/secret"
python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + "/s")
s.listen()
time.sleep(1e6)' "$OUT" &
other=$!
eventually test -S "$OUT/s"
cp "$here/number0.py" "$WS/number0.py"
inside=$(weak -- python3 number0.py "$OUT" "$other" 2>"$T/err")
outside=$(cd "$OUT" && python3 "$here/number0.py" "$OUT" "$other" 2>&1)
before=$(stat -c '%a %Y' /etc/passwd "$OUT/secret")
count=$(grep -c . <<<"$outside")
holds "every attempt was made" test "$count" -gt 40 -a "$(grep -c . <<<"$inside")" -eq "$count"
while read -r name got why; do
    control=$(grep "^$name " <<<"$outside")
    case $name in # what an ordinary user may do to its own files: SECURITY.md
    secret-mode | secret-times | passwd-lease | setuid) [ "$(id -u)" -eq 0 ] || continue ;;
    esac
    [ "$name" = niceness ] && [ "$want" != LANDLOCK ] && continue # of the pid namespace
    case $got in
    held | absent) pass "$name: ${why:-$got} (outside:${control#"$name"})" ;;
    *) fail "$name" "inside: $got $why" "outside: $control" ;;
    esac
done <<<"$inside"
like "control: outside many succeed" "$(grep -c ESCAPED <<<"$outside")" "[1-9]*"
is "root's files are as before" "$(stat -c '%a %Y' /etc/passwd "$OUT/secret")" "$before"
holds "the other process lives" kill -0 $other
kill $other
wait $other 2>/dev/null
rm -f "$WS/number0.py"

# ---- ordinary work ----
is "files are made" "$(weak_sh 'mkdir -p d && echo in >d/f && cat d/f')" in
is "and belong to the owner of the workspace" "$(stat -c %u d/f)" "$(stat -c %u "$WS")"
is "modes can be changed" "$(weak_sh 'printf "#!/bin/sh\necho ran\n" >x && chmod 755 x && ./x && chmod 600 x && stat -c %a x')" "ran
600"
is "also by descriptor, and times" "$(weak_sh 'python3 -c "
import os
fd = os.open(\"x\", os.O_RDWR)
os.fchmod(fd, 0o640)
os.utime(\"x\", (5, 5))
os.chown(\"x\", os.getuid(), os.getgid())
print(oct(os.fstat(fd).st_mode), int(os.stat(\"x\").st_mtime))"')" "0o100640 5"
is "touch, cp -p, tar" "$(weak_sh 'touch -d @9 t && cp -p t u && tar cf - u | (mkdir -p e && tar xf - -C e) && stat -c %Y e/u')" 9
is "private directories" "$(weak_sh 'x=$(mktemp) && chmod 600 "$x" && echo a >~/f && cat ~/f')" a
is "devices work" "$(weak_sh 'echo x >/dev/null && head -c 1 /dev/zero | wc -c && : </dev/tty' 2>&1 | head -n 1)" 1
[ "$(id -u)" -ne 0 ] || like "setuid files are not made" "$(weak_sh 'cp /bin/true s; chmod u+s s 2>/dev/null || echo refused; find s -perm /6000')" "*refused"
status "a timeout ends it" 124 cs run --allow-weaker --workspace "$WS" --timeout 1s -c 'setsid sleep 4711 & sleep 4711'
holds "and everything in it" eventually sh -c '! grep -lsxz 4711 /proc/[0-9]*/cmdline >/dev/null'

# ---- protected files ----
if command -v git >/dev/null && git init -q "$WS" 2>/dev/null; then
    weak -c 'mkdir -p sub/.git/hooks; echo evil >.envrc; echo evil >.git/hooks/pre-commit' >"$T/.out" 2>"$T/.err"
    like "a hook is not left" "$(cat "$WS/.git/hooks/pre-commit" 2>&1)" "*No such file*"
    like "nor an .envrc" "$(cat "$WS/.envrc" 2>&1)" "*No such file*"
    rm -rf "$WS/.git" "$WS/sub"
fi

# ---- one that stays ----
status "create" 0 cs create --allow-weaker --workspace "$WS"
id=$out
is "exec" "$(cs exec "$id" -c 'echo data >g; cat g')" data
is "file calls" "$(echo more | cs write "$id" h >/dev/null && cs cat "$id" h)" more
is "have the uid of commands" "$(stat -c %u h)" "$(stat -c %u g)"
status "and reach nothing outside" 1 cs read "$id" "$OUT/secret"
weak_sh 'echo closed >closed; chmod 000 closed' >/dev/null
like "they have no capability: as commands" "$(weak_sh 'cat closed')" "*denied*"
status "so file calls" 1 cs read "$id" closed
json "info reports the level to every process" "$(cs info "$id" --json)" \
    "any(x['name'] == 'rung' for x in v['layers']) == ('$want' != 'FULL')"
pid=$(cs exec "$id" -d -c 'sleep 4712')
status "destroy" 0 cs destroy "$id"
holds "its processes end" eventually sh -c '! grep -lsxz 4712 /proc/[0-9]*/cmdline >/dev/null'
[ -z "$pid" ] && fail "a background process had a number"
rm -rf closed d e g h ran s t u x
is "the workspace is clean" "$(ls -A "$WS")" ""
