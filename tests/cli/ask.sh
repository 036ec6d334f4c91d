#!/bin/bash
# shellcheck disable=SC2016 # expanded inside, and a key
# run --ask and --ask-file: a grant for each denial, after the command, and never more.
if [ "${1:-caller}" = user ] && [ "$(id -u)" -eq 0 ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \
        env -i PATH=/usr/bin:/bin CAISSON="$CAISSON" "$0"
fi
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset CAISSON_BACKEND
chmod 711 "$T"
p=$T/p
mkdir -p "$p" "$T/data" "$T/more dir"
echo d >"$T/data/f" && echo m >"$T/more dir/f"
chmod -R a+rX "$T/data" "$T/more dir" && chmod a+rwx "$p"
cd "$p" || exit 1
if ! reason=$(cs run -- true 2>&1); then
    skip "all of it" "no jail: ${reason%%$'\n'*}"
    exit 0
fi

# ---- a file for review ----
status "--ask-file" 1 cs run --ask-file "$T/one.json" -- cat "$T/data/f"
json "has the smallest grant" "$(cat "$T/one.json")" 'v["read"] == ["'"$T"'/data/f"] and set(v) == {"$schema", "read"}'
like "names it" "$err" "*'$T/one.json'*--policy $T/one.json*"
is "which is enough" "$(cs run --policy "$T/one.json" -- cat "$T/data/f")" d
status "it is not replaced" 2 cs run --ask-file "$T/one.json" -- touch ran
holds "and nothing has run" ! test -e ran
status "a path with a space, and a host" 1 cs run --ask-file "$T/two.json" -- \
    sh -c 'cat "$1"; echo "curl: (6) Could not resolve host: ok.test" >&2; false' _ "$T/more dir/f"
json "both are there" "$(cat "$T/two.json")" 'v["network"] == {"allow": ["ok.test"]} and v["read"] == ["'"$T"'/more dir/f"]'
status "no denial" 0 cs run --ask-file "$T/none.json" -- true
holds "no file" ! test -e "$T/none.json"
status "a protected file" 1 cs run --ask-file "$T/none.json" -- sh -c 'mkdir .vscode; echo "{}" >.vscode/tasks.json; false'
holds "is not offered" ! test -e "$T/none.json"

# ---- usage ----
status "--ask without a terminal" 2 cs run --ask -- touch ran
like "names --ask-file" "$err" "*--ask needs a terminal*hint: --ask-file*"
status "--ask with --json" 2 cs run --ask-file x --json -- touch ran
status "--ask with --ask-file" 2 cs run --ask --ask-file x -- touch ran
holds "nothing has run" ! test -e ran

# ---- on a terminal ----
cat >"$T/drive.py" <<'P'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen = b""
try:
    for answer in sys.argv[1].split(","):
        while b"[N]: " not in seen:
            seen += os.read(fd, 4096)
        print(seen.decode().replace("\r", ""), end="")
        seen = b""
        os.write(fd, answer.encode() + b"\n")
    while True:
        print(os.read(fd, 4096).decode().replace("\r", ""), end="")
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
answer() { python3 "$T/drive.py" "$1" "$CAISSON" run --ask "${@:2}"; }
status "no" 1 answer n -- cat "$T/data/f"
like "the question shows the option" "$out" "*allow --read $T/data/f ?*"
holds "nothing is remembered" ! test -e caisson.json
status "once" 0 answer o -- cat "$T/data/f"
like "it ran again" "$out" "*d"
holds "nothing is remembered" ! test -e caisson.json
status "for the project" 0 answer p -- cat "$T/data/f"
json "the file has the grant" "$(cat caisson.json)" 'v["read"] == ["'"$T"'/data/f"]'
is "and is trusted" "$(cs run -- cat "$T/data/f")" d
echo '{"deny_missing_ok": ["x"], "network": "none", "read": "'"$T"'/data/f"}' >caisson.json
cs trust --yes >/dev/null
status "one more" 0 answer p -- sh -c 'test -e once && exit; touch once; echo "curl: (6) Could not resolve host: ok.test" >&2; exit 6'
json "what was there stays" "$(cat caisson.json)" 'v == {"deny_missing_ok": ["x"], "network": {"mode": "none", "allow": ["ok.test"]}, "read": "'"$T"'/data/f"}'
json "the new content is trusted" "$(cs trust --list --json)" '[e["state"] for e in v] == ["trusted"]'
echo '{"profiles": {"t": {"nested": true}}}' >caisson.json
status "a file with what the user has not trusted" 126 answer p -- cat "$T/data/f"
like "is not made trusted in passing" "$out" "*has grants or profiles that you have not trusted*caisson trust*"
json "and stays as it is" "$(cat caisson.json)" 'v == {"profiles": {"t": {"nested": True}}}'
