#!/bin/bash
# Rules, why, the audit log, and policy check.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
w=$T/ws
mkdir -p "$w/secret" extra && echo s >"$w/secret/key" && echo e >extra/file
id=$(new --deny secret --read "$T/extra" --allow-command cat --allow-command echo)

status "a denied path" 1 cs cat "$id" secret/key
like "is denied" "$err" "*denied*"
json "with its denial" "$(cs cat "$id" secret/key --json 2>/dev/null)" 'v["error"]["code"] == "denied" and
    v["error"]["denial"]["op"] == "read" and "secret" in v["error"]["denial"]["rule"]'
is "a granted directory" "$(cs cat "$id" "$T/extra/file")" e
status "is only for reading" 1 cs write "$id" "$T/extra/new"
status "a command that is not listed" 126 cs exec "$id" -- ls
status "also in a shell string" 126 cs exec "$id" -c 'echo x && ls'

json "why not" "$(cs why "$id" read secret/key --json)" 'v["allowed"] is False and v["op"] == "read" and
    v["rule"] and v["hint"] and set(v) >= {"target", "resolved", "source"}'
like "why not, for people" "$(cs why "$id" read secret/key)" "denied*rule*"
json "why yes" "$(cs why "$id" write file --json)" 'v["allowed"] is True'
json "why exec" "$(cs why "$id" exec ls --json)" 'v["allowed"] is False'
status "both answers are answers" 0 cs why "$id" exec ls

json "why tells what enforces it" "$(cs why "$id" read secret/key --json)" 'v["enforced"] == "file calls only"'
json "info tells what enforces each rule" "$(cs info "$id" --json)" 'v["rules"] == [
    {"rule": "deny secret", "source": "config.deny[0]", "enforced": "file calls only"}]'
like "also for people" "$(cs info "$id")" "*rules*deny secret: file calls only*"
status "a denied path that is not there" 1 cs create --workspace "$w" --deny secrt
like "is named, with the option that permits it" "$err" "*--deny 'secrt': No such file*hint: --deny-missing-ok *"
is "with that option it is no error" "$(cs run --workspace "$w" --deny-missing-ok secrt -- echo x)" x

status "log" 0 cs log "$id" --json
is "every line is an object with its verdict" "$(python3 -c '
import json, sys
rows = [json.loads(l) for l in sys.stdin]
print(len(rows) >= 6, all({"seq", "time", "sandbox", "op", "verdict", "sha256"} <= set(r) for r in rows),
      any(r["verdict"] != rows[0]["verdict"] for r in rows))' <<<"$out")" "True True True"
is "secrets are not in it" "$(cs exec "$id" --env TOKEN=hush-hush -- echo x >/dev/null; cs log "$id" --json | grep -c hush-hush)" 0
status "log --verify" 0 cs log "$id" --verify
like "says ok" "$out" "ok, [0-9]* lines"
json "log --verify --json" "$(cs log "$id" --verify --json)" 'v["ok"] is True and v["bad_line"] is None'
cs destroy "$id"
status "the log stays after the end" 0 cs log "$id" --verify
f=$(find "$XDG_STATE_HOME" -name "$id.jsonl")
cp "$f" copy
sed -i '2s/"op":"[a-z_]*"/"op":"nothing"/' "$f"
status "an edited line is found" 1 cs log "$id" --verify
like "by its number" "$out" "bad, line 2:*"
sed '3d' copy >"$f"
status "a removed line is found" 1 cs log "$id" --verify
sed '$d' copy >"$f"
status "a cut at the end is found" 1 cs log "$id" --verify
json "as JSON" "$(cs log "$id" --verify --json)" 'v["ok"] is False and v["reason"]'
status "log of nothing" 1 cs log no-such

cat >p.json <<'X'
{"backend": "local", "read": ["/usr/share"], "write": ["/tmp/x"], "deny": [".env"],
 "commands": ["git", "ls"], "env": ["TOKEN=hush-hush", "LANG"],
 "limits": {"memory": "512M"}, "timeout": "2m"}
