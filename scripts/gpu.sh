#!/usr/bin/env bash
# Runs what needs a Hopper GPU, from binaries built before (cmake --preset cuda && cmake --build --preset cuda). Compiles nothing.
#
#   scripts/gpu.sh [BUILD_DIR] check            every kernel over the matrix of edge cases, graph replays, threads, errors
#   scripts/gpu.sh [BUILD_DIR] sanitize         few and small cases of every kernel under compute-sanitizer memcheck
#   scripts/gpu.sh [BUILD_DIR] bench SUITE [OPTION...]   against cuBLASLt: square, wave, splitk, llm, all, random, a file of shapes, or several: wave,llm
#   scripts/gpu.sh [BUILD_DIR] planner SUITE [OPTION...]  every candidate on every shape: how far is the planner's choice from the best?
#   scripts/gpu.sh [BUILD_DIR] chain [MODEL] [OPTION...]  layers of decoding in a row: llama3-8b, llama3-70b or all
#   scripts/gpu.sh [BUILD_DIR] grouped [SET] [OPTION...] groups beside a read of their bytes and one product: a set, a type, a size, or all
#   scripts/gpu.sh [BUILD_DIR] quantize [OPTION...]      quantisation: its tests, then its times beside a copy of the same bytes
#   scripts/gpu.sh [BUILD_DIR] histogram [OPTION...]     histograms: their tests, then their times beside a read of the same bytes
#   scripts/gpu.sh [BUILD_DIR] attention [OPTION...]     decode attention: its tests, then its times beside a read of the same bytes
#   scripts/gpu.sh [BUILD_DIR] python [OPTION...]        the Python package (PYTHON, python3 unless set, has torch and pytest): its tests, what a call costs,
#                                                        and the examples; options are pytest's
#   scripts/gpu.sh [BUILD_DIR] all              check, sanitize and the four suites
#
# BUILD_DIR is build-cuda unless given. Logs and JSON go to the folder $OUT (out/ unless set). A short table comes last.
# Each program runs under a time limit, since a kernel that hangs holds the GPU until its process ends.
# SANITIZE_FILTER limits `sanitize` to the kernels of a GoogleTest filter.
set -uo pipefail
cd "$(dirname "$0")/.."

commands="check sanitize bench planner chain grouped quantize histogram attention python all"
build=build-cuda
if [[ $# -gt 0 && " $commands " != *" $1 "* ]]; then
  build=$1
  shift
fi
command=${1:-}
[[ $# -gt 0 ]] && shift
out=${OUT:-out}
mkdir -p "$out"

usage() {
  sed -n '2,/^set /p' "$0" | sed -n 's/^# \{0,1\}//p' >&2
  exit 2
}

# The build's output folders differ between generators; the names do not.
find_program() {
  local found
  found=$(find "$build" -type f -name "$1" -perm -u+x 2>/dev/null | head -n 1)
  if [[ -z $found ]]; then
    echo "gpu.sh: no program '$1' in $build; build it first: cmake --preset cuda && cmake --build --preset cuda" >&2
    exit 2
  fi
  echo "$found"
}

table=()
failed=0

# run NAME SECONDS LINES PROGRAM...: into $out/NAME.log, the last LINES of it on the terminal, one line for the table.
run() {
  local name=$1 seconds=$2 lines=$3 begin end code verdict
  shift 3
  echo "== $name: $*"
  begin=$(date +%s)
  timeout --kill-after=10 "$seconds" "$@" >"$out/$name.log" 2>&1
  code=$?
  end=$(date +%s)
  tail -n "$lines" "$out/$name.log"
  case $code in
    0) verdict=passed ;;
    124 | 137) verdict="TIMED OUT after $seconds s" ;;
    *) verdict="FAILED (exit code $code)" ;;
  esac
  [[ $code -eq 0 ]] || failed=1
  table+=("$(printf '%-22s %5d s  %s' "$name" $((end - begin)) "$verdict")")
}

# A GPU number without the GPU it belongs to is worth nothing.
record_gpu() {
  local smi
  smi=$(command -v nvidia-smi || echo /usr/local/nvidia/bin/nvidia-smi)
  timeout 20 "$smi" --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu --format=csv \
    >"$out/gpu.txt" 2>&1 || echo "gpu.sh: nvidia-smi does not answer" >&2
  cat "$out/gpu.txt"
}

check() {
  local tests cuobjdump
  tests=$(find_program gpu_tests) || exit 2
  cuobjdump=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)
  run check-main-loops 120 12 python3 -B tests/compile_report/check_main_loops.py "$cuobjdump" "$tests"
  run check-kernels 60 24 "$tests" '--gtest_filter=KernelList/EveryKernel.IsRight/*'
  run check-replays 60 6 "$tests" '--gtest_filter=KernelList/EveryKernel.GivesTheSameBits*'
  run check-fp8-results 120 6 "$tests" '--gtest_filter=KernelList/Fp8Results*'
  run check-emulator 120 6 "$tests" '--gtest_filter=KernelList/EmulatorAgrees*'
  run check-coresident 180 50 "$tests" '--gtest_filter=CoResident.*:BatchInvariance.*:Constants.*'
  run check-others 60 12 "$tests" '--gtest_filter=-KernelList/*:CoResident.*:BatchInvariance.*:Constants.*'
}

