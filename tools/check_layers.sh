#!/usr/bin/env bash
# Checks that a folder of src/brrr includes only itself and folders below it in the list, so that
# each folder can be read, tested and changed knowing only what comes before it. Folders below ops must not reach an op
# by its name either: find_op("cast"), op.name == "copy". What they need of ops is in graph/basic_ops.h. Outside of ops and
# autodiff nobody compares the address of an op (op == &cast_op) without a comment that says why, on that line or the one
# before: passes ask the traits of OpDef (role, fold, function), so that an op from outside the tree is treated as brrr's.
#   tools/check_layers.sh [ROOT]        checks ROOT/src/brrr (default: this repository)
#   tools/check_layers.sh --self-test   checks the checker on small trees with planted faults
set -euo pipefail

# From the ground up. A new folder gets its place here (and its paragraph in ARCHITECTURE.md).
layers="base device tensor graph kernels ops autodiff hardware compiler runtime cost backends sweep nn optim io text
        data run infer train plan report cli"

# Prints "file:line: what is wrong" for each fault, and fails when there was one.
check() {
  local root=$1
  [[ -d "$root/src/brrr" ]] || { echo "check_layers: no folder $root/src/brrr" >&2; return 2; }
  # Depth 2 and more: files directly in src/brrr (the umbrella header) may include everything.
  (cd "$root" && find src/brrr -mindepth 2 -type f \
      \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
    xargs -0 -r awk -v layers="$layers" '
      BEGIN { count = split(layers, names, /[ \n]+/); for (i = 1; i <= count; i++) rank[names[i]] = i }

      function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; faults++ }

      FNR == 1 {
        before = ""
        split(FILENAME, parts, "/"); own = parts[3]      # src/brrr/<own>/...
        if (!(own in rank)) fault("folder \"" own "\" has no place in the order; see tools/check_layers.sh")
      }

      /^[ \t]*#[ \t]*include[ \t]*["<]/ {
        path = $0; sub(/^[^"<]*["<]/, "", path); sub(/[">].*/, "", path)
        if (path ~ /^\.\.?\//) fault("\"" path "\": write the whole path, from brrr/")
        if (path !~ /^brrr\//) next
        if (split(path, parts, "/") == 2) {
          # The umbrella header includes every folder, so only the last layer may use it.
          if (own != "cli") fault(own " includes " path ", which includes everything")
        } else if (!(parts[2] in rank)) {
          fault("includes " path ", from a folder with no place in the order")
        } else if ((own in rank) && rank[parts[2]] > rank[own]) {
          fault(own " includes " path ", but " parts[2] " is above " own)
        }
      }

      (own in rank) && rank[own] < rank["ops"] && /find_op\("|(\.|->)name[ ]*[!=]=[ ]*"|"[ ]*[!=]=[ ]*[a-z_.>-]+name([^a-z_]|$)/ {
        fault(own " asks for an op by its name, and ops is above " own "; see graph/basic_ops.h")
      }

      own != "ops" && own != "autodiff" && !/\/\// && before !~ /\/\// &&
      /op[ ]*[!=]=[ ]*&|&[a-zA-Z_:().]*(_op|basic_ops\(\)\.[a-z_]+)[ ]*[!=]=/ {
        fault("compares the address of an op; ask its traits (graph/op_def.h), or say why in a comment beside it")
      }
      { before = $0 }

      END { exit faults > 0 }')
}

self_test() {
  local tree
  tree=$(mktemp -d)
  trap "rm -rf '$tree'" EXIT

  plant() { mkdir -p "$tree/src/brrr/$(dirname "$1")"; printf '%s\n' "${@:2}" >"$tree/src/brrr/$1"; }
  expect_clean() {
    check "$tree" || { echo "self-test: a clean tree was refused ($1)"; exit 1; }
  }
  expect_fault() {  # $1: the exact place, $2: what is planted there
    local found
    found=$(check "$tree") && { echo "self-test: not noticed: $2"; exit 1; }
    grep -q "^$1: " <<<"$found" || { echo "self-test: $2: wrong place: $found"; exit 1; }
  }

  plant base/error.h '#pragma once' '#include <string>'
  plant ops/add.cpp '#include "brrr/ops/add.h"' '#include "brrr/base/error.h"'
  plant brrr.h '#include "brrr/train/trainer.h"'
  expect_clean "downward includes; the umbrella header is exempt"

  plant base/planted.cpp '// a fault on line 2' '#include "brrr/ops/add.h"'
  expect_fault src/brrr/base/planted.cpp:2 "base including ops"
  plant base/planted.cpp '  #  include <brrr/ops/add.h>'
  expect_fault src/brrr/base/planted.cpp:1 "odd spacing and angle brackets"
  plant base/planted.cpp '#include "../ops/add.h"'
  expect_fault src/brrr/base/planted.cpp:1 "a relative path"
  plant base/planted.cpp '#include "brrr/brrr.h"'
  expect_fault src/brrr/base/planted.cpp:1 "the umbrella header"
  rm "$tree/src/brrr/base/planted.cpp"

  plant graph/planted.cpp '// by name' 'call(*find_op("full"));'
  expect_fault src/brrr/graph/planted.cpp:2 "an op looked up by a literal name"
  plant graph/planted.cpp 'if (op.name == "copy") return;'
  expect_fault src/brrr/graph/planted.cpp:1 "an op compared by name"
  plant graph/planted.cpp '' '' 'if (node.op->name != "cast") return;'
  expect_fault src/brrr/graph/planted.cpp:3 "an op compared by name, through a pointer"
  plant graph/planted.cpp 'if ("cast" == node.op->name) return;'
  expect_fault src/brrr/graph/planted.cpp:1 "an op compared by name, the literal first"
  plant graph/planted.cpp 'const OpDef* op = find_op(name);' 'if (op->name == name) return;'
  plant compiler/uses.cpp 'if (node.op->name == "cast") return;'
  expect_clean "names that are data, and names in a folder above ops"
  rm "$tree/src/brrr/graph/planted.cpp" "$tree/src/brrr/compiler/uses.cpp"

  plant compiler/planted.cpp '' 'if (node.op == &cast_op) return;'
  expect_fault src/brrr/compiler/planted.cpp:2 "an op compared by its address"
  plant compiler/planted.cpp 'return part.op!=&copy_op;'
  expect_fault src/brrr/compiler/planted.cpp:1 "an op compared by its address, without spaces"
  plant compiler/planted.cpp '// why' '' 'if (&op == &basic_ops().copy) return;'
  expect_fault src/brrr/compiler/planted.cpp:3 "an op compared by its address, a comment two lines before"
  plant compiler/planted.cpp 'if (&cast_op == node.op) return;'
  expect_fault src/brrr/compiler/planted.cpp:1 "an op compared by its address, the address first"
  plant compiler/planted.cpp '// The op that this pass builds.' 'if (node.op == &cast_op) return;' \
    'if (node.op == &copy_op) return;  // as above' 'make({.op = &cast_op});'
  plant ops/planted.cpp 'if (&op == &cast_op) return;'
  plant autodiff/planted.cpp 'if (record.op == &cast_op) return;'
  expect_clean "comparisons with a reason, in ops and in autodiff; an op that is built"
  rm "$tree/src/brrr/"{compiler,ops,autodiff}/planted.cpp

  plant utils/x.cpp ''
  expect_fault src/brrr/utils/x.cpp:1 "an unknown folder"
  rm -r "$tree/src/brrr/utils"
  expect_clean "after all faults are gone"
  echo "check_layers: self-test passed"
}

if [[ "${1:-}" == "--self-test" ]]; then
  self_test
else
  check "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
  echo "check_layers: every include points down, no op is reached by name from below or compared by its address"
fi