X
status "policy check" 0 cs policy check p.json
like "explains reading" "$out" "*may be read: /usr/share*"
like "explains writing" "$out" "*may be written: /tmp/x*"
like "explains refusals" "$out" "*refused*.env*"
like "explains commands" "$out" "*git, ls*"
like "explains limits" "$out" "*2m*512 MiB*"
like "warns about local" "$out" "*does not isolate*"
is "values of variables are not shown" "$(grep -c hush <<<"$out")" 0
json "policy check --json" "$(cs policy check p.json --json)" 'v["ok"] and len(v["explanation"]) > 5'
is "from stdin" "$(cs policy check - <p.json | head -n 1)" "$(head -n 1 <<<"$out")"
cat >p.json <<'X'
{"network": {"allow": ["*.ok.test:443", "10.0.0.0/8"], "deny": ["bad.ok.test"], "packages": ["npm"],
             "publish": ["8080"], "host_ports": ["15432:5432"]}}
X
status "policy check of network rules" 0 cs policy check p.json
like "explains wildcards" "$out" "*every name below*"
like "and ports" "$out" "*on every port*"
like "and who wins" "$out" "*refusal always wins*"
like "and what stays closed" "$out" "*metadata*stay closed*"
like "and presets" "$out" "*files of the project are not read*"
for bad in '"allow": ["ok.test", "ok test"]' '"deny": ["*"]' '"allow": ["ok.test:1-9"]' '"allow": ["ok.test/udp"]' \
    '"packages": ["npm", "cpan"]' '"publish": ["0"]' '"host_ports": ["1:2:3"]'; do
    echo "{\"network\": {$bad}}" >p.json
    status "refused: $bad" 1 cs policy check p.json
    like "naming it" "$err" "*network.*[[][01][]]*"
done
echo '{"reed": []}' >p.json
status "an unknown key" 1 cs policy check p.json
like "is named" "$err" "*reed*"
echo '{"read": [' >p.json
status "broken JSON" 1 cs policy check p.json
like "names the file" "$err" "*p.json*"
status "no file" 1 cs policy check none.json
echo '{"rules": [{"op": "delete", "effect": "deny", "path": "keep"}]}' >p.json
status "a rule that local cannot enforce for commands" 1 cs create --workspace "$w" --policy p.json
like "is refused by name" "$err" "*rules[[]0[]]: deny delete 'keep': backend 'local' does not confine commands*hint: *scope*files*"
echo '{"rules": [{"op": "delete", "effect": "deny", "path": "keep", "scope": "none"}]}' >p.json
status "a scope that is none" 1 cs policy check p.json
like "is refused by name" "$err" "*rules[[]0[]]: 'scope' is neither all nor files*"
echo '{"rules": [{"op": "exec", "effect": "deny", "path": "ls", "scope": "files"}]}' >p.json
status "a scope of a rule for commands" 1 cs policy check p.json
like "is refused by name" "$err" "*rules[[]0[]]: scope 'files' is for read, write and delete*"
echo '{"rules": [{"op": "delete", "effect": "deny", "path": "keep", "scope": "files"}]}' >p.json
if cs policy check p.json >"$T/o" 2>"$T/e"; then
    like "rules are explained" "$(cat "$T/o")" "*refuse delete of keep*"
    id=$(new --policy p.json)
    echo x | cs write "$id" keep/file
    status "and hold" 1 cs rm "$id" keep/file
else
    fail "rules" "$(cat "$T/e")"
fi
echo '{"commands": []}' >p.json
like "an empty list of commands is explained" "$(cs policy check p.json)" "*no command may be run*"
status "and allows none" 126 cs run --workspace "$w" --policy p.json -- echo x

# ---- an option is named as it was given ----
status "an option that a backend lacks" 125 cs run --backend local --pids 5 -- true
like "by its flag" "$err" "*: --pids: backend 'local' does not support this option*jail and docker do*"
echo '{"limits": {"pids": 5}, "network": {"allow": ["ok.test"]}}' >p.json
status "the same in a file" 125 cs run --backend local --policy p.json -- true
like "by its key" "$err" "*: network.allow: backend 'local' does not support this option*"
status "a value that is wrong" 2 cs run --policy p.json --allow 'not a host' -- true
like "by its flag" "$err" "*: --allow: 'not a host' is no network rule*"
status "loopback without a port" 2 cs run --backend jail --allow localhost -- true
like "with the option that helps" "$err" "*: --allow: 'localhost' has no port: loopback is private*hint: name the port: --allow localhost:PORT or --host-port PORT"
status "a range of its ports" 2 cs run --backend jail --allow localhost:8000-8010 -- true
like "with the way to write them" "$err" "*: --allow: 'localhost:8000-8010' is no network rule: *list them: host:80,443"
status "a second workspace" 125 cs run --backend local --workspace "$w" --workspace "$T/extra" -- true
like "by its flag" "$err" "*: repeated --workspace: backend 'local'*"
