#!/bin/bash
# shellcheck disable=SC2016 # expanded inside
# Copy-on-write workspaces of the backend local, which are copies.
if [ "${1:-caller}" = user ] && [ "$(id -u)" -eq 0 ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \
        env -i PATH=/usr/bin:/bin CAISSON="$CAISSON" "$0"
fi
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
p=$T/p
layers=$XDG_STATE_HOME/caisson/layers
mkdir -p "$p/src/deep" "$p/old"
cd "$p" || exit 1
printf '1\n2\n3\n' >src/a && echo b >src/b && echo o >old/file && echo s >secret
ln -s a src/link
chmod 640 src/b
left() { ls -A "$layers" 2>/dev/null; }
# gone NAME: waits until no layers are left
gone()
{
    while [ -n "$(left)" ]; do sleep 0.05; done
    pass "$1"
}

# ---- the story ----
id=$(cs create --cow --undo --record-changes)
json "info says what it is" "$(cs info "$id" --json)" \
    '[(l["status"], "by a copy" in l["detail"]) for l in v["layers"] if l["name"] == "workspace"] == [("weaker", True)]'
is "commands see the files" "$(cs exec "$id" -c 'cat src/link; stat -c %a src/b')" "$(printf '1\n2\n3\n640')"
cs exec "$id" -c 'echo 4 >>src/a; echo new >src/new; rm -r old; mkdir -p .git/hooks; echo "#!/bin/sh" >.git/hooks/pre-commit'
is "the host's files stay" "$(cat src/a old/file | tr '\n' ' ')" "1 2 3 o "
status "diff --stat" 0 cs diff "$id" --stat
like "has the changes" "$out" "*A .git/hooks/pre-commit*held back*D old/file*M src/a*+1*A src/new*"
status "commit of a directory" 0 cs commit "$id" src
is "writes it" "$(cat src/a src/new | tr '\n' ' ')" "1 2 3 4 new "
holds "and nothing else" test -e old/file
status "the rest" 0 cs commit "$id"
like "protected files are held back" "$out$err" "*held back*.git/hooks/pre-commit*"
holds "deletions are written" ! test -e old
status "discard" 0 cs discard "$id"
is "leaves nothing" "$(cs diff "$id" --stat)" "0 files, +0 -0"

# ---- snapshots and forks ----
cs exec "$id" -c 'echo one >src/b'
is "snapshot prints its name" "$(cs snapshot "$id" first)" first
cs exec "$id" -c 'echo two >src/b; rm src/a'
status "undo" 0 cs undo "$id"
is "takes back one command" "$(cs exec "$id" -c 'cat src/b src/a | head -n 1')" one
cs exec "$id" -c 'echo three >src/b'
status "rollback" 0 cs rollback "$id" first
is "restores" "$(cs exec "$id" -- cat src/b)" one
cs cd "$id" src/deep
status "fork" 0 cs fork "$id"
fork=$out
is "has the files and the directory" "$(cs exec "$fork" -c 'cat ../b; echo "${PWD##*/}"' | tr '\n' ' ')" "one deep "
cs exec "$fork" -c 'echo fork >../b'
is "and its own changes" "$(cs exec "$id" -- cat ../b)" one
cs destroy "$fork"
is "the other one lives" "$(cs exec "$id" -- cat ../b)" one

# ---- file calls ----
is "a file call sees the copy" "$(cs cat "$id" "$p/src/b")" one
echo call | cs write "$id" "$p/src/call" >/dev/null
holds "and changes it" test ! -e src/call
like "diff has it" "$(cs diff "$id" --name-only)" "*src/call*"
echo host >src/b
status "a conflict" 1 cs commit "$id"
holds "writes nothing" test ! -e src/call
status "--mine" 0 cs commit "$id" --mine
is "decides" "$(cat src/b src/call | tr '\n' ' ')" "host call "

# ---- while something runs ----
pid=$(cs exec "$id" -d -- sleep 600)
status "a snapshot while it runs" 1 cs snapshot "$id"
like "is refused: nothing outside may be stopped" "$err" "*processes of sandbox '$id' cannot be stopped*"
is "its process runs" "$(cs ps "$id" | grep -c running)" 1
status "rollback while it runs" 1 cs rollback "$id" first
cs kill "$id" "$pid" KILL
cs logs "$id" "$pid" -f >/dev/null
status "and after" 0 cs rollback "$id" first
cs destroy "$id"
is "nothing is left" "$(left)" ""

# ---- denied paths, modes ----
id=$(cs create --cow --deny "$p/secret")
status "a denied path of the host is denied in the copy" 1 cs cat "$id" secret
like "by its rule" "$err" "*denied*"
status "by its own path, too" 1 cs cat "$id" "$p/secret"
cs destroy "$id"
status "--workspace DIR:cow" 0 cs run --workspace "$p:cow" --commit-on success -- rm src/call
holds "is the same" test ! -e src/call
status "DIR:ro is refused" 125 cs run --workspace "$p:ro" -- true
like "with a reason" "$err" "*supports only a directory, or DIR:cow*"
status "an image is refused" 125 cs run --cow --image debian -- true
like "with a hint" "$err" "*backend 'local' has no images*caisson snapshot ID*"
status "a missing directory" 125 cs run --workspace "$T/none" --cow -- true
is "leaves nothing" "$(left)" ""

# ---- other ends ----
"$CAISSON" run --cow -- sh -c 'echo >ready; sleep 600' >/dev/null 2>&1 &
run=$!
while ! ls "$layers"/*/*/fs/ready >/dev/null 2>&1; do sleep 0.05; done
kill -KILL "$run"
wait "$run" 2>/dev/null
gone "the layers end with a killed owner"
id=$(cs create --cow --lifetime 1s)
gone "and with the lifetime"
id=$(cs create --cow)
kill -KILL "$(cs info "$id" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["keeper_pid"])')"
cs destroy "$id" >/dev/null 2>&1
gone "and when a sandbox with a killed keeper is destroyed"
