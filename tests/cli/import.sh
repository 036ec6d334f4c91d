#!/bin/bash
# policy import: settings of srt and codex become a policy; what has no equal is named.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# ---- srt ----
cat >srt.json <<'J'
{"network": {"allowedDomains": ["*.ok.test", "ok.test"], "deniedDomains": ["bad.ok.test"], "strictAllowlist": true,
             "allowLocalBinding": true, "allowAllUnixSockets": false},
 "filesystem": {"denyRead": ["~/.ssh", "**/.env", "~"], "allowRead": [".", "/usr/share/dict"], "allowWrite": ["."],
                "denyWrite": ["LICENSE"], "allowGitConfig": false},
 "enableWeakerNestedSandbox": false, "mandatoryDenySearchDepth": 3}
J
status "srt, all of it" 0 cs policy import srt srt.json
is "without a word" "$err" ""
json "as a policy" "$out" 'v == {"workspace": ".", "read": ["/usr/share/dict"], "deny_missing_ok": ["~/.ssh", "**/.env"],
    "rules": [{"op": ["write", "delete"], "effect": "deny", "path": "LICENSE"}],
    "network": {"mode": "none", "allow": ["*.ok.test", "ok.test"], "deny": ["bad.ok.test"]}}'
cp .out policy.json
status "which policy check accepts" 0 cs policy check policy.json
echo '{}' >empty.json
json "without settings nothing may be written or reached" "$(cs policy import srt empty.json)" \
    'v == {"workspace": ".:ro", "network": {"mode": "none"}}'
cat >lost.json <<'J'
{"network": {"allowedDomains": ["*", "ok.test", 5], "httpProxyPort": 3128, "strictAllowlist": false, "new": 1},
 "filesystem": {"allowWrite": [".", "/tmp", "/opt/*", "/"], "denyRead": "/etc/*.key", "disabled": true},
 "credentials": {"files": []}, "unheard\u001bof": {}}
J
status "srt, with keys that have no equal" 3 cs policy import srt lost.json
json "the rest is translated" "$out" 'v == {"workspace": ".", "network": {"mode": "none", "allow": ["ok.test"]}}'
for key in "network.allowedDomains: '\*'" network.allowedDomains network.httpProxyPort network.strictAllowlist \
    network.new "filesystem.allowWrite: '/tmp'" "filesystem.allowWrite: '/opt/\*'" "filesystem.allowWrite: '/'" \
    "filesystem.denyRead: '/etc/\*.key'" filesystem.disabled credentials unheard; do
    holds "$key is named with a reason" grep -q "^caisson: policy: '\?$key.* has no equal: ." <<<"$err"
done
holds "control bytes are escaped" ! grep -q $'\x1b' <<<"$err"
is "each once" "$(wc -l <<<"$err")" 12
json "as JSON" "$(cs policy import srt lost.json --json)" 'len(v["lost"]) == 12 and v["policy"]["workspace"] == "." and
    all(e["key"] and e["reason"] for e in v["lost"])'
echo '{"network": [}' >bad.json
status "invalid JSON" 1 cs policy import srt bad.json
like "with its place" "$err" "*bad.json: line 1, column 14*"
echo '[]' >bad.json
status "not an object" 1 cs policy import srt bad.json

# ---- codex ----
cat >codex.toml <<'J'
sandbox_mode = "workspace-write"
[sandbox_workspace_write]
network_access = true
writable_roots = ["/opt/data"]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
J
status "codex, all of it" 0 cs policy import codex codex.toml
json "as a policy" "$out" 'v == {"workspace": ".", "write": ["/opt/data"], "network": {"mode": "all"}}'
echo 'sandbox_mode = "read-only"' >codex.toml
json "read-only" "$(cs policy import codex - <codex.toml)" 'v == {"workspace": ".:ro", "network": {"mode": "none"}}'
printf 'sandbox_mode = "danger-full-access"\nmodel = "m"\n[sandbox_workspace_write]\nnetwork_access = true\n' >codex.toml
status "what has no equal" 3 cs policy import codex codex.toml
json "is not granted" "$out" 'v == {"workspace": ".:ro", "network": {"mode": "none"}}'
like "but named" "$err" "*danger-full-access*model*sandbox_workspace_write*"
cat >codex.toml <<'J'
default_permissions = "dev"
[permissions.dev]
description = "d"
extends = ":workspace"
[permissions.dev.filesystem]
":minimal" = "read"
"/usr/share/dict" = "read"
"/opt/data" = "write"
"~/.aws" = "none"
":workspace_roots" = { "." = "write", "docs" = "read", "**/*.env" = "none" }
[permissions.dev.network]
enabled = true
mode = "full"
domains = { "*.ok.test" = "allow", "bad.ok.test" = "deny" }
J
status "permissions" 0 cs policy import codex codex.toml
json "as a policy" "$out" 'v == {"workspace": ".", "read": ["/usr/share/dict"], "write": ["/opt/data"],
    "deny_missing_ok": ["~/.aws", "**/*.env"], "rules": [{"op": ["write", "delete"], "effect": "deny", "path": "docs"}],
    "network": {"mode": "none", "allow": ["*.ok.test"], "deny": ["bad.ok.test"]}}'
sed -i 's/"full"/"limited"/' codex.toml
status "a limit that caisson does not have" 3 cs policy import codex codex.toml
json "is not widened" "$out" '"allow" not in v["network"] and v["network"]["mode"] == "none"'
printf '[permissions.a]\n[permissions.b]\n' >codex.toml
status "permissions that are not chosen" 3 cs policy import codex codex.toml
is "are named" "$(grep -c "permissions: '[ab]' has no equal" <<<"$err")" 2
echo 'a = 1.5' >codex.toml
status "TOML that is not read" 1 cs policy import codex codex.toml
like "with its place" "$err" "*codex.toml: line 1, column 5: only strings*"

# ---- usage ----
status "another format" 2 cs policy import seatbelt srt.json
like "is named" "$err" "*'seatbelt'*srt|codex*"
status "no file" 2 cs policy import srt
status "a file that does not exist" 1 cs policy import srt none.json
