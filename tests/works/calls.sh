#!/bin/bash
# System calls as ordinary programs make them: tests/works/calls.h.
# shellcheck source=tests/works/lib.sh
. "${0%/*}/lib.sh"
CALLS=${CALLS:?set CALLS to the program that makes the calls}

"$CALLS" >"$T/uses" || exit 1
while read -r name; do
    # shellcheck disable=SC2016
    works "$name" "" 'exec "$CALLS" "$NAME"' --read "${CALLS%/*}" --env CALLS="$CALLS" --env NAME="$name"
done <"$T/uses"
