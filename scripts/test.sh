#!/usr/bin/env bash
# Everything that can be tested without a GPU: the build (with every kernel, if nvcc is there), the CPU suite, the unit and property
# tests again under sanitizers, the format, clang-tidy, and the Python package. Ends with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
bash scripts/setup.sh test || { echo "0 passed, 1 failed"; exit 1; }
. scripts/nvcc.sh

if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
jobs=$(nproc)
passed=0
failed=0
failures=()

# check NAME COMMAND...: one step that passes or fails.
check() {
  local name=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failures+=("$name")
  fi
  printf -- '-- %s: %d s\n' "$name" "$((SECONDS - start))"
}

build() {
  cmake --preset "$1" >"build-$1/build.log" 2>&1 || { cat "build-$1/build.log"; return 1; }
  cmake --build --preset "$1" -j "$jobs" >"build-$1/build.log" 2>&1 || { grep -vE '^\[[0-9]+/[0-9]+\]' "build-$1/build.log" | tail -n 100; return 1; }
}

# count NAME REPORT...: tests, one by one, from the reports of those who ran them.
count() {
  local counts name=$1 ok bad names each
  shift
  counts=$(python3 tools/count_tests.py "$@" 2>/dev/null) || counts="0 1 no-report"
  read -r ok bad names <<<"$counts"
  passed=$((passed + ok))
  failed=$((failed + bad))
  for each in ${names:-}; do failures+=("$name: $each"); done
}

# The tests of one preset.
tests() {
  local report="$PWD/build-$1/ctest.xml" start=$SECONDS
  printf '\n== tests, preset %s\n' "$1"
  rm -f "$report"
  ctest --preset "$1" -j "$jobs" --output-junit "$report"
  count "$1" "$report"
  printf -- '-- tests, preset %s: %d s\n' "$1" "$((SECONDS - start))"
}

# Those of the Python package, with the emulator of the build that is there.
python_tests() {
  local start=$SECONDS
  printf '\n== tests, python\n'
  bash scripts/python.sh test "build-$main"
  count python build-python-test/tests.xml build-python-test/emulator.xml
  printf -- '-- tests, python: %d s\n' "$((SECONDS - start))"
}

nvcc=$(usable_nvcc)
if [ -n "$nvcc" ]; then
  main=cuda
  echo "with every kernel: $nvcc"
else
  main=cpu
  echo "without kernels: no nvcc of 12.8 or newer on the PATH or in /usr/local/cuda"
fi

# clang-tidy reads how the CPU preset compiles each file (emulated machine included); it needs no objects, and no precompiled headers.
tidy() {
  cmake --preset cpu -B build-tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >build-tidy/build.log 2>&1 || { cat build-tidy/build.log; return 1; }
  timeout 900 bash scripts/tidy.sh build-tidy
}

mkdir -p "build-$main" build-sanitize build-tidy
bash scripts/python.sh torch &  # waits for the network: beside what waits for the processors
torch=$!
trap 'kill "$torch" 2>/dev/null' EXIT

check "format" bash scripts/format.sh --check
check "build, preset $main" build "$main"
tests "$main"
check "build, preset sanitize" build sanitize
tests sanitize
check "clang-tidy" tidy
check "python: install, types" bash scripts/python.sh install
wait "$torch"
python_tests

echo
for name in ${failures[@]+"${failures[@]}"}; do echo "failed: $name"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
