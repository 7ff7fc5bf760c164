#!/usr/bin/env bash
# Builds Sluice and shows what it does: two matrices are made, their product is planned, explained, simulated, computed and checked.
# On a bare Debian 12 it installs what it needs. With nvcc and a Hopper GPU the kernels are built and used; without, the same kernels run on
# an emulated GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
bash scripts/setup.sh demo
. scripts/nvcc.sh

preset=cpu
if [ -n "$(usable_nvcc)" ] && nvidia-smi -L 2>/dev/null | grep -qE 'H(100|200|20|800)\b|GH200'; then preset=cuda; fi
build=build-demo-$preset
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

echo "== Building the tool (preset $preset; a few minutes the first time)"
mkdir -p "$build"
{ cmake --preset "$preset" -B "$build" -D SLUICE_TESTS=OFF && cmake --build "$build" -j "$(nproc)" --target sluice_cli; } >"$build/build.log" 2>&1 \
  || { grep -vE '^\[[0-9]+/[0-9]+\]|^--' "$build/build.log" | tail -n 60; echo "demo: the build failed, see $build/build.log"; exit 1; }
sluice=$PWD/$build/cli/sluice
out=$PWD/$build/demo
rm -rf "$out"
mkdir -p "$out"

show() { printf '\n$ sluice %s\n' "$*"; "$sluice" "$@"; }

m=320 n=384 k=512
python3 tools/make_matrix.py "$out/A.npy" $m $k --seed 1
python3 tools/make_matrix.py "$out/B.npy" $k $n --seed 2

echo
echo "== Nine tiles on a GPU of four multiprocessors: three waves, and in the last one of four works"
show simulate --device h10 --m 384 --n 384 --k 512 --kernel bf16_rc_coop_128x128x64_c1x1 --svg "$out/nine_tiles.svg"

echo
echo "== What an H200 would do with 4096 x 4096 x 4096, and what it decided against"
show plan --device h200 --m 4096 --n 4096 --k 4096
show explain --device h200 --m 4096 --n 4096 --k 4096 --most 5
"$sluice" simulate --device h200 --m 4096 --n 4096 --k 4096 --svg "$out/h200.svg" >"$out/h200.txt"

echo
cd "$out"
if [ "$preset" = cuda ]; then
  echo "== A product, computed on the GPU and checked element by element"
  show gemm A.npy B.npy -o D.npy --check
else
  echo "== No Hopper GPU and nvcc here: the kernel runs on an emulated GPU, with one cluster resident and copies as late as may be, and is checked"
  show gemm A.npy B.npy -o D.npy --check --backend emulator --seed 1 --asynchrony lazy --resident 1
  echo
  echo "== The same product by plain loops, by the plan's own division of work"
  show gemm A.npy B.npy --check --backend reference
fi

for file in A.npy B.npy D.npy nine_tiles.svg h200.svg; do [ -s "$out/$file" ] || { echo "demo: $out/$file is missing"; exit 1; }; done
echo
echo "Planned, explained, simulated, multiplied, checked: D.npy ($m x $n) and the timelines nine_tiles.svg and h200.svg are in"
echo "$out"
