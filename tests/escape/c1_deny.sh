#!/bin/bash
# C1: what a policy denies is denied to commands: by path, by pattern, under another name, and when
# it appears later. Each check has a control: the same without the denial.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

put() { mkdir -p "${1%/*}" && printf '%s\n' "$2" >"$1"; } # FILE TEXT
policy() { printf '{"rules": [%s]}\n' "$1" >"$T/policy.json"; }
rule() { printf '{"op": %s, "effect": "%s", "path": "%s"%s}' "$1" "${4:-deny}" "$2" "${3:+, \"scope\": \"$3\"}"; }
# denied NAME OPTIONS... -- SCRIPT: the script prints `secret` without the options, and not with
# them. AGAIN: what to call before each, if the script moves files.
denied()
{
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    ${AGAIN-:}
    is "$name: control" "$("${IN[@]}" -c "$2" 2>/dev/null | grep -c secret)" 1
    ${AGAIN-:}
    is "$name" "$("${IN[@]}" "${options[@]}" -c "$2" 2>/dev/null | grep -c secret)" 0
}
# refused NAME PATTERN OPTIONS...: the sandbox is not opened
refused()
{
    local name=$1 pattern=$2
    shift 2
    status "$name: refused" 125 "${IN[@]}" "$@" -- true
    like "$name: it says why" "$err" "$pattern"
}
fresh() # a tree with secrets
{
    find "$WS" -mindepth 1 ! -name probe -delete
    put "$WS/.env" secret && put "$WS/dir/deep/.env.local" secret && put "$WS/keys/id" secret
    put "$WS/plain" plain && put "$WS/dir/plain" plain
}

# ---- by path ----
fresh
denied "a file" --deny .env -- 'cat .env'
denied "a directory" --deny keys -- 'cat keys/id'
AGAIN=fresh denied "moved away" --deny .env -- 'mv .env x; cat x'
AGAIN=fresh denied "linked" --deny .env -- 'ln .env x; cat x'
AGAIN=fresh denied "its directory moved away" --deny keys/id -- 'mv keys x; cat x/id'
AGAIN=fresh denied "its directory exchanged" --deny keys/id -- 'cp -r keys k2; mv keys k3; mv k2 keys; cat keys/id'
is "the rest is readable" "$("${IN[@]}" --deny .env --deny keys -- cat plain dir/plain | tr '\n' ' ')" "plain plain "
refused "a path that is misspelt" "*--deny '.enw': No such file*hint: --deny-missing-ok *" --deny .enw
refused "in a file" "*deny '.enw': No such file*" --policy <(echo '{"deny": [".enw"]}')
denied "a path of the list that may be missing" --deny-missing-ok .env --deny-missing-ok .enw -- 'cat .env'

# ---- by links ----
fresh && ln -s .env "$WS/link" && ln -s dir "$WS/dlink"
denied "a link" --deny link -- 'cat link'
denied "what it leads to" --deny link -- 'cat .env'
is "the link stays" "$("${IN[@]}" --deny link -c 'rm -f link; ln -sfn plain link; readlink link' 2>/dev/null; readlink "$WS/link")" .env
refused "through a link to a directory" "*--deny 'dlink/plain': it leads through a link*hint: name *dir/plain*" --deny dlink/plain
ln -s dlink/plain "$WS/link2" && ln -s link "$WS/link3"
refused "a link through another" "*--deny 'link2': it leads through a link*hint: name *dir/plain*" --deny link2
refused "a link to a link" "*--deny 'link3': it leads through a link*hint: name *.env*" --deny link3
policy "$(rule '"write"' link)"
refused "a rule that denies writing a link" "*rules[[]0[]]: deny write 'link': it leads through a link*" --policy "$T/policy.json"
mkdir "$WS/sub" && ln -s ../plain "$WS/sub/up" && ln -s "$HOME" "$WS/sub/out"
is "a link in a directory stays where it is" "$("${IN[@]}" --deny sub/up -c 'mv sub x; cat plain sub/up' 2>/dev/null)" ""
is "a link out of the workspace is covered" "$("${IN[@]}" --deny sub/out -c 'rm -f sub/out; readlink sub/out' 2>/dev/null; readlink "$WS/sub/out")" "$HOME"
mv "$WS/.env" "$WS/env" && ln "$WS/env" "$WS/dir/copy" && ln "$WS/env" "$OUT/beyond"
denied "another name of the file" --deny env -- 'cat dir/copy'
is "which is not there twice" "$("${IN[@]}" --deny env -c 'cat env dir/copy' 2>/dev/null | wc -l)" 0
fresh && ln "$WS/keys/id" "$WS/dir/id"
denied "another name of a file in a directory" --deny keys -- 'cat dir/id'
policy "$(rule '["write","delete"]' keys/id)"
is "nor is it written under that name" "$("${IN[@]}" --policy "$T/policy.json" -c 'echo x >dir/id' 2>/dev/null; cat "$WS/keys/id")" secret
rm -f "$OUT/beyond"

