#!/bin/bash
# create, list, info, destroy, cleanup, extend, cd; names; several processes; config files.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

status "list is empty at first" 0 cs list
is "and prints nothing" "$out" ""
json "as JSON it is an empty array" "$(cs list --json)" 'v == []'

id=$(timeout 60 "$CAISSON" create --workspace "$T/ws")
is "create ends although the sandbox stays" "$?" 0
like "create prints the id" "$id" "local-[0-9]*-[a-z0-9]*"
is "and nothing else" "$(wc -w <<<"$id")" 1
status "a name" 0 new --name build
named=$out
status "a name that is taken" 1 new --name build
json "create --json" "$(new --json --name third)" 'v["name"] == "third" and v["id"].startswith("local-")'
status "a bad name" 2 new --name "a/b"
json "list --json has all three, oldest first" "$(cs list --json)" \
    '[x["name"] for x in v] == [None, "build", "third"] and
     all(set(x) == {"id", "name", "backend", "state", "workspace", "created_at", "forked_from"} for x in v) and
     v[0]["id"] == "'"$id"'" and v[0]["state"] == "running" and v[0]["created_at"].endswith("Z")'
is "list -q prints ids" "$(cs list -q | head -n 1)" "$id"
like "list prints a table" "$(cs list)" "ID *NAME*$named*build*"

status "info" 0 cs info "$id"
like "for people" "$out" "id *$id*layers*"
json "info --json" "$(cs info build --json)" 'v["id"] == "'"$named"'" and v["name"] == "build" and
    v["backend"] == "local" and v["isolation"] == "none" and v["detached"] is True and
    v["workspace"] == "'"$(cd ws && pwd -P)"'" and v["expires_at"] is None and
    isinstance(v["capabilities"], list) and len(v["layers"]) > 0 and
    set(v) == {"id", "name", "backend", "state", "isolation", "detached", "workspace", "workdir",
               "home", "rg_path", "permissions", "capabilities", "layers", "rules", "created_at", "expires_at", "keeper_pid"}'
json "local says that it does not isolate commands" "$(cs info build --json)" \
    'any(x["status"] == "off" for x in v["layers"])'

is "exec by id" "$(cs exec "$id" -- echo one)" one
is "exec by name" "$(cs exec build -c 'echo two')" two
status "exec has the command's exit code" 5 cs exec build -c 'exit 5'
status "exec in no sandbox" 125 cs exec no-such-sandbox -c true
like "says so" "$err" "*no-such-sandbox*"
status "another command on no sandbox" 1 cs ls no-such-sandbox
json "as JSON" "$(cs ls no-such-sandbox --json 2>/dev/null)" 'v["error"]["code"] == "not_found"'

# a sandbox keeps its workspace wherever it is used from
here=$(cd ws && "$CAISSON" create)
rel=$("$CAISSON" create --workspace ws)
json "the default workspace stays the directory of create" "$(cs info "$here" --json)" \
    'v["workspace"] == "'"$(cd ws && pwd -P)"'"'
is "a relative workspace too" "$(cd / && "$CAISSON" exec "$rel" -- pwd)" "$(cd ws && pwd -P)"
json "and it is listed" "$(cs list --json)" 'v[-1]["workspace"] == v[-2]["workspace"] == "'"$(cd ws && pwd -P)"'"'
cs destroy "$here" "$rel"

# two processes, one sandbox
"$CAISSON" exec "$id" -c 'echo shared >file; until [ -s file2 ]; do sleep 0.05; done; cat file2' >"$T/o1" &
eventually test -s ws/file
is "a second process sees the files" "$(cs cat "$id" file)" shared
echo back | cs write "$id" file2
wait $!
is "and the first sees the second's" "$(cat "$T/o1")" back
for i in 1 2 3 4 5 6 7 8; do cs exec "$id" -c "echo $i >>many" & done
wait
is "eight at the same time" "$(sort ws/many | tr -d '\n')" 12345678

# the background outlives the process that started it
pid=$(cs exec "$id" -d -- sleep 200)
like "exec -d prints a pid" "$pid" "[1-9]*"
holds "it runs" kill -0 "$pid"
json "exec -d --json" "$(cs exec "$id" -d --json -- sleep 200)" 'v["pid"] > 0'

# a session keeps its state
if cs exec "$id" --session s -c 'cd /; X=1' 2>"$T/e"; then
    is "a session keeps directory and variables" "$(cs exec "$id" --session s -c 'echo $X; pwd')" "1
/"
    is "--restart forgets them" "$(cs exec "$id" --session s --restart -c 'echo ${X-none}')" none
else
    fail "sessions" "$(cat "$T/e")"
fi

