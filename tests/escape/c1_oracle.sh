#!/bin/bash
# C1: explanations tell code inside nothing about the host that it could not see itself. Each attempt is
# made with a path that the host has and with one of the same shape that it does not have: apart from
# the name, everything that comes back is the same, byte by byte.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"
HIDE=$T/hide
mkdir -p "$HIDE"
chmod 755 "$T" "$HIDE"

# made KIND PATH: the host gets something there
made()
{
    case $1 in
    file) echo secret >"$2" ;;
    dir) mkdir "$2" ;;
    full) mkdir "$2" && mkdir "$2/new" && echo secret >"$2/f" ;;
    closed) echo secret >"$2" && chmod 000 "$2" ;;
    shut) mkdir "$2" && echo secret >"$2/f" && chmod 000 "$2" ;;
    link) ln -s "$HIDE" "$2" ;;
    dangling) ln -s /nowhere "$2" ;;
    fifo) mkfifo "$2" ;;
    socket) python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$2" ;;
    tool) printf '#!/bin/sh\n' >"$2" && chmod 755 "$2" ;;
    esac
}

# The two names of a pair have the same length; `there` is on the host. plain: without what differs by
# nature, the name and the times.
plain()
{
    sed -E 's/(there|never)/NAME/g; s/"(duration_ms|cpu_ms|peak_memory)":[0-9.]+/"\1":0/g; s/,"layers":\[.*\]//'
}
# same NAME COMMAND...: @ in its words is the path
same()
{
    local name=$1 got=()
    shift
    for which in there never; do
        got+=("$("${@//@/$DIR/$which}" 2>&1 | plain)")
    done
    is "$name" "${got[0]}" "${got[1]}"
}

LINES=(
    'cat: @: No such file or directory'
    'cat: @/f: No such file or directory'
    'cat: @: Permission denied'
    'cat: @/../@: No such file or directory'
    "ls: cannot open directory '@': Permission denied"
    "mkdir: cannot create directory '@/new': No such file or directory"
    "mkdir: cannot create directory '@': Read-only file system"
    "touch: cannot touch '@': Read-only file system"
    "cp: cannot create regular file '@/': Not a directory"
    'bash: line 1: @: No such file or directory'
    'bash: line 1: @: command not found'
    'bash: line 1: there: command not found'
    './x: @: bad interpreter: No such file or directory'
    "env: '@': No such file or directory"
    'x: error while loading shared libraries: @: cannot open shared object file: No such file or directory'
    'Error: could not open "@" (os error 2)'
)
# say ID LINE: a command prints that and fails
say() { cs exec "$1" --json -- sh -c 'echo "$1" >&2; exit 1' sh "$2"; }
say127() { cs exec "$1" --json -- sh -c 'echo "$1" >&2; exit 127' sh "$2"; }
id=$(cs create --workspace "$WS")
for place in "$HIDE" "$HOME" /tmp /var/tmp /dev/shm; do
    DIR=$place/csn-oracle.$$
    [ "$place" = "$HIDE" ] && kinds='file dir full closed shut link dangling fifo socket tool' || kinds='file dir'
    for kind in $kinds; do
        mkdir -p "$DIR" && chmod 755 "$DIR"
        made $kind "$DIR/there"
        ln -sfn "$DIR/there" "$WS/link-there"
        ln -sfn "$DIR/never" "$WS/link-never"
        got=()
        for which in there never; do
            got+=("$(for line in "${LINES[@]}"; do
                say "$id" "${line//@/$DIR/$which}"
                say127 "$id" "${line//@/$DIR/$which}"
            done 2>&1 | plain)")
        done
        is "$kind in ${place/$T/T}: printed lines" "${got[0]}" "${got[1]}"
        if [ "$place" = "$HIDE" ]; then
            same "$kind: run" cs run --workspace "$WS" -- cat @
            same "$kind: run it" cs run --workspace "$WS" -- @
            same "$kind: read" cs read "$id" @
            same "$kind: read below it" cs read "$id" @/f
            same "$kind: stat" cs stat "$id" @ --json
            same "$kind: ls" cs ls "$id" @
            same "$kind: write" cs write "$id" @ --data x
            same "$kind: grep" cs grep "$id" x @
            same "$kind: a working directory" cs exec "$id" --cwd @ -- true
            got=()
            for which in there never; do
                got+=("$({ cs exec "$id" --json -- cat "link-$which"; cs read "$id" "link-$which"; cs stat "$id" "link-$which"
                    say "$id" "touch: cannot touch 'link-$which': No such file or directory"; } 2>&1 | plain)")
            done
            is "$kind: through a link of the workspace" "${got[0]}" "${got[1]}"
        fi
        rm -rf "$DIR"
    done
done
cs destroy "$id"
DIR=$HIDE
made file "$HIDE/there"
tool() { printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"bash\",\"arguments\":{\"command\":\"cat $1\"}}}" |
    cs mcp --workspace "$WS"; }
like "the control: the tool of an agent says what it lacks" "$(tool "$HIDE/there")" "*--read $HIDE/there*"
same "by the tool of an agent" tool @
