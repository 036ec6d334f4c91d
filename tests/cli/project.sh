#!/bin/bash
# A project's caisson.json: it narrows at once, and grants only what the user trusts.
# project.sh [user]: as the caller, or as an ordinary user.
if [ "${1:-caller}" = user ] && [ "$(id -u)" -eq 0 ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \
        env -i PATH=/usr/bin:/bin CAISSON="$CAISSON" CSN_MUST_WORK="${CSN_MUST_WORK:-}" "$0"
fi
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset CAISSON_BACKEND # the file must not select one, and jail is the default
chmod 711 "$T"
p=$T/p
mkdir -p "$p/src/deep" "$p/other" outside
echo s >"$p/secret" && echo k >"$p/src/deep/key" && echo o >outside/file
chmod -R a+rwX "$p" # commands of a root caller are nobody
cd "$p" || exit 1
# a host on which no jail opens has other tests
if ! reason=$(cs run -- true 2>&1); then
    skip "all of it" "no jail: ${reason%%$'\n'*}"
    exit 0
fi
write() { printf '%s\n' "$1" >"$p/caisson.json"; }

# ---- narrowing needs no trust ----
write '{"deny": ["secret"], "timeout": "20s", "commands": ["cat", "sh"]}'
status "a denied path" 1 cs run -- cat secret
like "is denied" "$err" "*denied read*secret*"
status "a command that the list does not have" 126 cs run -- ls
status "one that it has" 0 cs run -- cat src/deep/key
is "nothing else is printed" "$out$err" k
status "--no-project ignores the file" 0 cs run --no-project -- cat secret
is "all of it" "$out" s
status "the file of the directory of --workspace counts" 1 env -C / "$CAISSON" run --workspace "$p" -- cat secret
status "in its other form" 1 env -C / "$CAISSON" run "--workspace=$p:rw" -- cat secret
status "not that of the current directory" 0 cs run --workspace "$T/outside" -- ls
status "and behind -- it is the command's" 126 cs run -- ls --no-project
json "create uses it" "$(id=$(cs create) && cs info "$id" --json && cs destroy "$id")" \
    'v["rules"][0]["rule"] == "deny secret"'
like "mcp uses it" "$(cs mcp 2>/dev/null <<'J'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"file_path":"secret"}}}
J
)" '*denied*'
# ---- a timeout may only become shorter ----
write '{"timeout": "10m"}'
status "run has no timeout: any is shorter" 0 cs run -- true
status "create has 30s: 10m is longer" 1 cs create
like "and needs trust" "$err" "*you have not trusted it: timeout*"
status "mcp has 120s" 1 cs mcp
like "and needs trust, too" "$err" "*you have not trusted it: timeout*"
write '{"timeout": "100s"}'
status "less than that is accepted" 0 cs mcp
write '{"timeout": "none"}'
status "create: it cannot be removed" 1 cs create
mkdir -p "$XDG_CONFIG_HOME/caisson" && echo '{"timeout": "1m"}' >"$XDG_CONFIG_HOME/caisson/config.json"
status "nor the user's own, by run" 125 cs run -- true
like "it is named" "$err" "*you have not trusted it: timeout*"
write '{"timeout": "59s"}'
status "a shorter one holds" 0 cs run -- true
rm "$XDG_CONFIG_HOME/caisson/config.json"
write '{"workspace": ".:ro"}'
status "a read-only workspace" 1 cs run -- touch new
holds "nothing was written" ! test -e new

# ---- rules hold in all of the project ----
write '{"deny": ["secret", "src/deep/key", "**/.env"]}'
cd src/deep || exit 1
echo e >.env
status "a path below the workspace, which is a directory of the project" 1 cs run -- cat key
status "a pattern" 1 cs run -- cat .env
status "a workspace with another path inside" 1 cs run --workspace "$p/src:/w" -- cat /w/deep/key
status "a path outside of the workspace is no mistake" 0 cs run -- true
status "and is denied when an option shares it" 1 cs run --read "$p" -- cat "$p/secret"
cd "$p" || exit 1

