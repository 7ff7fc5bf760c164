#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: setup.sh demo|test
set -euo pipefail

purpose=${1:-test}
packages=(cmake ninja-build g++ git python3 nlohmann-json3-dev libcli11-dev libfmt-dev libboost-context-dev)
if [ "$purpose" = test ]; then
  packages+=(python3-venv libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev pkg-config spin clang-format-14 clang-tidy-14 chromium)
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is not a Debian system; what is needed, under its Debian names: ${packages[*]}" >&2
  exit 0  # the build says what it misses
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
    echo "setup: missing ${missing[*]}; run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_missing() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" </dev/null
}
# The package lists of a bare system are empty or old.
if ! { "${as_root[@]}" apt-get update </dev/null && install_missing; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get could not install ${missing[*]}; install them by hand and start again" >&2
  exit 1
fi
