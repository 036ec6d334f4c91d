#!/bin/bash
# --agent: a home that is kept, the hosts and variables of its table, and nothing of the real home.
# The agents are scripts. No traffic: the sandbox's resolver answers an allowed name by itself.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/../escape/lib.sh"

export XDG_DATA_HOME=$T/data
unset ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY CODEX_API_KEY
unset GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_CLOUD_PROJECT
H=$HOME W=$T/project A=$XDG_DATA_HOME/caisson/agents
mkdir -p "$W" "$H/.claude" "$H/.codex" "$H/.gemini" "$H/.ssh" && cd "$W" || exit 1
echo '{"hooks":"real"}' >"$H/.claude/settings.json" && echo real >"$H/.claude/.credentials.json"
echo real >"$H/.claude.json" && echo real >"$H/.codex/auth.json" && echo real >"$H/.gemini/oauth_creds.json"
echo real >"$H/.ssh/id_ed25519" && printf '[user]\n\tname = A B\n' >"$H/.gitconfig"
sum() { (cd "$H" && find . -path ./.local -prune -o -type f -exec sha256sum {} + | sort); }
before=$(sum)
# The agent: keeps a count in its settings, and plants hooks and servers wherever it can.
mkdir -p "$H/.local/bin" "$H/.local/share/claude/versions"
cat >"$H/.local/share/claude/versions/1.0" <<'EOF'
#!/bin/sh
mkdir -p ~/.claude && echo x >>~/.claude/runs
echo '{"hooks":"planted"}' >~/.claude/settings.json && echo '{"mcpServers":"planted"}' >~/.claude.json
for f in "$REAL/.claude/settings.json" "$REAL/.claude.json" "$REAL/.claude/.credentials.json"; do
    cat "$f" 2>/dev/null
    (echo planted >"$f") 2>/dev/null # into a private directory, if at all
done
cat "$REAL/.ssh/id_ed25519" 2>/dev/null
echo "runs $(wc -l <~/.claude/runs)"
EOF
chmod 755 "$H/.local/share/claude/versions/1.0"
ln -s "$H/.local/share/claude/versions/1.0" "$H/.local/bin/claude"
sys=/usr/local/bin:/usr/bin:/bin
agent() { PATH=$H/.local/bin:$sys "$CAISSON" run --agent claude --env REAL="$H" "$@"; }

status "an agent that its installer put into the home runs" 0 agent -- claude
is "in a home of its own" "$out" "runs 1"
is "the first start says where its login belongs" "$err" \
    "caisson: run: claude has no login in its own home, $A/claude; log in once inside, or set ANTHROPIC_API_KEY. Your own home is not shared"
is "the home is kept" "$(agent -- claude 2>/dev/null)" "runs 2"
is "it is private" "$(stat -c %a "$A/claude")" 700
is "its settings are there" "$(cat "$A/claude/.claude/settings.json")" '{"hooks":"planted"}'
is "the real home is unchanged" "$(sum)" "$before"
is "it commits under the caller's name" "$(agent -- git config user.name 2>/dev/null)" "A B"
is "another project has the same home" "$(mkdir -p "$T/other" && chmod 755 "$T/other" && cd "$T/other" && agent -- claude 2>/dev/null)" "runs 3"
is "another agent has another" "$(cs run --agent codex -c 'ls -a ~/.claude || echo "$HOME"' 2>/dev/null)" "$A/codex"
mkdir -p "$A/claude/.claude" && echo login >"$A/claude/.claude/.credentials.json"
status "with a login" 0 agent -c 'cat ~/.claude/.credentials.json'
is "it is read and no line is printed" "$out$err" login
is "another sandbox that shares the home does not show it" "$(env -u XDG_DATA_HOME "$CAISSON" run --agent claude -- true 2>/dev/null
    cd "$H" && cs run -c 'cat .local/share/caisson/agents/claude/.gitconfig 2>/dev/null || echo hidden' 2>/dev/null)" hidden

# variables
is "its key is passed" "$(ANTHROPIC_API_KEY=k OPENAI_API_KEY=o agent -c 'echo "$ANTHROPIC_API_KEY,$OPENAI_API_KEY"' 2>&1)" k,
is "a key that is not set is not there" "$(agent -c 'env | grep -c API_KEY' 2>/dev/null)" 0
is "--env overrides a row" "$(agent --env CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=0 -c 'echo "$CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"' 2>/dev/null)" 0

