#!/bin/bash
# Everything that a GPU must show, in one run: tests, the sweep, memory and race checks of kernels, benchmarks
# beside PyTorch. Prints a short table last; logs and JSON go to the folder named by --out.
#
#   tools/gpu_check.sh [--bin build/bin] [--out gpu-check] [--only devices,tests,sweep,sanitizer,bench,train,peers]
set -u
bin=build/bin out=gpu-check only=devices,tests,sweep,sanitizer,bench,train,peers
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) echo "gpu_check.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
summary="$out/summary.txt"
: >"$summary"
failed=0

wants() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

# note NAME STATUS WORDS: a line of the table.
note() {
  printf '%-22s %-7s %s\n' "$1" "$2" "$3" >>"$summary"
  [ "$2" = ok ] || [ "$2" = skipped ] || failed=1
}

# step NAME SECONDS COMMAND...: runs it, keeps its output, notes how it ended.
step() {
  local name=$1 limit=$2 begin
  shift 2
  begin=$(date +%s.%N)
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  local status=$? seconds
  seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s", b - a }')
  if [ $status -eq 0 ]; then
    note "$name" ok "$seconds  $(tail -n 1 "$out/$name.log" | cut -c 1-90)"
  else
    note "$name" FAILED "$seconds  exit $status  $(tail -n 1 "$out/$name.log" | cut -c 1-80)"
  fi
}

if wants devices; then step devices 120 "$bin/brrr" devices; fi
if wants tests; then
  step tests 300 "$bin/tests/test_cuda" --gtest_brief=1 --gtest_filter='-AllOps/*'
fi
if wants sweep; then step sweep 400 "$bin/brrr" sweep --device cuda; fi
if wants sanitizer; then
  if command -v compute-sanitizer >/dev/null; then
    # Asking for more memory than there is is an error that the test wants, and the tool reports.
    step memcheck 240 compute-sanitizer --tool memcheck --error-exitcode 9 \
      "$bin/tests/test_cuda" --gtest_brief=1 --gtest_filter='Cuda*:Cases*:-*OutOfMemory*:*ManyElements*'
    step racecheck 240 compute-sanitizer --tool racecheck --error-exitcode 9 \
      "$bin/tests/test_cuda" --gtest_brief=1 --gtest_filter='Cases/*:CudaRuntime.Random*:CudaRows.*ManyRows:CudaRows.Infinities*'
  else
    note sanitizer skipped "compute-sanitizer is not installed"
  fi
fi
if wants bench; then
  step bench_mfu 120 "$bin/brrr" bench mfu
  "$bin/brrr" bench mfu --json >"$out/mfu.json" 2>/dev/null
  step bench_kernels 180 "$bin/brrr" bench kernels --out "$out/kernels.json"
  step bench_cos 60 "$bin/brrr" bench cos --device cuda
  step bench_intensity 60 "$bin/brrr" bench intensity --device cuda
fi
if wants train; then
  step train 120 "$bin/brrr" train --device cuda --steps 50 --out "$out/run"
  step profile_124m 120 "$bin/brrr" profile --model gpt2-124m --batch 64 --seq 1024 --vocab 50304 \
    --precision bf16 --device cuda --no-batch-test
fi
if wants peers; then
  peer=${BRRR_PEER:-../shared/peers/torch_train.py}
  if [ -f "$peer" ] && python3 -c 'import torch' 2>/dev/null; then
    step torch_124m 240 python3 "$peer" --shape gpt2-124m --batch 64 --seq 1024
  else
    note peers skipped "no PyTorch here, or no $peer (set BRRR_PEER)"
  fi
fi

echo
cat "$summary"
exit $failed
