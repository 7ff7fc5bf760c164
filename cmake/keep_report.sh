#!/usr/bin/env bash
# keep_report.sh FOLDER COMPILER ARGUMENT...: runs the compiler and keeps what it says in FOLDER/<source name>.log.
set -u
folder=$1
shift
source=unknown
previous=
for argument in "$@"; do
  [ "$previous" = -c ] && source=$(basename "$argument" .cu)
  previous=$argument
done
mkdir -p "$folder"
"$@" >"$folder/$source.log" 2>&1
status=$?
if [ $status -ne 0 ]; then
  cat "$folder/$source.log" >&2
else
  grep -iE 'warning|serialized' "$folder/$source.log" >&2
fi
exit $status
