#!/bin/bash
# With too low a limit of open descriptors a command works or says that this limit is too low;
# it reports nothing else, and leaves nothing behind.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

low="the limit of open descriptors of this process (RLIMIT_NOFILE) is too low"
hint="hint: raise the limit: ulimit -n 256, or more"

# Below 4 the dynamic linker cannot open a library. From 70 on every command works.
limits=$(seq 4 75)
enough=70

# limited LIMIT COMMAND...: stdout in $T/.out, stderr in $T/.err
limited()
{
    local limit=$1
    shift
    (ulimit -n "$limit" && exec "$@") >"$T/.out" 2>"$T/.err" </dev/null
}
# outcome STATUS WANT: true if the last limited command worked and its stdout has WANT, or if it
# failed with the message and its hint
outcome()
{
    if [ "$1" -eq 0 ]; then
        [[ $(<"$T/.out") == *"$2"* ]]
    else
        { [ "$1" -eq 1 ] || [ "$1" -eq 125 ]; } && grep -qF "$low" "$T/.err" &&
            grep -qxF "$hint" "$T/.err"
    fi
}
# each NAME WANT COMMAND...: the command at each limit. The word BOX stands for a new sandbox.
each()
{
    local name=$1 want=$2 limit box=$id status bad='' needs=
    shift 2
    for limit in $limits; do
        case " $* " in *" BOX "*) box=$(new --backend "$backend") ;; esac
        limited "$limit" "${@/#BOX/$box}"
        status=$?
        outcome $status "$want" ||
            bad+="limit $limit: status $status: $(head -c 300 "$T/.out" "$T/.err" | tr '\n' '|')"$'\n'
        [ "$status" -eq 0 ] && needs=${needs:-$limit}
        case $name in
        create) [ "$status" -eq 0 ] && cs destroy "$(cat "$T/.out")" ;;
        destroy) cs destroy "$box" 2>/dev/null ;; # after a failure it may still exist
        esac
    done
    is "$name on $backend: works or names the limit" "$bad" ""
    holds "$name on $backend: works with $enough" [ "${needs:-1000}" -le "$enough" ]
    ids=$(cs list -q)
    is "$name on $backend: leaves no sandbox and ends none" "$ids" "$id"
}

echo content >"$T/ws/file"
for backend in local jail; do
    id=$(new --backend "$backend")
    each run content "$CAISSON" run --backend "$backend" --workspace "$T/ws" -- cat file
    each create "$backend-" "$CAISSON" create --backend "$backend" --workspace "$T/ws"
    each read content "$CAISSON" read "$id" file
    each ls file "$CAISSON" ls "$id"
    each list "$id" "$CAISSON" list
    each info "$id" "$CAISSON" info "$id"
    each ps "" "$CAISSON" ps "$id"
    each log '"op":"open"' "$CAISSON" log --json "$id"
    each watch "" "$CAISSON" watch "$id" --timeout 1ms
    each destroy "" "$CAISSON" destroy BOX
    each exec content "$CAISSON" exec "$id" -- cat file
    cs destroy "$id"
done
