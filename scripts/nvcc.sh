# Sourced. usable_nvcc prints the path of an nvcc that can build Sluice (12.8 or newer), or nothing.
usable_nvcc() {
  local candidate version
  for candidate in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    version=$("$candidate" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    if [ "$(printf '%s\n' 12.8 "$version" | sort -V | head -n 1)" = 12.8 ]; then
      echo "$candidate"
      return
    fi
    echo "$candidate is version $version; the kernels need 12.8 or newer" >&2
  done
}
