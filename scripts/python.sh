#!/usr/bin/env bash
# The Python package as somebody installs it who has no GPU.
#
#   scripts/python.sh torch            torch, if it can be had within TORCH_SECONDS (900; 0 does not try): a download that may run beside other work
#   scripts/python.sh install          a new virtual environment, `pip install .` without CUDA, emulator and tool, mypy --strict
#   scripts/python.sh test BUILD_DIR   pytest in it, and again, with the library of BUILD_DIR, the tests that need the emulator
#
# Torch takes gigabytes: it is kept in build-python-test/torch, and where there is none its tests are left out, and that is said. Reports (JUnit
# XML) go to build-python-test. scripts/setup.sh installs what building needs.
set -uo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

place=$PWD/build-python-test
venv=$place/venv/bin
torch=$place/torch

quietly() { "$@" >"$place/log" 2>&1 || { tail -n 60 "$place/log" >&2; echo "python.sh: failed: $*" >&2; exit 1; }; }
has_torch() { PYTHONPATH=$torch "${1:-$venv/python}" -c 'import torch, safetensors' 2>/dev/null; }

get_torch() {
  local seconds=${TORCH_SECONDS:-900} free_gb
  mkdir -p "$place"
  has_torch python3 && return
  rm -rf "$torch" "$place/pip"
  [ "$seconds" -gt 0 ] || return 0
  free_gb=$(df --output=avail -BG "$place" | tail -n 1 | tr -dc 0-9)
  if [ "$free_gb" -lt 12 ]; then
    echo "$free_gb GB are free in $place, and torch may take 12"
    return
  fi
  { python3 -m venv "$place/pip" && timeout "$seconds" "$place/pip/bin/pip" install --target "$torch" torch safetensors; } >"$place/torch.log" 2>&1 || rm -rf "$torch"
}

install_package() {
  local start=$SECONDS
  rm -rf "$place/venv" "$place"/*.xml
  mkdir -p "$place"
  quietly python3 -m venv "$place/venv"
  quietly "$venv/pip" install ".[test]" -C cmake.define.SLUICE_CUDA=OFF -C cmake.define.SLUICE_EMULATOR=OFF -C cmake.define.SLUICE_CLI=OFF
  "$venv/python" -c 'import sluice; print("installed sluice", sluice.__version__, "as", sluice._library._path())' || exit 1
  echo "pip install .: $((SECONDS - start)) s"
  "$venv/mypy" --cache-dir "$place/mypy"
}

run_tests() {
  local failed=0
  if has_torch; then export PYTHONPATH=$torch; else echo "WITHOUT TORCH (scripts/python.sh torch): the tests of sluice.torch and sluice.nn are LEFT OUT"; fi
  export SLUICE_EXECUTABLE=$PWD/$1/cli/sluice
  "$venv/pytest" -q --junit-xml "$place/tests.xml" || failed=1
  SLUICE_LIBRARY=$PWD/$1/src/libsluice.so "$venv/pytest" -q -k emulator --junit-xml "$place/emulator.xml" || failed=1
  return $failed
}

case ${1:-} in
  torch) get_torch ;;
  install) install_package ;;
  test) run_tests "${2:?the folder of a build with the emulator}" ;;
  *) sed -n '2,/^set /p' "$0" | sed -n 's/^# \{0,1\}//p' >&2; exit 2 ;;
esac