rm -f "$OUT"/* && put "$OUT/key" secret && ln "$OUT/key" "$WS/dir/key"
denied "another name of a file that is not granted" --deny "$OUT/key" -- 'cat dir/key'
denied "of one in a directory that is not granted" --deny "$OUT" -- 'cat dir/key'
rm -f "$OUT/key"
if [ "$ROOT" = yes ]; then
    fresh && mkdir "$WS/bind" && put "$WS/one" x
    bound() # COMMAND...: runs it where keys is also bind, and .env also one
    {
        unshare -m --propagation private bash -c \
            "mount --bind '$WS/keys' '$WS/bind' && mount --bind '$WS/.env' '$WS/one' && exec \"\$@\"" - "$@"
    }
    inner() { bound "$CAISSON" run --workspace "$WS" --timeout 300s "$@" 2>/dev/null; }
    script='cat bind/id; cat one'
    is "where a mount of the host shows it again: control" "$(inner -c "$script" | grep -c secret)" 2
    is "where a mount of the host shows it again" "$(inner --deny keys/id --deny .env -c "$script")" ""
    is "with the directory" "$(inner --deny keys --deny one -c "$script; cat .env")" ""
    is "by the path of the mount" "$(inner --deny bind -c 'cat keys/id')" ""
fi

# ---- rules ----
fresh
policy "$(rule '"read"' .env),$(rule '"write"' plain),$(rule '"delete"' dir/plain)"
denied "a rule that denies reading" --policy "$T/policy.json" -- 'cat .env'
rules=(--policy "$T/policy.json")
like "the denial names its rule" "$("${IN[@]}" "${rules[@]}" -- cat .env 2>&1)" "*denied read '.env'; leave out rules[[]0[]]*"
is "writing" "$("${IN[@]}" "${rules[@]}" -c 'echo secret >>plain; cat plain' 2>/dev/null)" plain
is "by another file in its place" "$("${IN[@]}" "${rules[@]}" -c 'echo secret >x; mv -f x plain; cat plain; rm x' 2>/dev/null)" plain
is "removal" "$("${IN[@]}" "${rules[@]}" -c 'rm -f dir/plain; mv dir/plain x; echo x >x; mv -f x dir/plain; rm -rf dir; cat dir/plain; rm -f x' 2>/dev/null)" plain
is "a file that cannot be removed can be written" "$("${IN[@]}" "${rules[@]}" -c 'echo more >dir/plain; cat dir/plain')" more
is "and what is beside it removed" "$("${IN[@]}" "${rules[@]}" -c 'echo x >dir/x; rm dir/x && echo gone')" gone
fresh
is "control: written" "$("${IN[@]}" -c 'echo secret >plain; cat plain')" secret
is "control: removed" "$("${IN[@]}" -c 'rm dir/plain && echo gone')" gone
fresh && policy "$(rule '"delete"' dir)"
refused "removal below a directory" "*rules[[]0[]]: deny delete 'dir': it is a directory*hint: *scope*files*" --policy "$T/policy.json"
policy "$(rule '["write","delete"]' dir)"
is "with writing it is read-only" "$("${IN[@]}" --policy "$T/policy.json" -c 'rm -f dir/plain; echo x >dir/new; ls dir | tr "\n" " "' 2>/dev/null)" "deep plain "
policy "$(rule '"read"' none)"
refused "a rule for a path that is not there" "*rules[[]0[]]: deny read 'none': No such file*hint: *scope*files*" --policy "$T/policy.json"
policy "$(rule '"read"' keys),$(rule '"read"' keys/id '' allow)"
refused "a rule with an exception below it" "*rules[[]0[]]: deny read 'keys': rules[[]1[]] allows *keys/id below it*" --policy "$T/policy.json"
policy "$(rule '"delete"' dir files),$(rule '"read"' none files)"
id=$(cs create --workspace "$WS" --policy "$T/policy.json" 2>/dev/null)
is "with the scope files it is opened" "$(cs exec "$id" -- rm dir/plain && echo gone)" gone
status "and holds for file calls" 1 cs rm "$id" dir/deep/.env.local
json "which info tells" "$(cs info "$id" --json)" 'all(r["enforced"] == "file calls only" for r in v["rules"]) and len(v["rules"]) == 2'
cs destroy "$id"
fresh && policy "$(rule '["write","delete"]' plain),$(rule '"delete"' dir/plain)"
id=$(cs create --workspace "$WS" --deny .env --policy "$T/policy.json" 2>"$T/notes")
like "create tells what enforces each rule" "$(cat "$T/notes")" "*deny .env: mount (covered)*plain: mount (read-only)*dir/plain: mount (cannot be removed)*"
json "info as well" "$(cs info "$id" --json)" '[r["enforced"] for r in v["rules"]] ==
    ["mount (covered)", "mount (read-only)", "mount (cannot be removed)"]'
json "and why" "$(cs why "$id" write plain --json)" 'v["enforced"] == "mount (read-only)" and v["source"] == "config.rules[0]"'
json "and create --json" "$(cs create --workspace "$WS" --deny .env --json)" 'v["rules"][0]["enforced"] == "mount (covered)"'
for s in $(cs list --json | python3 -c 'import json, sys; print(*[s["id"] for s in json.load(sys.stdin)])'); do cs destroy "$s"; done

# ---- patterns ----
fresh
denied "a pattern" --deny '**/.env*' -- 'cat .env'
denied "at any depth" --deny '**/.env*' -- 'cat dir/deep/.env.local'
denied "a directory that matches" --deny 'k*' -- 'cat keys/id'
AGAIN=fresh denied "after its directory was moved" --deny '**/.env*' -- 'mv dir x; cat x/deep/.env.local'
AGAIN=fresh denied "where the pattern names the directory" --deny 'dir/*/.env*' -- 'mv dir x; cat x/deep/.env.local'
fresh && denied "in another granted directory" --read "$OUT" --deny '**/.env*' -- "cat $OUT/.env 2>/dev/null || cat .env"
put "$OUT/.env" secret
is "so it is" "$("${IN[@]}" --read "$OUT" --deny '**/.env*' -c "cat $OUT/.env" 2>/dev/null)" ""
is "control" "$("${IN[@]}" --read "$OUT" -c "cat $OUT/.env" 2>/dev/null)" secret
ln "$WS/.env" "$WS/dir/copy"
denied "another name of a match" --deny '**/.env*' -- 'cat dir/copy'
fresh && ln -s keys/id "$WS/.env.link"
denied "what a link that matches leads to" --deny '**/.env*' -- 'cat keys/id'
policy "$(rule '"read"' '**/.env*'),$(rule '"read"' dir/deep/.env.local '' allow)"
is "an exception to a pattern" "$("${IN[@]}" --policy "$T/policy.json" -c 'cat .env; cat dir/deep/.env.local' 2>/dev/null)" secret
policy "$(rule '"write"' '**/*.lock')" && put "$WS/dir/x.lock" plain
is "a pattern that denies writing" "$("${IN[@]}" --policy "$T/policy.json" -c 'echo secret >dir/x.lock; cat dir/x.lock' 2>/dev/null)" plain
refused "a pattern outside of what is granted" "*--deny '/usr/**/x': the pattern does not start in a granted directory*" --deny '/usr/**/x'
refused "one for the whole root" "*does not start in a granted directory*" --deny '/**/.env'
rm -f "$OUT/.env"

