#!/usr/bin/env bash
# Installs the Debian/Ubuntu packages brrr is built from; silent and quick when nothing is missing.
#   tools/install_packages.sh            what a build and its tests need
#   tools/install_packages.sh --checks   also clang-format, clang-tidy and what fuzzers need (large, so only
#                                        on request)
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config
  libfmt-dev           # text formatting: libstdc++ 12 has no std::format
  libcli11-dev         # the command line
  nlohmann-json3-dev   # JSON files
  libhwy-dev           # Highway: SIMD with run-time dispatch
  libpcre2-dev         # PCRE2: the patterns of tokenizers
  libtomlplusplus-dev  # TOML: configuration files of runs
  zlib1g-dev           # zlib: data sets that come packed by gzip
  libgtest-dev libgmock-dev libbenchmark-dev
)
if [[ "${1:-}" == "--checks" ]]; then
  packages+=(clang-format clang-tidy-19)       # clang-tidy 14, the default, cannot parse our C++20
  packages+=(clang-19 libclang-rt-19-dev)      # libFuzzer; the package of clang itself has no runtime
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "brrr: not a Debian or Ubuntu system, so nothing is installed. The build needs: a C++20" >&2
  echo "compiler, CMake 3.25, fmt, CLI11, nlohmann-json, Highway, PCRE2, toml++, zlib, GoogleTest," >&2
  echo "and optionally Google Benchmark. CMake will name whatever it does not find." >&2
  exit 0
fi

# dpkg-query exits with 1 when it does not know a package; the rest of its answer is still good.
# "ii" would miss packages on hold, so only the second letter, the actual state, counts.
# Package names from a multi-arch system come as "name"; ${Package} has no ":amd64".
present=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null |
          awk 'substr($1, 2, 1) == "i" {print $2}' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$present" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  # With a terminal sudo may ask for a password; without one it must work unasked.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    as_root=(sudo)
  else
    echo "brrr: packages are missing and this user cannot install them. Please run:" >&2
    echo "sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

apt() {
  # `env` sets the variable behind sudo, which clears the environment.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 "$@"
}

echo "brrr: installing ${missing[*]}"
# A failed update (one dead mirror among several) may still leave lists good enough to install from.
apt update || echo "brrr: apt-get update failed; trying with the package lists there are" >&2
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  echo "brrr: the packages could not be installed. Please run, and see what it says:" >&2
  echo "sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
