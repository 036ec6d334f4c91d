#!/bin/bash
# The second rung: a host that refuses namespaces. Without --allow-weaker nothing runs; with it the
# same promises hold by Landlock and seccomp, and everything says that they are fewer.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/../escape/lib.sh"

chmod 711 "$T" && chmod 777 "$WS" # commands of a root caller are nobody
no_userns=("$PROBE" without userns)
weak() { "${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$WS" --timeout 60s "$@"; }
weak_sh() { weak -c "$1" 2>&1 | grep -v '^caisson: run: weaker isolation'; }

# Landlock is the wall here: a host without it has no second rung either.
if ! err=$(weak -- true 2>&1); then
    must_work && fail "the second rung opens" "$err" && exit 1
    skip "all of it" "no second rung here: ${err%%$'\n'*}"
    exit 0
fi

# ---- which rung, and who says so ----
status "a host with namespaces gives all of them, allowed or not" 0 cs run --allow-weaker --workspace "$WS" --json -- true
json "and says so" "$out" 'all(x["name"] != "rung" for x in v["layers"])'
is "without a warning" "$err" ""
for layer in userns userns-limit netns; do
    rm -f "$WS/ran"
    status "without $layer: refused" 125 "$PROBE" without $layer "$CAISSON" run --workspace "$WS" -- touch "$WS/ran"
    like "without $layer: it names the layer and the way on" "$err" "*namespace*--allow-weaker*"
    holds "without $layer: nothing ran" test ! -e "$WS/ran"
    status "without $layer, allowed: it runs" 0 "$PROBE" without $layer "$CAISSON" run --allow-weaker --workspace "$WS" -- touch "$WS/ran"
    holds "without $layer, allowed: it did run" test -e "$WS/ran"
    like "without $layer, allowed: one line warns" "$err" "caisson: run: weaker isolation: *namespace*"
done
json "each result says what was enforced" "$(weak --json -- true 2>/dev/null)" \
    '[x for x in v["layers"] if x["name"] == "rung"][0]["status"] == "weaker" and
     {x["name"]: x["status"] for x in v["layers"]}["pid"] == "off" and
     {x["name"]: x["status"] for x in v["layers"]}["seccomp"] == "on"'

# ---- only namespaces may be missing ----
# refused NAME PATTERN LAYER...: on a host without all these, allowed or not
refused()
{
    local name=$1 pattern=$2 wrap=() layer
    shift 2
    for layer in "$@"; do wrap+=("$PROBE" without "$layer"); done
    rm -f "$WS/ran"
    status "$name: refused" 125 "${wrap[@]}" "$CAISSON" run --allow-weaker --workspace "$WS" -- touch "$WS/ran"
    like "$name: the message names it" "$err" "$pattern"
    holds "$name: nothing ran" test ! -e "$WS/ran"
}
refused "no Landlock" '*Landlock*' landlock
refused "no Landlock, no namespaces" '*Landlock*' userns landlock
refused "Landlock switched off, no namespaces" '*Landlock*' userns landlock-off
refused "no seccomp" '*seccomp*' seccomp
refused "no seccomp, no namespaces" '*seccomp*' userns seccomp
refused "no limits, no namespaces" '*limits*' userns limits
refused "no_new_privs refused, no namespaces" '*Landlock*' userns nnp
status "without openat2 there is another way" 0 "$PROBE" without openat2 "${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$WS" -- true
status "without keyctl, as in a container" 0 "$PROBE" without keyring "${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$WS" -- true

