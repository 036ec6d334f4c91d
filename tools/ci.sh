#!/bin/bash
# ci.sh: every stage a change must pass, in order; stops at the first that fails and shows the
# end of its log. The last line is `N passed, N failed, N skipped`, summed over all stages.
#
# Runs anywhere a clone does: as root it installs what it needs, and runs the suite once more as
# an ordinary user in a private copy of the tree.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
build='build-ci'
export CSN_MUST_WORK=1
export MESON_OPTIONS='-Dwerror=true -Dtests=enabled'
unset CAISSON_BACKEND VERCEL
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

summary()
{
    echo "$passed passed, $failed failed, $skipped skipped"
}

stage() # NAME COMMAND...
{
    local name=$1 log="$scratch/$1.log" status=0 start=$SECONDS line
    shift
    printf '== %-10s ' "$name"
    "$@" >"$log" 2>&1 || status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    if [ -n "$line" ]; then
        read -r p _ f _ s _ <<<"$line"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    fi
    if [ "$status" -ne 0 ]; then
        echo "FAILED after $((SECONDS - start)) s"
        grep -E -A12 '^(FAIL|--- )|^ +not ok' "$log" | grep -v '^skipped: ' | head -n 100
        grep -v '^skipped: ' "$log" | tail -n 60
        [ -n "$line" ] && [ "${f:-0}" -gt 0 ] || failed=$((failed + 1))
        summary
        exit 1
    fi
    echo "ok, $((SECONDS - start)) s${line:+: $line}"
    grep -E '^skipped: ' "$log" | sort -u | sed 's/^/   /'
}

# All of it, to see that it compiles. Without this only what the chosen tests need is built.
compile() # DIR OPTIONS...
{
    tools/build "$@" && ninja -C "$1"
}

with_clang()
{
    CC=clang compile "$build/clang" &&
        tools/run-tests "$build/clang" --suite unit
}

with_sanitizers()
{
    # The suite's children end by signals and by _exit on purpose; only real findings abort.
    export ASAN_OPTIONS=abort_on_error=0:exitcode=97:detect_stack_use_after_return=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    compile "$build/asan" -Db_sanitize=address,undefined -Db_lundef=false -Dkeeper=native &&
        tools/run-tests "$build/asan" --timeout-multiplier 4 --suite unit --suite conformance \
            --suite cli --suite escape --suite net-brief --suite fault --suite fuzz --suite mcp \
            --suite remote --no-suite conformance-busybox --no-suite many-starts
}

# The keeper has one thread and starts as a static program. Of the official clients one is enough.
with_thread_sanitizer()
{
    export TSAN_OPTIONS=exitcode=66
    CC=clang tools/build "$build/tsan" -Db_sanitize=thread -Db_lundef=false -Dkeeper=musl &&
        tools/run-tests "$build/tsan" --timeout-multiplier 4 os_spawn mcp_stdio mcp_http mcp_load
}

# A jail with one wall less: each is noticed, none is the only one.
with_walls_off()
{
    tools/build "$build/walls" -Dtest_walls=true &&
        tools/run-tests "$build/walls" escape_walls_caller escape_walls_user
}

# Programs that only compute: valgrind 3.19 knows neither openat2 nor what a keeper does with
# clone, and those run under the sanitizers instead (search_changed mounts, in a child). The code
# that PCRE2 compiles at run time reads whole vectors, beyond the end of a text, so search_scan,
# which runs thousands of expressions, is left to them as well.
with_valgrind()
{
    local names
    mapfile -t names < <(meson test -C build --list --suite unit 2>/dev/null |
        sed -n 's/.*[:/ ]\(\(base\|text\|policy\|search\)_[a-z0-9_]*\)$/\1/p' | sort -u |
        grep -vxE 'search_(changed|scan)')
    [ ${#names[@]} -gt 0 ] || { echo "no unit test was found"; return 1; }
    tools/run-tests build --logbase memcheck --timeout-multiplier 10 --no-rebuild \
        --wrap 'valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes' \
        "${names[@]}"
}

# Nothing of root's reaches this run: own uid, own HOME, own copy, no environment. What takes
# minutes and does not depend on who calls has been run above.
as_user()
{
    local same_for_all='--no-suite conformance-shell --no-suite conformance-remote --no-suite remote --no-suite remote-clients --no-suite mcp-clients'
    local home="$scratch/u"
    chmod 711 "$scratch"
    mkdir -p "$home/t" "$home/h" "$home/tmp"
    tar -C "$top" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . |
        tar -C "$home/t" -xf - --no-same-owner
    chown -R 65534:65534 "$home"
    (
        cd "$home/t" && exec setpriv --reuid 65534 --regid 65534 --clear-groups env -i \
            PATH=/usr/local/bin:/usr/bin:/bin HOME="$home/h" TMPDIR="$home/tmp" \
            LANG=C.UTF-8 CSN_MUST_WORK=1 MESON_OPTIONS="$MESON_OPTIONS" make test TESTS="$same_for_all"
    )
}

SECONDS=0
stage packages tools/deps build test engine lint clang valgrind user
stage lint make lint
stage release tools/last-release build
# What an ordinary user is given and refused is what the last stage runs.
stage test make test TESTS='--no-suite net-user --no-suite escape-user --no-suite advisories-user'
stage clang with_clang
stage walls with_walls_off
stage sanitize with_sanitizers
stage threads with_thread_sanitizer
stage memcheck with_valgrind
if [ "$(id -u)" -eq 0 ]; then
    stage user as_user
fi
echo "== all stages passed in $SECONDS s"
summary
