#!/bin/bash
# doctor: what it says of this host, and of hosts that lack something.
# shellcheck disable=SC2016 # expanded later
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
PROBE=${PROBE:?set PROBE to the program that takes layers away}
cd "$T/ws" || exit 1
chmod 711 "$T" && chmod 755 "$T/ws" # the second rung of a root caller is nobody's

# on NAME EXPRESSION COMMAND...: the JSON of doctor, with `s` the statuses by name
on()
{
    local name=$1 expression=$2
    shift 2
    "$@" >"$T/.json" 2>"$T/.err"
    json "$name" "$(cat "$T/.json")" "(lambda s, f, d: $expression)({x['name']: x['status'] for x in v['checks']},
        {x['name']: x['fix'] for x in v['checks']}, {x['name']: x['detail'] for x in v['checks']})"
}
all='{"keeper", "landlock", "seccomp", "openat2", "overlay", "runtime", "state", "canary", "memory limit", "process limit", "cpu limit"}'
on "every finding has its fields" "set(v) == {'ok', 'rung', 'duration_ms', 'checks'} and $all <= set(s) and
    all(set(x) == {'name', 'status', 'detail', 'fix'} and x['status'] in ('ok', 'weaker', 'missing', 'info') and x['detail'] for x in v['checks'])" cs doctor --json
on "ok is: nothing is missing" "v['ok'] == ('missing' not in s.values()) and (v['rung'] == 'full' or not v['ok'])" cs doctor --json
"$CAISSON" doctor >"$T/text"
code=$?
json "the exit status says the same" "$(cs doctor --json)" "v['ok'] == ($code == 0)"
like "for people" "$(cat "$T/text")" "keeper *isolation *"
is "it takes a directory" "$(cs doctor "$T/ws" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["rung"])')" \
    "$(cs doctor --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["rung"])')"
status "and works in the root" "$code" sh -c 'cd / && "$0" doctor' "$CAISSON"
status "a directory that is not there" 1 cs doctor "$T/none"
like "says which" "$out" "*canary *missing *$T/none*"

if [ $code -ne 0 ]; then
    skip "hosts that lack something" "this one does"
    exit 0
fi
on "here everything was seen from inside" "v['rung'] == 'full' and
    s['network rules'] in ('ok', 'weaker') and all(s[n] == 'ok' and 'from inside' in d[n] for n in ('user', 'mount', 'pid', 'net', 'ipc', 'capabilities', 'seccomp'))" cs doctor --json
without() { "$PROBE" without "$1" "$CAISSON" doctor --json; }
on "no user namespaces" "not v['ok'] and v['rung'] == 'weaker' and s['user'] == s['pid'] == s['canary'] == 'missing' and
    s['landlock'] == s['openat2'] == 'ok' and f['user'] and 'not permitted' in d['user']" without userns
on "no network namespace" "v['rung'] == 'weaker' and s['net'] == 'missing' and s['user'] == s['mount'] == 'ok'" without netns
on "no Landlock" "v['rung'] == 'none' and s['landlock'] == s['canary'] == 'missing' and s['user'] == 'ok' and 'lsm' in f['landlock']" without landlock
on "no seccomp" "v['rung'] == 'none' and s['seccomp'] == s['canary'] == 'missing'" without seccomp
on "no openat2: another way" "v['ok'] and v['rung'] == 'full' and s['openat2'] == 'weaker'" without openat2
on "no nf_tables: a proxy" "v['ok'] and v['rung'] == 'full' and s['network rules'] == 'weaker' and f['network rules']" without netfilter
on "no mounts" "not v['ok'] and s['canary'] == 'missing' and 'mount' in d['canary']" without old-kernel
status "it exits 1 then" 1 without userns
status "the text has the command that helps" 1 "$PROBE" without userns "$CAISSON" doctor
like "below the layer" "$out" "*user *missing *"$'\n'" *-> *"
touch "$T/file"
on "no runtime directory" "not v['ok'] and s['runtime'] == 'missing' and 'XDG_RUNTIME_DIR' in f['runtime']" env XDG_RUNTIME_DIR="$T/file" "$CAISSON" doctor --json
on "no state directory" "not v['ok'] and s['state'] == 'missing' and 'XDG_STATE_HOME' in f['state']" env XDG_STATE_HOME="$T/file" "$CAISSON" doctor --json
is "no sandbox is left" "$(cs list -q)" ""
