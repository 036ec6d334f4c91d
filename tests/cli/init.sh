#!/bin/bash
# init and policy schema: the file that init writes is valid, trusted, and what the schema says.
# shellcheck disable=SC2016 # $schema is a key
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset CAISSON_BACKEND
mkdir p && cd p || exit 1

status "an empty directory" 0 cs init
like "is said to be one" "$out" "wrote $T/p/caisson.json*no file of a package manager*"
json "the file names only its schema" "$(cat caisson.json)" 'list(v) == ["$schema"] and v["$schema"].endswith("/policy.schema.json")'
touch package.json package-lock.json pyproject.toml uv.lock Cargo.toml go.mod pom.xml Gemfile .env.local .envrc ca.pem
mkdir secrets
cp caisson.json before && cp before again
status "a file that exists" 1 cs init
like "is not replaced" "$err" "*'$T/p/caisson.json' exists*hint: --force*"
holds "not a byte" cmp -s caisson.json before
status "init --force" 0 cs init --force --json
json "tells why" "$out" '"package.json: package manager npm" in v["reasons"] and ".env.local: denied **/.env*" in v["reasons"]
    and not any(".envrc" in r for r in v["reasons"])'
json "it has what was found" "$(cat caisson.json)" 'sorted(v["network"]["packages"]) ==
    ["cargo", "gem", "go", "maven", "npm", "pip", "uv"]'
json "and denies secrets" "$(cat caisson.json)" 'v["deny"] == ["**/.env*", "**/*.pem", "secrets"]'
status "policy check accepts it" 0 cs policy check caisson.json
json "it is trusted" "$(cs trust --list --json)" '[(e["path"], e["state"]) for e in v] == [("'"$T"'/p/caisson.json", "trusted")]'
status "a sandbox opens with it" 0 cs run -- true
status "elsewhere" 0 env -C / "$CAISSON" init "$T/ws"
holds "it is there" test -f "$T/ws/caisson.json"
rm "$T/ws/caisson.json" && ln -s "$T/p/before" "$T/ws/caisson.json"
status "a link is no place to write to" 1 cs init "$T/ws"
status "and is replaced, not followed" 0 cs init --force "$T/ws"
holds "what it led to is as it was" cmp -s before again
holds "it is a file now" ! test -L "$T/ws/caisson.json"
status "a directory that does not exist" 1 cs init nowhere
like "is named" "$err" "*'nowhere'*No such file*"

# ---- the schema ----
status "policy schema" 0 cs policy schema
json "is an object with every key" "$out" '{"read", "deny", "env", "limits", "network", "profiles", "$schema", "allow_commands"} <= set(v["properties"])
    and v["additionalProperties"] is False and "memory" in v["properties"]["limits"]["properties"]
    and "profiles" not in v["properties"]["profiles"]["additionalProperties"]["properties"]'
status "policy schema takes no file" 2 cs policy schema x
if python3 -c 'import jsonschema' 2>/dev/null; then
    cs policy schema >schema.json
    # valid FILE, invalid FILE: what the schema says about it
    valid() { python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[1])), json.load(open("schema.json")), jsonschema.Draft7Validator)' "$1" 2>/dev/null; }
    holds "the written file is valid" valid caisson.json
    cat >all.json <<'J'
{"read": "/a", "write": ["/b"], "env": {"A": "b"}, "network": {"mode": "none", "allow": ["a.test:443"]},
 "limits": {"memory": "1G", "cpus": 0.5, "pids": 10}, "timeout": "3s", "nested": false,
 "rules": [{"op": ["read", "write"], "effect": "deny", "path": "x", "scope": "files"}],
 "profiles": {"t": {"network": "none", "env": ["X"]}}}
J
    status "a file with everything" 0 cs policy check all.json
    holds "is valid" valid all.json
    for text in '{"dney": []}' '{"read": [1]}' '{"limits": {"memry": 1}}' '{"network": "some"}' \
        '{"profiles": {"t": {"profiles": {}}}}' '{"rules": [{"op": "read"}]}'; do
        echo "$text" >wrong.json
        status "$text is refused" 1 cs policy check wrong.json
        holds "$text is not valid" ! valid wrong.json
    done
fi