if [ "$ROOT" = no ] && unshare -U -c --keep-caps true 2>/dev/null; then
    none=(unshare -U -c --keep-caps sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"' sh)
    status "user.max_user_namespaces=0: refused" 125 "${none[@]}" "$CAISSON" run --workspace "$WS" -- true
    like "it says which setting, and the command" "$err" "*sysctl -w user.max_user_namespaces=*"
    status "user.max_user_namespaces=0, allowed: it runs" 0 "${none[@]}" "$CAISSON" run --allow-weaker --workspace "$WS" -- true
else
    skip "user.max_user_namespaces=0" "needs an ordinary user who may make a user namespace"
fi

# ---- what cannot be had without mounts is refused ----
mkdir -p "$WS/sub" "$OUT/granted"
# cannot PATTERN OPTION...
cannot()
{
    local pattern=$1
    shift
    status "refused: $*" 125 weak "$@" -- touch "$WS/no"
    like "and it says why" "$err" "$pattern"
}
cannot "*--deny $WS/sub: needs namespaces*" --deny "$WS/sub"
cannot '*--disk: needs namespaces*' --disk 10M
cannot '*--read *: a read-only share inside a writable one needs namespaces*' --read "$WS/sub"
status "refused: a place inside" 125 "${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$WS:/elsewhere" -- touch "$WS/no"
like "and it says why" "$err" '*--workspace /elsewhere: a different path inside needs namespaces*'
status "refused: a share with our own directories" 125 "${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$T" -- touch "$WS/no"
like "and it says why" "$err" "*--workspace $T: it contains caisson's own directory $T/*"
holds "nothing ran" test ! -e "$WS/no"
if [ "$ROOT" = yes ]; then
    mkdir -m 755 "$T/roots"
    is "a directory that only root may write needs root, without capabilities (tests/container)" \
        "$("${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$T/roots" -- id -u 2>/dev/null)" 0
    like "one that others may use does not" "$(weak_sh 'id -u; id -G')" "[1-9]*"
    mkdir -m 700 "$T/roots/others" && chown 54321 "$T/roots/others" && chmod 700 "$T/roots"
    status "a directory that no such user can use is refused" 125 "${no_userns[@]}" "$CAISSON" run --allow-weaker --workspace "$T/roots/others" -- true
    like "and it says what to do" "$err" "*--workspace $T/roots/others: not writable for the sandbox user (uid 0)*hint: run caisson as the owner of $T/roots/others*:ro*"
fi

# ---- files ----
echo secret >"$OUT/secret"
chmod 755 "$OUT" && chmod 644 "$OUT/secret"
ln -sfn "$OUT/secret" "$WS/link"
is "control: the secret can be read outside" "$(cat "$OUT/secret")" secret
like "a file that was not granted" "$(weak_sh "cat '$OUT/secret'")" "*Permission denied*"
like "through a link" "$(weak_sh 'cat link')" "*Permission denied*"
like "by its directory" "$(weak_sh "ls '$OUT'")" "*Permission denied*"
like "another way: hard link" "$(weak_sh "ln '$OUT/secret' mine && cat mine")" "*ln: *"
like "a system file that is nobody's business" "$(weak_sh 'cat /etc/shadow /etc/hostname')" "*Permission denied*Permission denied*"
like "writing outside" "$(weak_sh "echo x >'$OUT/new' || echo x >/tmp/csn-no || echo x >/usr/no")" "*denied*denied*denied*"
holds "nothing was written" test ! -e "$OUT/new" -a ! -e /tmp/csn-no
is "what was granted can be read" "$(echo yes >"$OUT/granted/f" && weak --read "$OUT/granted" -c "cat '$OUT/granted/f'" 2>/dev/null)" yes
like "and not written" "$(weak --read "$OUT/granted" -c "echo x >'$OUT/granted/f'" 2>&1)" "*denied*"
is "the workspace is writable" "$(weak_sh 'echo in >made && cat made')" in
is "ordinary work" "$(weak_sh 'x=$(mktemp) && echo a | tee "$x" | tr a b && echo "$HOME" >~/f && [ -s ~/f ] && cat <(echo c) && echo d >/dev/null')" "b
c"
private=$(weak_sh 'echo "$HOME $TMPDIR"')
holds "home and TMPDIR are gone afterwards" test ! -e "${private%% *}" -a ! -e "${private##* }"
holds "and were not the caller's" test "${private%% *}" != "$HOME"

# ---- processes ----
sleep 300 &
other=$!
like "a signal to a process outside" "$(weak_sh "kill -9 $other")" "*not permitted*"
holds "it lives" kill -0 $other
like "what it was started with" "$(weak_sh "cat /proc/$other/cmdline")" "*denied*"
like "its environment" "$(weak_sh "cat /proc/$other/environ")" "*denied*"
kill $other
like "a signal to the keeper" "$(weak_sh 'kill -9 $PPID')" "*not permitted*"
is "signals among one's own" "$(weak_sh 'sleep 300 & kill $! && wait $! ; echo $?')" 143
weak -c 'setsid sleep 301 & echo $! >pid; echo $$ >pid2; wait' >/dev/null 2>&1 &
owner=$!
eventually test -s "$WS/pid2"
pids="$(cat "$WS/pid" "$WS/pid2")"
kill -9 "$(pgrep -P $owner -x caisson || echo $owner)" $owner 2>/dev/null
# shellcheck disable=SC2086
holds "they end with their owner" gone $pids
holds "and so do its directories" eventually sh -c '[ -z "$(ls "$1")" ]' sh "$XDG_RUNTIME_DIR/caisson"
is "control: a variable is inherited" "$(SECRET_KEY=value env | grep -c SECRET)" 1
is "the environment is clean" "$(SECRET_KEY=value weak_sh env | grep -c SECRET)" 0
rm -f "$WS/pid" "$WS/pid2"

# ---- network ----
cat >"$T/serve.py" <<'PY'
import socket, sys
tcp = socket.create_server(("127.0.0.1", 0))
path = socket.socket(socket.AF_UNIX)
path.bind(sys.argv[1] + "/s"), path.listen()
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0" + sys.argv[1]), abstract.listen()
open(sys.argv[1] + "/port", "w").write(str(tcp.getsockname()[1]))
sys.stdin.read()
PY
cat >"$WS/dial.py" <<'PY'
import errno, socket, sys
def attempt(family, kind, where):
    try:
        socket.socket(family, kind).connect(where)
        return "reached"
    except OSError as e:
        return errno.errorcode[e.errno]
port, path = int(sys.argv[1]), sys.argv[2]
a, b = socket.socketpair()
a.send(b"x")
print(b.recv(1) == b"x", *[attempt(*h) for h in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)), (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)),
    (socket.AF_UNIX, socket.SOCK_STREAM, path + "/s"), (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + path))])