status "cd" 0 cs exec "$id" -- mkdir -p d/e
status "cd" 0 cs cd "$id" d
is "later commands start there" "$(cs exec "$id" -- pwd)" "$(cd ws && pwd -P)/d"
is "paths are relative to it" "$(cs ls "$id")" e
status "cd to nowhere" 1 cs cd "$id" missing
status "cd out of the base" 1 cs cd "$id" ../../..
status "cd back" 0 cs cd "$id" /
json "cd --json" "$(cs cd "$id" / --json)" 'v["ok"] is True'

status "cleanup" 0 cs cleanup "$id" --force
is "the workspace is empty" "$(find ws -mindepth 1)" ""
holds "and still there" test -d ws

status "extend" 0 cs extend build 1h
json "shows in info" "$(cs info build --json)" 'v["expires_at"] is not None'
for verb in snapshot fork pause resume; do
    status "$verb where there is none" 1 cs "$verb" build
done
status "rollback where there is none" 1 cs rollback build x
status "rollback to the newest" 1 cs rollback build
short=$(new --lifetime 1s)
ended() { ! cs ls "$short"; }
holds "a lifetime ends" eventually ended
status "for good" 1 cs ls "$short"
is "and leaves the list" "$(cs list -q | grep -c "$short")" 0

status "destroy several" 0 cs destroy "$id" build
holds "their processes are gone" gone "$pid"
holds "the workspace is not" test -d ws
status "a destroyed sandbox is gone" 1 cs ls "$id"
status "destroy of one that has ended" 0 cs destroy "$id"
status "destroy of a name that is gone succeeds" 0 cs destroy build
is "and says so" "$err" "caisson: destroy: no sandbox has the name 'build', so there is nothing to destroy"
status "a typing error" 0 cs destroy thirt --json
is "is not silent" "$err" "caisson: destroy: no sandbox has the name 'thirt', so there is nothing to destroy; did you mean third?"
json "and destroys nothing" "$out" 'v["destroyed"] == [] and v["absent"] == ["thirt"] and "error" not in v'
status "one failure does not stop the others" 2 cs destroy a/b third --json
json "and JSON says both" "$out" 'v["destroyed"] == ["third"] and v["error"]["code"] == "invalid"'

# one that takes no more connections, because somebody has all of them
id=$(cs create --name full)
sock=$XDG_STATE_HOME/caisson/sandboxes/$id/sock
pid=$(cs exec "$id" -d -- sleep 1000)
status "a keeper that hangs up is ended all the same" 0 python3 -c '
import socket, subprocess, sys
held = []
for i in range(300):
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    held[-1].connect(sys.argv[1])
sys.exit(subprocess.call(sys.argv[2:]))' "$sock" "$CAISSON" destroy full
holds "with what it ran" gone "$pid"
status "and is gone" 1 cs info full
is "nothing is left" "$(cs list)" ""

# a detached sandbox is found although the runtime directory is elsewhere now
id=$(new)
status "found with another XDG_RUNTIME_DIR" 0 env XDG_RUNTIME_DIR="$T/elsewhere" "$CAISSON" exec "$id" -- true
is "and listed" "$(XDG_RUNTIME_DIR="$T/elsewhere" cs list -q)" "$id"
status "and ended" 0 cs destroy "$id"

# a creator that was killed before it had finished leaves an empty record that no process has locked
for backend in local jail; do
    half=$XDG_STATE_HOME/caisson/sandboxes/$backend-1794000000000-aaaaaaaa
    for what in nothing record both; do
        mkdir -p "$half"
        [ $what = nothing ] || : >"$half/keeper"
        [ $what != both ] || echo '{"config":{"backend":"'$backend'"}}' >"$half/meta.json"
        is "a half-made $backend sandbox ($what) is not listed" "$(cs list -q 2>&1)" ""
        holds "and its record is gone" test ! -e "$half"
    done
done

# a detached sandbox outlives its workspace: it is listed, says what is wrong and can be ended
for backend in local jail; do
    for how in removed renamed replaced; do
        mkdir -p "$T/short" && echo text >"$T/short/file"
        id=$("$CAISSON" create --backend $backend --workspace "$T/short") ||
            { skip "workspace $how on $backend" "no $backend here"; continue; }
        keeper=$(cs info "$id" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["keeper_pid"])')
        case $how in
        removed) rm -r "$T/short" ;;
        renamed) mv "$T/short" "$T/moved" ;;
        replaced) rm -r "$T/short" && echo text >"$T/short" ;;
        esac
        is "$backend: a sandbox whose workspace was $how is listed" "$(cs list -q)" "$id"
        if [ $backend = local ] && [ $how = renamed ]; then
            is "$backend: a renamed workspace can be used" "$(cs exec "$id" -- cat file)" text
            status "$backend: and written" 0 cs write "$id" other <<<text
            holds "$backend: it is the one that was opened" test -e "$T/moved/other"
        else
            status "$backend: exec fails when the workspace was $how" 125 cs exec "$id" -- true
            like "$backend: and names the workspace" "$err" "*workspace*$T/short*removed*"
            status "$backend: write fails when the workspace was $how" 1 cs write "$id" other <<<text
        fi
        if [ $how = renamed ]; then
            is "$backend: a renamed workspace can still be read" "$(cs cat "$id" file)" text
        else
            status "$backend: read fails when the workspace was $how" 1 cs cat "$id" file
            like "$backend: and says why" "$err" "*workspace*$T/short*removed*"
        fi
        status "$backend: destroy ends it" 0 cs destroy "$id"
        holds "$backend: with its keeper" gone "$keeper"
        is "$backend: and nothing is left" "$(cs list -q)" ""
        rm -rf "$T/short" "$T/moved"
    done
