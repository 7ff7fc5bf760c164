#!/usr/bin/env bash
# format.sh         rewrites every C++ and CUDA source in the house style
# format.sh --check says which files are not in it, and fails
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find include src cli bench pages tests examples -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' \
                       -o -name '*.cuh' -o -name '*.cu' \) | sort)
if [ "${1:-}" = --check ]; then
  report=$(clang-format-14 --dry-run -Werror "${files[@]}" 2>&1) && exit 0
  grep -E 'error:' <<<"$report" | cut -d: -f1 | sort | uniq -c | sed 's/^/not formatted (places, file): /' >&2
  exit 1
fi
clang-format-14 -i "${files[@]}"
