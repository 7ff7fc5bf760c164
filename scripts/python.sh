#!/usr/bin/env bash
# The Python package as somebody installs it who has no GPU.
#
#   scripts/python.sh install          a new virtual environment, `pip install .` without CUDA, emulator and tool, torch if it can be had, mypy --strict
#   scripts/python.sh test BUILD_DIR   pytest in it, and again, with the library of BUILD_DIR, the tests that need the emulator
#
# Torch is a download of gigabytes: it is kept in build-python-test/torch, and where it cannot be had within TORCH_SECONDS (150; 0 does not try) its tests
# are left out, and that is said. Reports (JUnit XML) go to build-python-test. scripts/setup.sh installs what building needs.
set -uo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

place=$PWD/build-python-test
venv=$place/venv/bin
torch=$place/torch

quietly() { "$@" >"$place/log" 2>&1 || { tail -n 60 "$place/log" >&2; echo "python.sh: failed: $*" >&2; exit 1; }; }
has_torch() { PYTHONPATH=$torch "$venv/python" -c 'import torch, safetensors' 2>/dev/null; }

get_torch() {
  local seconds=${TORCH_SECONDS:-150} free_gb
  rm -rf "$torch"
  [ "$seconds" -gt 0 ] || return
  free_gb=$(df --output=avail -BG "$place" | tail -n 1 | tr -dc 0-9)
  if [ "$free_gb" -lt 12 ]; then
    echo "$free_gb GB are free in $place, and torch may take 12"
    return
  fi
  timeout "$seconds" "$venv/pip" install --target "$torch" torch safetensors >"$place/log" 2>&1 || rm -rf "$torch"
}

install_package() {
  local start=$SECONDS
  rm -rf "$place/venv" "$place"/*.xml
  mkdir -p "$place"
  quietly python3 -m venv "$place/venv"
  quietly "$venv/pip" install ".[test]" -C cmake.define.SLUICE_CUDA=OFF -C cmake.define.SLUICE_EMULATOR=OFF -C cmake.define.SLUICE_CLI=OFF
  "$venv/python" -c 'import sluice; print("installed sluice", sluice.__version__, "as", sluice._library._path())' || exit 1
  echo "pip install .: $((SECONDS - start)) s"
  has_torch || get_torch
  has_torch || echo "WITHOUT TORCH: it could not be installed within ${TORCH_SECONDS:-150} s; the tests of sluice.torch and sluice.nn are LEFT OUT"
  "$venv/mypy" --cache-dir "$place/mypy"
}

run_tests() {
  local failed=0
  has_torch && export PYTHONPATH=$torch
  export SLUICE_EXECUTABLE=$PWD/$1/cli/sluice
  "$venv/pytest" -q --junit-xml "$place/tests.xml" || failed=1
  SLUICE_LIBRARY=$PWD/$1/src/libsluice.so "$venv/pytest" -q -k emulator --junit-xml "$place/emulator.xml" || failed=1
  return $failed
}

case ${1:-} in
  install) install_package ;;
  test) run_tests "${2:?the folder of a build with the emulator}" ;;
  *) sed -n '2,/^set /p' "$0" | sed -n 's/^# \{0,1\}//p' >&2; exit 2 ;;
esac
