#!/bin/bash
# Every option and argument with a value that cannot be meant: exit status 2, and a message with
# the option and the value as they were typed. One row each.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# row NAMED VALUE COMMAND...: the message contains NAMED (an option; - for an argument) and VALUE
row()
{
    local named=$1 value=$2
    shift 2
    status "$* is wrong usage" 2 cs "$@"
    [ "$named" = - ] || like "$*: the message names $named" "$err" "caisson: *$named*"
    like "$*: the message shows the value" "$err" "caisson: *$value*"
    case $err in
    *network.* | *"[0]"* | *allowed_domains* | *package_managers* | *if_hash*)
        fail "$*: the message has the words of the command line" "$err"
        ;;
    esac
}
# meant WANT COMMAND...: the hint suggests WANT
meant()
{
    local want=$1
    shift
    status "$* is wrong usage" 2 cs "$@"
    like "$*: the hint is $want" "$err" "*hint: did you mean $want?*"
}

id=$(cs create --workspace ws) || fail "create" "no sandbox"

# ---- options of a new sandbox: run, create and mcp share the table, so run stands for them ----
row --backend spaceship run --backend spaceship -- true
row --backend "" run --backend "" -- true
row --workspace "" run --workspace "" -- true
row --workdir "" run --workdir "" -- true
row --read "" run --read "" -- true
row --write "" run --write "" -- true
row --deny "" run --deny "" -- true
row --deny-missing-ok "" run --deny-missing-ok "" -- true
row --home "" run --home "" -- true
row --allow-command "" run --allow-command "" -- true
row --net maybe run --net maybe -- true
row --allow foo:bar run --allow foo:bar -- true
row --allow foo:0 run --allow ok.example --allow foo:0 -- true
row --allow foo:1-2 run --allow foo:1-2 -- true
row --allow "'a b'" run --allow 'a b' -- true
row --allow "'\*'" run --allow '*' -- true
row --allow 300.1.1.1/8 run --allow 300.1.1.1/8 -- true
row --packages pipp run --packages npm,pipp -- true
row --publish 99999 run --publish 99999 -- true
row --publish 1:2:3 run --publish 1:2:3 -- true
row --host-port x run --host-port x -- true
row --env 1X run --env 1X=3 -- true
row --env "''" run --env =x -- true
row --timeout 3x run --timeout 3x -- true
row --timeout -- run --timeout -- true
row --max-output 999G run --max-output 999G -- true
row --max-output 5Q run --max-output 5Q -- true
row --memory lots run --memory lots -- true
row --pids "'0'" run --pids 0 -- true
row --cpus two run --cpus two -- true
row --cpus 0.0001 run --cpus 0.0001 -- true
row --disk "'-1'" run --disk=-1 -- true
row --limit-file "1 M" run --limit-file '1 M' -- true
row --lifetime abc run --lifetime abc -- true
row --audit "" run --audit "" -- true
row --audit-keep 99999 run --audit-keep 99999 -- true
row --audit-keep x run --audit-keep x -- true
row --audit-max x run --audit-max x -- true
row --image "" run --image "" -- true
row --name "'a b'" create --name 'a b'
row --name "" create --name ''
row --backend spaceship create --backend spaceship
row --allow foo:bar mcp --allow foo:bar
row --backend spaceship mcp --backend spaceship
row --http nowhere mcp --http nowhere --token-file "$T/token"
export CAISSON_BACKEND=jial
row CAISSON_BACKEND jial run -- true
export CAISSON_BACKEND=local

# ---- options of a command ----
for run in "run" "exec $id"; do
    # shellcheck disable=SC2086
    {
        row --keep heed $run --keep heed -- true
        row --cwd "" $run --cwd "" -- true
        row --timeout 5y $run --timeout 5y -- true
        row --max-output x $run --max-output x -- true
        row --env "" $run --env "" -- true
    }
done
row --session "" exec "$id" --session "" -c true