sanitize() {
  local tests sanitizer
  tests=$(find_program gpu_tests) || exit 2
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  run sanitize-memcheck "${SANITIZE_SECONDS:-240}" 12 "$sanitizer" --tool memcheck --error-exitcode 1 --print-limit 20 \
    "$tests" --small "--gtest_filter=${SANITIZE_FILTER:-KernelList/EveryKernel.IsRight/*}"
}

bench() {
  local suite=$1 name tool
  shift
  tool=$(find_program sluice) || exit 2
  name=bench-$(basename "$suite" | tr -c 'A-Za-z0-9_\n-' '_')
  run "$name" 300 40 "$tool" bench --suite "$suite" --out "$out/$name.json" "$@"
}

planner() {
  local suite=$1 name tool
  shift
  tool=$(find_program sluice) || exit 2
  name=planner-$(basename "$suite" | tr -c 'A-Za-z0-9_\n-' '_')
  run "$name" 300 40 "$tool" bench --planner --suite "$suite" --out "$out/$name.json" "$@"
}

chain() {
  local model=${1:-all} tool
  [[ $# -gt 0 ]] && shift
  tool=$(find_program sluice) || exit 2
  run "chain-$model" 300 40 "$tool" bench --chain "$model" --out "$out/chain-$model.json" "$@"
}

grouped() {
  local set=${1:-all} tool
  [[ $# -gt 0 ]] && shift
  tool=$(find_program sluice) || exit 2
  run grouped 300 130 "$tool" bench --grouped "$set" --out "$out/grouped.json" "$@"
}

# quantize, histogram or attention: each has a suite of tests by its name, and a benchmark.
operation() {
  local name=$1 tests tool
  shift
  tests=$(find_program gpu_tests) || exit 2
  tool=$(find_program sluice) || exit 2
  run "check-$name" 120 12 "$tests" "--gtest_filter=${name^}.*"
  run "bench-$name" 300 60 "$tool" "bench-$name" --out "$out/bench-$name.json" "$@"
}

python_package() {
  local python=${PYTHON:-python3} library tool
  tool=$(find_program sluice) || exit 2
  library=$(find "$build" -name libsluice.so | head -n 1)
  export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH}
  export SLUICE_LIBRARY=$(realpath "$library") SLUICE_EXECUTABLE=$(realpath "$tool")
  run python-tests 540 30 "$python" -m pytest -q "$@"
  run python-overhead 120 30 "$python" examples/python/call_overhead.py
  run python-attention 300 30 "$python" examples/python/decode_attention.py
  run python-experts 120 30 "$python" examples/python/mixture_of_experts.py
  for batch in 1 8 64; do run "python-llama-$batch" 300 20 "$python" examples/python/llama.py --batch "$batch"; done
}

case $command in
  check | sanitize) record_gpu && "$command" ;;
  bench | planner)
    [[ $# -gt 0 ]] || usage
    record_gpu && "$command" "$@"
    ;;
  chain) record_gpu && chain "$@" ;;
  grouped) record_gpu && grouped "$@" ;;
  quantize | histogram | attention) record_gpu && operation "$command" "$@" ;;
  python) record_gpu && python_package "$@" ;;
  all)
    record_gpu
    check
    sanitize
    for suite in square wave splitk llm; do bench "$suite"; done
    ;;
  *) usage ;;
esac

echo
printf '%s\n' "${table[@]}"
exit $failed
