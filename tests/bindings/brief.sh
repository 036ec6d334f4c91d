#!/bin/sh
# brief.sh LANGUAGE: the tests of a language package that need no download. Status 77 (skipped)
# where the language, or a version of it that is new enough, is not installed.
here=$(cd "$(dirname "$0")/../../bindings/$1" && pwd)
case $1 in
go) (cd "$here" && GOTOOLCHAIN=local go list ./...) ;;
node) [ -f "$(node -p "require('path').resolve(process.execPath, '../../include/node/node_api.h')")" ] ;;
python) python3 -c 'import cffi' || /usr/bin/python3 -c 'import cffi' ;;
esac >/dev/null 2>&1 || { echo "$1: not installed, or too old"; exit 77; }
exec "$here/test" --brief
