#!/usr/bin/env bash
# Sandboxes that the last release made, in the hands of this version: it says which version made
# them, leaves them alone, and can destroy them. LAST_RELEASE: the directory of its programs.
if [ "${1:-}" = user ] && [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0"
fi
. "$(dirname "$0")/../cli/lib.sh"

old=${LAST_RELEASE:?set LAST_RELEASE to the directory of its programs}/caisson
if [ ! -x "$old" ]; then
    skip "sandboxes of the last release" "tools/last-release has not built them"
    exit 0
fi

for backend in local jail; do
    id=$("$old" create --backend "$backend" --name "old-$backend" --workspace "$T/ws") ||
        { fail "$backend: the last release makes a sandbox"; continue; }
    pid=$("$old" exec "$id" -d -- sleep 1000)
    [ "$backend" = local ] || pid=$(pgrep -f "^caisson-keeper $id")
    json "$backend: it is listed as such" "$(cs list --json)" \
        'len(v) == 1 and v[0]["id"] == "'"$id"'" and v[0]["state"] == "other version"'
    status "$backend: a command is refused" 125 cs exec "$id" -- true
    like "$backend: with the reason and the way out" "$err" "*made by *version of caisson*hint: caisson destroy $id*"
    status "$backend: so is a file call" 1 cs ls "$id"
    status "$backend: its name is taken" 1 cs create --name "old-$backend" --workspace "$T/ws"
    like "$backend: by it" "$err" "*old-$backend*taken*"
    status "$backend: other sandboxes work" 0 cs run --backend "$backend" --workspace "$T/ws" -- true
    json "$backend: it is still there" "$(cs list --json)" 'len(v) == 1'
    is "$backend: and works for its own version" "$("$old" exec "$id" -- echo alive)" alive
    status "$backend: destroy ends it" 0 cs destroy "old-$backend"
    holds "$backend: with its processes" gone "$pid"
    is "$backend: and nothing is listed" "$(cs list -q)" ""
    is "$backend: nor left" "$(files_left)" ""
    id=$("$old" create --backend "$backend" --workspace "$T/ws")
    pid=$(pgrep -f "^caisson-keeper $id")
    kill -9 "$pid"
    gone "$pid"
    is "$backend: one whose keeper was killed is not listed" "$(cs list -q)" ""
done