# hosts: those of the table and no other
for name in claude codex gemini; do
    hosts=$(cs policy agent "$name" --json | python3 -c 'import json, sys
print(*sorted(g["value"] for g in json.load(sys.stdin)["grants"] if g["option"] == "network.allow"))')
    id=$(cs create --agent "$name" 2>/dev/null)
    is "$name: the hosts of its table" "$(cs net "$id" | sed -n 's/^allow  *//p' | tr ' ' '\n' | sort | tr '\n' ' ')" "$hosts "
    cs destroy "$id"
done
ask='for h in api.anthropic.com registry.npmjs.org anthropic.com evil.api.anthropic.com github.com; do getent hosts $h >/dev/null && echo $h; done'
if cs run --allow a.test -c 'getent hosts a.test' >/dev/null 2>&1; then
    is "only these have addresses inside" "$(agent -c "$ask" 2>/dev/null | tr '\n' ' ')" "api.anthropic.com registry.npmjs.org "
    echo '{"network":{"deny":["claude.ai"]}}' >"$T/deny.json"
    is "a refusal wins" "$(agent --policy "$T/deny.json" -c 'getent hosts claude.ai || echo no' 2>/dev/null)" no
else
    skip "only these have addresses inside" "no gateway here"
fi

# narrowing
is "--home replaces its home" "$(mkdir -p "$T/own" && agent --home "$T/own" -c 'echo "$HOME"' 2>/dev/null)" "$T/own"
is "--deny works in it" "$(agent --deny "$A/claude/.claude/.credentials.json" -c 'cat ~/.claude/.credentials.json || echo no' 2>/dev/null)" no

# a sandbox that stays, and a policy file
id=$(cs create --agent claude)
is "create: connecting adds nothing" "$(cs exec "$id" -c 'echo "$HOME"' 2>&1; cs net "$id" | grep -c anthropic)" "$A/claude"$'\n'1
cs destroy "$id"
echo '{"agent": "claude"}' >"$T/p.json"
is "a policy may name it" "$(cs run --policy "$T/p.json" -c 'echo "$HOME"' 2>/dev/null)" "$A/claude"
like "policy check explains it" "$(cs policy check "$T/p.json")" "*claude: host that may be reached: api.anthropic.com:443 (requests to the model)*"
cp "$T/p.json" caisson.json
status "a project that is not trusted may not" 125 cs run -- true
like "it is named" "$err" "*you have not trusted it: agent*"
rm caisson.json

# mistakes
status "an unknown agent" 2 cs run --agent claud -- true
is "has the nearest one" "$err" "caisson: run: --agent takes claude|codex|gemini, not 'claud'"$'\n'"hint: did you mean claude?"
status "policy agent, too" 2 cs policy agent geminy
like "has the nearest one there" "$err" "*did you mean gemini?*"
echo '{"agent": "codx"}' >"$T/p.json"
status "in a policy" 125 cs run --policy "$T/p.json" -- true
like "with the file and the nearest one" "$err" "*p.json: agent: there is no preset 'codx'*did you mean codex?*"
status "a backend without it refuses" 125 cs run --backend local --agent claude -- true
is "by name" "$err" "caisson: run: --agent: backend 'local' does not support this option"$'\n'"hint: jail does"
rm -rf "$A/gemini" && ln -s "$T/own" "$A/gemini"
status "a home that is a link is refused" 125 cs run --agent gemini -- true
is "and nothing is written where it leads" "$(ls -A "$T/own")" ""
is "the real home is still unchanged" "$(sum)" "$before"

if [ "$ROOT" = yes ]; then # commands are the owner of the workspace
    mkdir "$T/theirs" && chown 4242:4343 "$T/theirs" && chmod 755 "$T"
    is "root in a directory of another user: a home that this user can write" \
        "$(cd "$T/theirs" && for _ in 1 2; do cs run --agent codex -c 'echo x >>~/n; wc -l <~/n' 2>/dev/null; done)" 1$'\n'2
    is "it belongs to that user" "$(stat -c %u:%g:%a "$A/codex-4242-4343")" 4242:4343:700
fi
