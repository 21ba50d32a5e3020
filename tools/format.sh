#!/usr/bin/env bash
# Formats every C++ and CUDA file of the tree with clang-format.
#   tools/format.sh           rewrites files in place
#   tools/format.sh --check   changes nothing; shows what would change and fails if anything would
# CLANG_FORMAT names another binary (CI and Debian 12 use version 14).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

clang_format=${CLANG_FORMAT:-clang-format}
command -v "$clang_format" >/dev/null || {
  echo "format: $clang_format not found; run tools/install_packages.sh --checks" >&2
  exit 1
}

mode=(-i)
[[ "${1:-}" == "--check" ]] && mode=(--dry-run --Werror)

# Tracked files, and new ones that are not ignored; a file deleted but not yet committed is skipped.
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' |
  while IFS= read -r -d '' file; do [[ -f "$file" ]] && printf '%s\0' "$file"; done |
  xargs -0 -r "$clang_format" --style=file "${mode[@]}"
