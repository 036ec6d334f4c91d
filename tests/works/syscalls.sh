#!/bin/bash
# Every system call has the same result inside a jail and outside, or a row in syscalls.table
# with the reason. A row without a difference is a failure as well. A call that the kernel does
# not have is not compared. With the argument `user` a root caller becomes an ordinary user.
SYSCALLS=${SYSCALLS:?set SYSCALLS to the program that makes the calls}
if [ "${1-}" = user ]; then
    uid=$((50000 + $$ % 10000)) # its own: what is left behind is found by it
    drop=(setpriv --reuid "$uid" --regid "$uid" --clear-groups --)
    if [ "$(id -u)" -ne 0 ]; then
        echo "1..0 # SKIP the caller is an ordinary user already" && exit 0
    elif ! "${drop[@]}" test -x "$CAISSON" -a -x "$SYSCALLS"; then
        echo "1..0 # SKIP a user cannot reach the programs" && exit 0
    fi
    exec "${drop[@]}" env CSN_TEST_UID_IS_OURS=1 bash "$0"
fi
# shellcheck source=tests/works/lib.sh
. "${0%/*}/lib.sh"
TABLE=$(cd "$OLDPWD" && realpath "${0%/*}/syscalls.table")

# capabilities: those of the caller are all that rows for root need (all but CAP_SYS_RESOURCE)
capabilities()
{
    local all=0x1fffeffffff have
    have=0x$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
    [ $((have & all)) -eq $((all)) ]
}

caller=user
[ "$(id -u)" -ne 0 ] || caller=root
if ! grep -q '^Seccomp:[[:space:]]*0' /proc/self/status; then
    skip "system calls" "the caller has a filter already" && exit 0
elif [ $caller = root ] && ! capabilities; then
    skip "system calls" "root lacks capabilities here" && exit 0
elif [[ $(uname -r) != 6.18* ]]; then
    skip "system calls" "the table has the results of Linux 6.18, this is $(uname -r)" && exit 0
fi

mkdir -p "$T/outside" "$T/ws"
(cd "$T/outside" && exec "$SYSCALLS") >"$T/out" 2>"$T/.err" </dev/null
is "every call is made outside" "$? $(cat "$T/.err")" "0 "
cs run --workspace "$T/ws" --read "${SYSCALLS%/*}" -- "$SYSCALLS" >"$T/in" 2>"$T/.err" </dev/null
is "every call is made inside" "$? $(cat "$T/.err")" "0 "
is "they are the same calls" "$(cut -d' ' -f1 "$T/in")" "$(cut -d' ' -f1 "$T/out")"

# Prints a line for each difference between the results and the table, then the counts.
awk -v caller=$caller '
function wrong(why) { print "WRONG " why }
FILENAME ~ /table$/ {
    if (/^#/ || NF == 0)
        next
    if (NF < 5 || $2 !~ /^(root|user|any)$/)
        wrong("line " FNR " of the table: " $0)
    named[$1] = 1
    if ($2 != "any" && $2 != caller)
        next
    if ($1 in expected)
        wrong($1 ": two rows for " caller)
    allowed[$1] = $3
    expected[$1] = $4
    next
}
FILENAME ~ /out$/ { outside[$1] = $2 ($2 == "signal" ? $3 : ""); next }
{
    name = $1
    inside = $2 ($2 == "signal" ? $3 : "")
    delete named[name]
    if (inside == "not") { skipped++; next }
    if (outside[name] == "ENOSYS") { absent++; next }
    compared++
    if (outside[name] == inside)
        same++
    if (!(name in expected)) {
        if (outside[name] != inside)
            wrong(name ": " outside[name] " outside, " inside " inside, and no row for " caller)
    } else if (index("|" allowed[name] "|", "|" outside[name] "|") == 0)
        wrong(name ": " outside[name] " outside, and the table has " allowed[name])
    else if (outside[name] == inside && allowed[name] == inside)
        wrong(name ": the row has no difference")
    else if (outside[name] != inside && expected[name] != inside)
        wrong(name ": " inside " inside, and the table has " expected[name])
}
END {
    for (name in named)
        wrong(name ": no such call")
    printf "%d of %d calls have the same result; ", same, compared
    printf "%d are not in this kernel, %d are not made\n", absent, skipped
}' "$TABLE" "$T/out" "$T/in" >"$T/compared"
is "$caller: every difference is in the table" "$(sed -n 's/^WRONG //p' "$T/compared")" ""
pass "$caller: $(tail -n 1 "$T/compared")"