PY
mkfifo "$T/hold"
mkdir -m 755 "$WS/sock"
python3 "$T/serve.py" "$WS/sock" <"$T/hold" &
server=$!
exec 7>"$T/hold"
eventually test -s "$WS/sock/port"
port=$(cat "$WS/sock/port")
is "control: outside all are reached" "$(python3 "$WS/dial.py" "$port" "$WS/sock")" "True reached reached reached reached"
is "no network, no unix socket, but pairs" "$(weak_sh "python3 dial.py $port '$WS/sock'")" "True EACCES EACCES EACCES EACCES"
exec 7>&-
wait $server

# ---- one that stays ----
status "create" 0 "${no_userns[@]}" "$CAISSON" create --allow-weaker --workspace "$WS"
id=$out
like "it warns" "$err" "caisson: create: weaker isolation: *"
json "info says so, to every process" "$(cs info "$id" --json)" \
    '[x for x in v["layers"] if x["name"] == "rung"][0]["status"] == "weaker" and v["isolation"] == "kernel"'
is "exec" "$(cs exec "$id" -c 'echo data >f; cat f')" data
is "file calls see it" "$(cs cat "$id" f)" data
is "and the same paths" "$(cs cat "$id" "$WS/f")" data
status "file calls are bound as commands are" 1 cs read "$id" "$OUT/secret"
like "the answer names what would allow it" "$err" "*not granted*--read $OUT/secret*"
status "through a link too" 1 cs read "$id" link
status "and by .." 1 cs read "$id" ../out/secret
status "writing" 1 cs write "$id" "$OUT/new"
status "listing" 1 cs ls "$id" "$OUT"
status "the root" 1 cs ls "$id" /
is "the system can be read by both" "$(cs read "$id" /etc/passwd --limit 1 2>/dev/null)" "$(cs exec "$id" -- head -n 1 /etc/passwd)"
status "why says so without doing it" 0 cs why "$id" read "$OUT/secret"
like "denied" "$out" "denied*"
pid=$(cs exec "$id" -d -c 'sleep 302')
holds "a background process runs" kill -0 "$pid"
keeper=$(cs info "$id" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["keeper_pid"])')
status "destroy" 0 cs destroy "$id"
holds "everything ends" gone "$pid" "$keeper"
id=$("${no_userns[@]}" "$CAISSON" create --allow-weaker --workspace "$WS" 2>/dev/null)
mark=$((300000 + $$)) # seconds that nobody else sleeps
pid=$(cs exec "$id" -d -c "setsid sleep $mark")
keeper=$(cs info "$id" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["keeper_pid"])')
eventually pgrep -f "^sleep $mark\$"
below=$(pgrep -f "^sleep $mark\$")
kill -9 "$keeper"
# shellcheck disable=SC2086
holds "a killed keeper leaves nothing behind" gone "$pid" $below
status "and the sandbox has ended" 125 cs exec "$id" -- true
holds "no private directory is left" eventually test ! -e "/tmp/caisson-$id"
