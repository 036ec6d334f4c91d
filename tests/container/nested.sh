#!/bin/bash
# nested.sh [user]: sandboxes inside of a jail, with --nested; and that what the jail hides stays
# hidden from root of a namespace inside. Without the option none of them starts.
# shellcheck disable=SC2016 # expanded inside
here=$(cd "${0%/*}" && pwd) build=${CAISSON%/*}
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/../escape/lib.sh"
BROWSER=${BROWSER:?set BROWSER to the program that does what a browser does}
nest() { cs run --nested --workspace "$WS" --read "$build" --timeout 60s "$@"; }
nest_sh() { nest -c "$1" 2>&1 | grep -v '^caisson: run: nested: \|^caisson: run: denied '; }
cp "$BROWSER" "$WS/browser"

# ---- off by default, and what it costs ----
for tool in 'bwrap --ro-bind / / true' './browser' 'unshare -U true' "$CAISSON run -- true"; do
    command -v "${tool%% *}" >/dev/null || continue
    status "without --nested: $tool" 1 cs run --workspace "$WS" --read "$build" -c "$tool && exit 0; exit 1"
done
status "with --nested" 0 cs run --nested --workspace "$WS" --json -- true
like "one line says what it costs" "$err" "caisson: run: nested: commands may make namespaces and mounts: *Landlock*"
json "each layer says so" "$out" \
    '{x["name"]: x["status"] for x in v["layers"]}["landlock"] == "weaker" and
     {x["name"]: x["status"] for x in v["layers"]}["seccomp"] == "weaker" and
     any(x["name"] == "nested" for x in v["layers"])'
status "a backend without jails refuses it" 125 cs run --backend local --nested -- true
like "by name" "$err" "*--nested*"
status "without namespaces it is refused" 125 "$PROBE" without userns "$CAISSON" run --allow-weaker --nested --workspace "$WS" -- true
like "by name, with the reason" "$err" "caisson: run: --nested: needs a full jail: *"

# ---- what works ----
is "a jail in a jail" "$(nest_sh "'$CAISSON' run -c 'echo in >made; unshare -U true 2>/dev/null || cat made'")" in
is "and one in that" "$(nest_sh "'$CAISSON' run --nested --read '$build' -- '$CAISSON' run -- echo third 2>/dev/null")" third
json "the inner jail is a full one" "$(nest_sh "'$CAISSON' doctor --json")" 'v["rung"] == "full"'
is "network rules in it" "$(nest_sh "'$CAISSON' run --allow ok.test:443 -- echo reached")" reached
is "what a browser does" "$(nest_sh './browser')" sandboxed
is "unshare with its own /proc" "$(nest_sh 'unshare -Urpf --mount-proc cat /proc/1/comm')" cat
if command -v bwrap >/dev/null; then
    is "bwrap" "$(nest_sh 'bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib64 /lib64 --symlink usr/lib /lib --proc /proc --dev /dev --tmpfs /tmp --unshare-all --die-with-parent sh -c "echo \$\$; ls /"' | tr '\n' ' ')" "2 bin dev lib lib64 proc tmp usr "
    is "bwrap with everything bound" "$(nest_sh 'bwrap --bind / / --unshare-pid --proc /proc --dev /dev sh -c "echo x >w; cat w"')" x
else
    skip "bwrap" "it is not installed"
fi
if command -v codex >/dev/null; then
    is "codex sandbox" "$(nest --read "$(dirname "$(dirname "$(realpath "$(command -v codex)")")")" -c 'codex sandbox -- sh -c "touch no 2>/dev/null || echo confined"')" confined
else
    skip "codex sandbox" "it is not installed"
fi
rm -f made w

# ---- what stays ----
is "commands have no capability" "$(nest_sh 'grep -c "^Cap\(Prm\|Eff\|Bnd\):.*[1-9a-f]" /proc/self/status')" 0
is "and are not root on the host" "$(nest_sh 'unshare -Ur sh -c "touch made"; stat -c %u made')" "$(nest_sh 'id -u')"
rm -f made
mkdir -p "$WS/private" && echo secret >"$WS/private/key"
git init -q "$WS" 2>/dev/null || mkdir -p "$WS/.git/hooks"
mkdir -p "$WS/.git/hooks"
cp "$here/uncover.py" "$WS/"
ways=$(nest --deny "$WS/private" -- unshare -Urm python3 uncover.py "$WS" 2>"$T/err")
holds "no hook was planted" test ! -e "$WS/.git/hooks/evil"
control=$(unshare -m --propagation private python3 "$here/uncover.py" "$WS" 2>/dev/null)
holds "every way was tried" test "$(grep -c 'held$\|ESCAPED$' <<<"$ways")" -ge 22
while read -r name got; do
    if [ "$got" = held ]; then pass "$name"; else fail "$name" "$got"; fi
done <<<"$ways"
[ "$ROOT" = yes ] && holds "control: without covers they succeed" test "$(grep -c ESCAPED <<<"$control")" -ge 5
like "the keeper's files are out of reach" "$(nest_sh 'echo 0 >/proc/1/oom_score_adj')" "*denied*"
like "kernel settings too" "$(nest_sh 'unshare -Urpf --mount-proc sh -c "cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern"')" "*denied*"
is "no packet leaves" "$(nest_sh 'unshare -Urn true; python3 -c "
import socket
try:
    socket.create_connection((\"192.0.2.1\", 80), 2)
except OSError as e:
    print(e.errno in (101, 111))"')" True
status "namespaces are counted" 0 nest -c 'python3 -c "
import ctypes, os
libc = ctypes.CDLL(None)
made = 0
while made < 400 and libc.unshare(0x10000000) == 0:
    made += 1
os._exit(0 if made < 300 else 1)"'
nest -c 'unshare -Urpf --mount-proc sleep 4713 & sleep 1; exit 0' >/dev/null
holds "nothing inside outlives it" eventually sh -c '! grep -lsxz 4713 /proc/[0-9]*/cmdline >/dev/null'