# ---- many matches: more than one plan of mounts has room for ----
fresh
for i in {1..300}; do put "$WS/many/$i/.env" "secret"; done
is "300 matches" "$("${IN[@]}" --deny '**/.env*' -c 'cat many/*/.env 2>/dev/null | grep -c secret')" 0
is "300 matches: control" "$("${IN[@]}" -c 'cat many/*/.env | grep -c secret')" 300

# ---- later ----
fresh
id=$(cs create --workspace "$WS" --deny '**/.env*' --deny-missing-ok later/key --deny keys/id --deny plain 2>/dev/null)
cs exec "$id" -- true
put "$WS/dir/.env" secret && put "$WS/later/key" secret && put "$WS/new/.env/file" secret
is "created by the host: a match" "$(cs exec "$id" -c 'cat dir/.env' 2>/dev/null)" ""
is "a directory that matches" "$(cs exec "$id" -c 'cat new/.env/file' 2>/dev/null)" ""
is "a path that was missing" "$(cs exec "$id" -c 'cat later/key' 2>/dev/null)" ""
is "none can be moved away" "$(cs exec "$id" -c 'mv dir/.env x; mv later/key x; mv new/.env x; ls' 2>/dev/null | grep -c '^x$')" 0
put "$WS/tmp" secret && mv "$WS/tmp" "$WS/keys/id"
is "replaced by the host: a file" "$(cs exec "$id" -c 'cat keys/id' 2>/dev/null)" ""
put "$WS/tmp" secret && mv "$WS/tmp" "$WS/.env"
is "a match" "$(cs exec "$id" -c 'cat .env' 2>/dev/null)" ""
mv "$WS/plain" "$WS/x" && put "$WS/plain/file" secret
is "by a directory" "$(cs exec "$id" -c 'cat plain/file' 2>/dev/null)" ""
status "a process in the background" 0 cs exec "$id" -d -c 'cat dir/.env .env keys/id'
put "$WS/a" secret && ln "$WS/a" "$WS/.env.linked"
status "a match with another name" 125 cs exec "$id" -- true
like "is refused by name" "$err" "*/.env.linked' cannot be covered: it has other names*"
rm "$WS/.env.linked" "$WS/a"
is "and accepted without" "$(cs exec "$id" -- echo ran)" ran
status "file calls refuse it too" 1 cs cat "$id" dir/.env
is "a command's own file" "$(cs exec "$id" -c 'echo mine >.env.own; cat .env.own' 2>"$T/notes")" mine
like "is reported" "$(cat "$T/notes")" "*denied write '*/.env.own'*"
is "is covered for the next" "$(cs exec "$id" -c 'cat .env.own' 2>/dev/null)" ""
is "covers are not mounted twice" "$(cs exec "$id" -c 'wc -l </proc/self/mountinfo')" "$(cs exec "$id" -c 'wc -l </proc/self/mountinfo')"
is "control: the host reads them" "$(cat "$WS/dir/.env" "$WS/later/key" "$WS/keys/id" | grep -c secret)" 3
cs destroy "$id"