# ---- the other commands ----
row --since x net "$id" --since x
row --net nun net "$id" --net nun
row - "'never'" extend "$id" never
row --offset x read "$id" f --offset x
row --limit "'x'" read "$id" f --limit x
row --encoding hex read "$id" f --encoding hex
row --if-hash zz write "$id" f --if-hash zz
row -C 100000 grep "$id" x -C 100000
row --context x grep "$id" x --context x
row --max "'0'" grep "$id" x --max 0
row --glob "'\['" grep "$id" x --glob '['
row - "'('" grep "$id" '(' --regex
row - "'\['" glob "$id" '['
row --max "'0'" watch "$id" --max 0
row --timeout x watch "$id" --timeout x
row --port "'0'" wait "$id" --port 0
row --port 70000 wait "$id" --port 70000
row --timeout x wait "$id" --port 1 --timeout x
row - "'abc'" kill "$id" abc
row - "'0'" logs "$id" 0
row - "'NOSUCH'" kill "$id" 1 NOSUCH
row - "'fly'" why "$id" fly /
row - "'explain'" policy explain f
row - "'tcsh'" completion tcsh
row - "'rnu'" help rnu

# ---- ids ----
for c in exec info read ls ps log destroy cleanup; do
    case $c in
    exec) row - "a/b" exec a/b -- true ;;
    read) row - "a/b" read a/b f ;;
    log) row - "a b" log 'a b' ;; # a slash makes it a path
    *) row - "a/b" "$c" a/b ;;
    esac
done
status "an id of good syntax that does not exist is not wrong usage" 1 cs info nosuch
status "of two ids one is wrong, and one does not exist" 2 cs destroy a/b nosuch

# ---- what was meant ----
meant jail run --backend jial -- true
meant local run --backend LOCAL -- true
meant docker create --backend dokker
meant npm run --packages nmp -- true
meant head run --keep heed -- true
meant none run --net nome -- true
meant base64 read "$id" f --encoding bas64
meant check policy checks f
meant read why "$id" raed /
meant TERM kill "$id" 1 TREM
meant run help rnu
meant exec exce
meant --workspace run --worksapce . -- true
meant bash completion bahs

# ---- what only a sandbox with network rules checks ----
if jail=$(cs create --backend jail --workspace ws --allow ok.example 2>"$T/.err"); then
    row --deny "'\['" run --backend jail --deny '[' -- true
    row --allowed-domain foo:bar exec "$jail" --allowed-domain ok.example --allowed-domain foo:bar -- true
    row --package-manager nmp exec "$jail" --package-manager nmp -- true
    row --allowed-domain foo:bar run --backend jail --allow ok.example --allowed-domain foo:bar -- true
    row --allow foo:bar net "$jail" --allow ok.example --allow foo:bar
    row --deny foo:bar net "$jail" --deny foo:bar
    row --packages nmp net "$jail" --packages nmp
    row - "foo:bar" why "$jail" net foo:bar
    meant pip exec "$jail" --package-manager ppi -- true
    cs destroy "$jail"
elif [ "${CSN_MUST_WORK:-0}" = 1 ]; then
    fail "a jail" "$(cat "$T/.err")"
else
    skip "values of a sandbox with network rules" "$(tail -n 1 "$T/.err")"
fi

# ---- not wrong usage: what the words name is missing, or a file has a mistake ----
status "a directory that is missing" 125 cs run --workspace /nonexistent -- true
like "is named" "$err" "*--workspace*/nonexistent*"
status "a directory of a command that is missing" 125 cs run --cwd /nonexistent -- true
like "is named with its option" "$err" "*--cwd*/nonexistent*"
echo '{"net": 1}' >bad.json
status "a policy with a mistake" 125 cs run --policy bad.json -- true
status "policy check of a file with a mistake" 1 cs policy check bad.json
status "an archive with a mistake" 1 cs write "$id" --tar

json "wrong usage is an object with --json" "$(cs run --json --allow foo:bar -- true 2>/dev/null)" \
    'v["error"]["code"] == "invalid" and v["error"]["message"].startswith("--allow")'
echo '{"network": {"allow": ["file.example:bar"]}}' >bad.json
status "a rule of a file" 125 cs run --policy bad.json --allow ok.example -- true
like "is named by its place in the file" "$err" "*network.allow*file.example:bar*"
