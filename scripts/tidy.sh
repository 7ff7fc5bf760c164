#!/usr/bin/env bash
# Runs clang-tidy over the library and the tools. Usage: tidy.sh BUILD_FOLDER [file...]
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
shift
if [ $# -eq 0 ]; then
  # What the build compiles with the host compiler, tests aside: those follow GoogleTest's macros rather than our names.
  mapfile -t files < <(python3 - "$build" <<'PYTHON'
import json, os, sys
root = os.getcwd()
commands = json.load(open(os.path.join(sys.argv[1], "compile_commands.json")))
ours = {os.path.relpath(os.path.realpath(c["file"]), root) for c in commands}
print("\n".join(sorted(f for f in ours if f.endswith(".cpp") and f.split("/")[0] in ("src", "cli", "bench", "pages"))))
PYTHON
  )
  set -- "${files[@]}"
fi
[ $# -gt 0 ] || { echo "tidy: $build compiles nothing of src/, cli/, bench/ or pages/" >&2; exit 1; }
echo "clang-tidy over $# files"
# The analyzer follows up to a tenth of the paths through a function that it would by itself: half the time, at the cost of the longest ones.
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" sh -c '
  output=$(clang-tidy-14 --quiet -p "$0" --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=20000 "$1" 2>&1) || { printf "%s\n" "$output" | grep -vE "warnings? generated|^Suppressed|^Use -" ; exit 1; }
' "$build"