# ---- what grants needs trust ----
# refuses KEY JSON
refuses()
{
    write "$2"
    status "$1: refused" 125 cs run -- true
    like "$1: the message names file, key and ways on" "$err" \
        "*$p/caisson.json *: *$1*hint: caisson trust $p *--no-project*"
}
refuses read '{"read": ["/opt"]}'
refuses write '{"write": "/opt"}'
refuses env '{"env": ["SECRET"]}'
refuses home '{"home": "."}'
refuses network.mode '{"network": "all"}'
refuses network.allow '{"network": {"allow": ["ok.test"]}}'
refuses network.packages '{"network": {"packages": ["npm"]}}'
refuses network.host_ports '{"network": {"host_ports": ["5432"]}}'
refuses network.publish '{"network": {"publish": ["8080"]}}'
refuses backend '{"backend": "local"}'
refuses allow_weaker '{"allow_weaker": true}'
refuses nested '{"nested": true}'
refuses audit '{"audit": "none"}'
refuses rules '{"rules": [{"op": "read", "effect": "allow", "path": "secret"}]}'
refuses limits.pids '{"limits": {"pids": 100000}}'
refuses limits.memory '{"limits": {"memory": "none"}}'
refuses workspace '{"workspace": ".."}'
write '{"backend": "jail", "network": "none", "limits": {"pids": 50, "memory": "256M"}, "nested": false, "read": []}'
status "values that hold anyway are no grants" 0 cs run -- true
write '{"env": ["A=1"]}'
status "the same as JSON" 125 cs run --json -- true
json "has the error" "$out" 'v["error"]["code"] == "invalid" and "env" in v["error"]["message"]'

# ---- compared with what the user has ----
mkdir -p "$XDG_CONFIG_HOME/caisson"
echo '{"limits": {"pids": 20}, "commands": ["cat", "true"]}' >"$XDG_CONFIG_HOME/caisson/config.json"
refuses limits.pids '{"limits": {"pids": 30}}'
refuses commands '{"commands": ["cat", "ls"]}'
write '{"commands": ["cat"], "limits": {"pids": 10}}'
status "a shorter list is taken" 126 cs run -- true
echo '{"commands": ["ls"]}' >"$T/policy.json"
status "and not made longer by the files around it" 126 cs run --policy "$T/policy.json" -- true
rm "$XDG_CONFIG_HOME/caisson/config.json"
write '{"commands": ["cat"]}'
status "a policy's list is not made longer by the project's" 125 cs run --policy "$T/policy.json" -- cat secret
like "which is said" "$err" "*commands*"

# ---- trust ----
write '{"env": ["FROM=project"], "read": ["'"$T"'/outside"], "profiles": {"test": {"env": ["MODE=test"]}}}'
status "trust without a terminal" 2 cs trust
like "names --yes" "$err" "*terminal*hint: caisson trust --yes*"
like "and has shown the grants" "$out" "*grants more than the defaults: read, env*may be read: $T/outside*FROM*--profile test*MODE*"
is "but not the values of variables" "$(grep -c 'FROM=project' <<<"$out")" 0
status "still refused" 125 cs run -- true
# answers WORD: what `trust` exits with when a terminal answers so
answers()
{
    python3 - "$CAISSON" "$1" <<'P'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "trust"])
seen = b""
while b"[y/N]" not in seen:
    seen += os.read(fd, 4096)
os.write(fd, sys.argv[2].encode() + b"\n")
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
}
holds "a no on a terminal" ! answers n
status "changes nothing" 125 cs run -- true
holds "a yes on a terminal" answers y
status "is enough" 0 cs run -- true
cs untrust
status "trust --yes" 0 cs trust --yes
is "it grants" "$(cs run -- env | grep ^FROM)" FROM=project
is "and shares" "$(cs run -- cat "$T/outside/file")" o
is "also from a directory of the project" "$(env -C src/deep "$CAISSON" run -- env | grep ^FROM)" FROM=project
is "options come after it" "$(cs run --env FROM=option -- env | grep ^FROM)" FROM=option
is "with its profile" "$(cs run --profile test -- env | grep -c '^MODE=test\|^FROM=project')" 2
status "a profile that no file has" 125 cs run --profile tst -- true
like "is named" "$err" "*--profile 'tst'*"
status "without the file it has none" 125 cs run --no-project --profile test -- true
json "trust --list" "$(cs trust --list --json)" '[(e["path"], e["state"]) for e in v] == [("'"$p"'/caisson.json", "trusted")]'
cp -r "$p" "$T/copy"
status "a copy of the project is not trusted" 125 env -C "$T/copy" "$CAISSON" run -- true
echo >>caisson.json
status "a changed file is not trusted" 125 cs run -- true
like "which is said" "$err" "*has changed since you trusted it*"
like "also in the list" "$(cs trust --list)" "changed *$p/caisson.json"
status "trusted again" 0 cs trust --yes "$p/src"
status "it grants again" 0 cs run -- true
status "untrust" 0 cs untrust
status "refused again" 125 cs run -- true
status "untrust of what is not trusted" 1 cs untrust "$p/caisson.json"
is "the list is empty" "$(cs trust --list)" ""