done

# one whose files are damaged
for backend in local jail; do
    for file in meta.json keeper; do
        id=$(new --backend $backend) || { skip "damaged files on $backend" "no $backend here"; continue; }
        keeper=$(cs info "$id" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["keeper_pid"])')
        echo garbage >"$XDG_STATE_HOME/caisson/sandboxes/$id/$file"
        is "$backend: one with a damaged $file is listed" "$(cs list -q)" "$id"
        status "$backend: it cannot be used" 125 cs exec "$id" -- true
        status "$backend: it can be destroyed" 0 cs destroy "$id"
        holds "$backend: with its keeper" gone "$keeper"
        is "$backend: and is gone" "$(cs list -q)" ""
    done
done

# one that another version made
if id=$(new --backend jail); then
    sed -i 's/"protocol":[0-9]*/"protocol":1/' "$XDG_STATE_HOME/caisson/sandboxes/$id/keeper"
    json "a jail of another version is listed" "$(cs list --json)" 'v[0]["state"] == "other version"'
    status "it cannot be used" 125 cs exec "$id" -- true
    like "and says why" "$err" "*made by caisson * (protocol 1)*destroy*"
    status "it can be destroyed" 0 cs destroy "$id"
    is "and is gone" "$(cs list -q)" ""
else
    skip "a jail of another version" "no jail here"
fi

# configuration: file, then --policy, then options
mkdir -p "$XDG_CONFIG_HOME/caisson" ws
cat >"$XDG_CONFIG_HOME/caisson/config.json" <<'X'
{"env": ["FROM=config", "ONLY=config"]}
X
cat >policy.json <<'X'
{"env": ["FROM=policy"], "commands": ["echo", "sleep", "env"]}
X
cd ws || exit 1
is "defaults come from the config file" "$(cs run -- env | grep -c '^ONLY=config$')" 1
is "a policy file comes after it" "$(cs run --policy ../policy.json -- env | grep ^FROM)" FROM=policy
is "options come last" "$(cs run --policy ../policy.json --env FROM=option -- env | grep ^FROM)" FROM=option
echo '{"timeout": "700ms"}' >"$XDG_CONFIG_HOME/caisson/config.json"
status "single values of the file hold" 124 cs run -- sleep 600
status "and are overridden" 0 cs run --timeout 60s -- sleep 1
rm "$XDG_CONFIG_HOME/caisson/config.json"
# configuration that cannot be read is an error: without it a sandbox would have fewer rules
ln -s "$T/none" "$XDG_CONFIG_HOME/caisson/config.json"
status "a configuration file that is a link to nothing" 125 cs run -- true
like "it is named" "$err" "*'$XDG_CONFIG_HOME/caisson/config.json': No such file*hint: a symlink*"
status "also for create" 1 cs create
rm "$XDG_CONFIG_HOME/caisson/config.json"
mv "$XDG_CONFIG_HOME/caisson" "$XDG_CONFIG_HOME/away"
ln -s "$T/none" "$XDG_CONFIG_HOME/caisson"
status "a configuration directory that is a link to nothing" 125 cs run -- true
rm "$XDG_CONFIG_HOME/caisson"
: >"$XDG_CONFIG_HOME/caisson"
status "a configuration directory that is a file" 125 cs run -- true
rm "$XDG_CONFIG_HOME/caisson"
status "a configuration directory that does not exist" 0 cs run -- true
mv "$XDG_CONFIG_HOME/away" "$XDG_CONFIG_HOME/caisson"
status "lists append" 0 cs run --policy ../policy.json --allow-command true -- true
status "a policy restricts" 126 cs run --policy ../policy.json -- ls
status "a missing policy file" 125 cs run --policy nope.json -- true
echo '{"enf": []}' >"$XDG_CONFIG_HOME/caisson/config.json"
status "a wrong config file is never ignored" 125 cs run -- true
like "and its bad key is named" "$err" "*enf*"
rm "$XDG_CONFIG_HOME/caisson/config.json"

# without a backend it is a jail
unset CAISSON_BACKEND
status "the default backend" 0 cs run --json -- true
like "is the jail" "$out" "*seccomp*"
status "a remote backend without its credential" 125 env -u E2B_API_KEY "$CAISSON" run --backend e2b -- true
like "is said, not replaced" "$err" "*e2b*"
export CAISSON_BACKEND=local
