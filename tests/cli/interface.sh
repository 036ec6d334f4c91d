#!/bin/bash
# interface.sh: what the sandbox interfaces of agents ask of the command line.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

id=$(cs create --workspace "$T/ws") || exit 1

# --- read with limit 0 ------------------------------------------------------------------------
seq 5 >"$T/ws/five"
status 'read --limit 0 succeeds' 0 cs read "$id" five --limit 0
is 'read --limit 0 prints no line' "$out" ''
like 'read --limit 0 says how many there are' "$err" '*5 lines, 10 bytes*'
status 'read --limit 0 --json succeeds' 0 cs read "$id" five --limit 0 --json
json 'read --limit 0 --json has all counts' "$out" \
    'v["content"] == "" and v["total_lines"] == 5 and v["output_lines"] == 0 and v["bytes"] == 10 and v["truncated"]'
status 'read without --limit succeeds' 0 cs read "$id" five
is 'read without --limit prints the file' "$out" "$(seq 5)"

# --- an edit that changes nothing -------------------------------------------------------------
status 'edit with equal strings succeeds' 0 cs edit "$id" five 3 3 --json
json 'edit with equal strings counts' "$out" 'v["occurrences"] == 1 and v["bytes"] == 10'
status 'edit with equal strings that are not there fails' 1 cs edit "$id" five 9 9


# --- a write to a private place ---------------------------------------------------------------
private() # BACKEND PATH
{
    local box
    box=$(cs create --backend "$1" --workspace "$T/ws") || return
    status "$1: write to $2" 0 cs write "$box" "$2"
    like "$1: write to $2 says that it is private" "$err" '*private*ends with the sandbox*'
    status "$1: write to $2 --json" 0 cs write "$box" "$2" --json
    json "$1: write to $2 --json has the note" "$out" '"private" in v["note"]'
    status "$1: write to the workspace" 0 cs write "$box" here
    is "$1: write to the workspace says nothing" "$err" ''
    json "$1: and has no note" "$(cs write "$box" here --json </dev/null)" 'v["note"] is None'
    cs destroy "$box"
}
# shellcheck disable=SC2088 # the sandbox's home
private local '~/f'
# shellcheck disable=SC2088
private jail '~/f'
private jail /tmp/f

# --- info -------------------------------------------------------------------------------------
mkdir "$T/in" "$T/out" "$T/bin"
printf '#!/bin/sh\n' >"$T/bin/rg" && chmod 755 "$T/bin/rg"
for backend in local jail; do
    box=$(PATH=$T/bin:$PATH cs create --backend $backend --workspace "$T/ws" --read "$T/in" \
        --read "$T/bin" --write "$T/out") || exit 1
    json "$backend: info lists directories" "$(cs info "$box" --json)" \
        "v['permissions'] == {'working_dir': v['workdir'], 'write_dirs': ['$T/ws', '$T/out'],
            'read_dirs': ['$T/in', '$T/bin']}"
    like "$backend: also as text" "$(cs info "$box")" "*writes*$T/ws*$T/out*reads*$T/in*"
    json "$backend: info has the rg that commands find" \
        "$(PATH=$T/bin:$PATH cs info "$box" --json)" "v['rg_path'] == '$T/bin/rg'"
    is "$backend: and they do" "$(PATH=$T/bin:$PATH cs exec "$box" -- sh -c 'command -v rg')" \
        "$T/bin/rg"
    json "$backend: no rg, no path" "$(PATH=$T/in cs info "$box" --json)" 'v["rg_path"] is None'
    cs destroy "$box"
done

# --- a workspace that is missing --------------------------------------------------------------
for backend in local jail; do
    new=$T/new-$backend/ws
    status "$backend: a missing workspace is an error" 1 cs create --backend $backend --workspace "$new"
    like "$backend: with the option that makes it" "$err" '*hint: --create-workspace*'
    status "$backend: --create-workspace makes it" 0 \
        cs create --backend $backend --workspace "$new" --create-workspace
    box=$out
    is "$backend: for the user only" "$(stat -c %a "$new")" 700
    git init -q "$new" && touch "$new/f"
    status "$backend: cleanup of a workspace that it made" 0 cs cleanup "$box"
    is "$backend: empties it, .git included" "$(ls -A "$new")" ''
    status "$backend: the sandbox works after it" 0 cs exec "$box" -- touch again
    cs destroy "$box"
    box=$(cs create --backend $backend --workspace "$new" --create-workspace) || exit 1
    git init -q "$new"
    status "$backend: cleanup of one that existed is refused" 1 cs cleanup "$box"
    like "$backend: and says how" "$err" "*$new*existed*hint: --force*"
    holds "$backend: nothing is removed" test -e "$new/again" -a -e "$new/.git"
    status "$backend: cleanup --force" 0 cs cleanup "$box" --force
    is "$backend: empties it" "$(ls -A "$new")" ''
    cs destroy "$box"
done
status 'jail: HOST:INSIDE is made as well' 0 \
    cs run --backend jail --workspace "$T/mapped/x:/srv/x" --create-workspace -- touch /srv/x/f
holds 'jail: and has the file' test -f "$T/mapped/x/f"
ask() { script -qec "$CAISSON cleanup $box" /dev/null <<<"$1" 2>&1; }
if command -v script >/dev/null; then
    box=$(cs create --workspace "$T/asked" --create-workspace) || exit 1
    touch "$T/asked/f"
    like 'cleanup asks on a terminal' "$(ask n)" "*Remove everything in*asked*nothing was removed*"
    holds 'no means no' test -e "$T/asked/f"
    ask y >/dev/null
    holds 'yes means yes' ! test -e "$T/asked/f"
    cs destroy "$box"
else
    skip 'cleanup asks on a terminal' 'script is not installed'
fi

# --- sudo -------------------------------------------------------------------------------------
for backend in local jail; do
    status "$backend: --sudo is refused" 125 cs run --backend $backend --workspace "$T/ws" --sudo -- true
    like "$backend: and says which backends have it" "$err" "*'$backend' has no sudo*hint: e2b and vercel*"
done
status 'jail: a workspace at / is refused' 125 cs run --backend jail --workspace "$T/ws:/" -- true
like 'jail: and says where it can be' "$err" "*own root directory*hint: $T/ws:/work*"

# --- a SandboxExecutor, as caisson-policy(5) shows it ---------------------------------
cat >"$T/executor.json" <<'EOF'
{"backend": "local", "workspace": ".sandbox", "create_workspace": true, "timeout": "10s",
 "commands": ["python3", "node", "ls", "cat", "echo"]}
EOF
mkdir "$T/task" && cd "$T/task" || exit 1
id=$(cs create --policy "$T/executor.json") || exit 1
holds 'its files are in .sandbox' test -d "$T/task/.sandbox"
is 'a file is written there' "$(echo hi | cs write "$id" a/b && cat .sandbox/a/b)" hi
is 'an allowed command runs there' "$(cs exec "$id" -- ls)" a
status 'another one does not' 126 cs exec "$id" -- touch x
status 'a missing file has the code that an adapter turns into null' 1 cs read "$id" nope --json
json 'not_found' "$out" 'v["error"]["code"] == "not_found" and v["error"]["path"] == "nope"'
status 'cleanup' 0 cs cleanup "$id"
is 'leaves the empty directory' "$(ls -A .sandbox)" ''
status 'destroy' 0 cs destroy "$id"
status 'destroy twice' 0 cs destroy "$id"