# ---- the workspace of a trusted file ----
write '{"workspace": "."}'
cs trust --yes >/dev/null
is "commands see the project and start in the current directory" \
    "$(env -C src/deep "$CAISSON" run -- sh -c 'pwd; cat ../../secret')" "$p/src/deep"$'\n's
cs untrust
status "without trust the workspace stays small" 125 env -C src/deep "$CAISSON" run -- true

# ---- a command cannot change it ----
write '{"deny": ["secret"]}'
sum=$(cksum <caisson.json)
status "writing it" 2 cs run -- sh -c 'echo {} >caisson.json'
status "replacing it" 1 cs run -- sh -c 'echo {} >c && mv -f c caisson.json'
status "removing it" 1 cs run -- rm -f caisson.json
is "it is as it was" "$(cksum <caisson.json)" "$sum"
cs run -- sh -c 'echo "{}" >src/caisson.json; echo "{}" >other/CAISSON.JSON' 2>"$T/err"
like "one that a command makes is moved away" "$(cat "$T/err")" "*quarantined*"
is "wherever it is" "$(find src other -iname caisson.json)" ""
mkdir -p "$HOME/q" && chmod -R a+rwX "$HOME"
status "the record of trust is out of reach" 0 env -C "$T" "$CAISSON" run --no-project --workspace "$T" -- \
    sh -c '! ls state/caisson/* 2>/dev/null | grep -q .'

# ---- files that are no project files ----
# hostile NAME PATTERN: after the file was made
hostile()
{
    status "$1: refused" 125 timeout 60 "$CAISSON" run -- true
    like "$1: the message says why" "$err" "$2"
    like "$1: and names the way on" "$err" "*--no-project*"
    rm -rf caisson.json
}
rm -f caisson.json
ln -s "$T/policy.json" caisson.json && hostile "a symlink" "*'$p/caisson.json' is a symlink*"
ln -s nowhere caisson.json && hostile "a dangling symlink" "*is a symlink*"
mkfifo caisson.json && hostile "a fifo" "*is not a regular file*"
mkdir caisson.json && hostile "a directory" "*is not a regular file*"
truncate -s 2M caisson.json && hostile "a huge file" "*more than 1048576 bytes*"
write '{}' && chmod o+w caisson.json && hostile "a file that others can write" "*other users can write*"
write '{"deny": ["a",]}' && hostile "invalid JSON" "*$p/caisson.json: line 1, column *"
write '{"dney": ["a"]}' && hostile "an unknown key" "*unknown key 'dney'*"
write '{"profiles": {"x": {"dney": []}}}' && hostile "an unknown key of a profile" "*profiles.x*dney*"
: >caisson.json && hostile "an empty file" "*line 1*"
if [ "$(id -u)" -eq 0 ]; then
    write '{}' && chown 65534 caisson.json && hostile "another owner" "*belongs to user 65534*"
    # a directory of another user ends the search
    mkdir -p "$T/theirs/mine" && write '{"nested": true}' && cp caisson.json "$T/theirs/"
    rm caisson.json
    chown 65534 "$T/theirs" && chmod a+rwX "$T/theirs/mine"
    status "above a directory of another user nothing is read" 0 env -C "$T/theirs/mine" "$CAISSON" run -- true
fi
echo '{"nested": true}' >"$HOME/caisson.json"
status "the home directory ends the search" 0 env -C "$HOME/q" "$CAISSON" run -- true
status "unless it is the workspace itself" 125 env -C "$HOME" "$CAISSON" run -- true
if unshare -Urm true 2>/dev/null; then
    echo '{"nested": true}' >caisson.json
    # shellcheck disable=SC2016
    status "a mount point ends the search" 0 unshare -Urm sh -c '
        mount --bind "$1/other" "$1/other" && cd "$1/other" &&
        CAISSON_BACKEND=local exec "$2" run -- true' _ "$p" "$CAISSON"
    status "without one it goes on" 125 env -C "$p/other" "$CAISSON" run -- true
    rm caisson.json
fi
