# Sourced by quickstart and tests/run: installs the Debian packages that are missing.

# What building takes; kept beside CONTRIBUTING.md's list.
build_packages=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev libsimdjson-dev libzstd-dev zlib1g-dev libdw-dev libre2-dev libyaml-cpp-dev)

# install_packages NAME...: nothing to do, and no network needed, where all are there. Elsewhere than on Debian and its
# descendants it does nothing: CMake then says what it does not find.
install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "missing packages: ${missing[*]}; install them as root" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}" >&2
  # The lists may be stale or absent in a fresh container; a failed update is not the end if they are good enough.
  "${as_root[@]}" apt-get update -q >&2 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}
