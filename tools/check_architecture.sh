#!/usr/bin/env bash
# Checks that every file that ARCHITECTURE.md names exists, so that its walks can be followed:
#   `src/brrr/x/y.cpp`   as it is
#   `x/y`, `x/y.h`       below src/brrr, with any ending; `x/` a folder
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
missing=0
while read -r name; do
  case "$name" in
    src/*|tests/*|tools/*|docs/*) candidates=("$name") ;;
    *) candidates=("src/brrr/$name" "src/brrr/$name".*) ;;
  esac
  found=no
  for candidate in "${candidates[@]}"; do [[ -e "$candidate" ]] && found=yes; done
  if [[ $found == no ]]; then
    echo "ARCHITECTURE.md names \`$name\`, which is not there"
    missing=$((missing + 1))
  fi
done < <(grep -oE '`[a-z_0-9]+(/[a-zA-Z_0-9.]+)+/?`|`[a-z_]+/`' ARCHITECTURE.md | tr -d '`' | sort -u;
         sed -n '/^```/,/^```/p' ARCHITECTURE.md | grep -oE '\b(graph|compiler|runtime|hardware|cost|plan)/[a-z_0-9]+' | sort -u)
[[ $missing -eq 0 ]] || exit 1
echo "check_architecture: every file that it names is there"
