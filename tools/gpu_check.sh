#!/bin/bash
# Everything that a GPU must show, in one run: tests, the sweep, memory and race checks of kernels, benchmarks
# beside PyTorch, predictions beside steps, losses beside the cpu's, the same bits twice. Prints a short table last;
# logs and JSON go to the folder named by --out.
#
#   tools/gpu_check.sh [--bin build/bin] [--out gpu-check] [--text FILE] [--tokenizer T] [--only SECTION,...]
#
# Sections: devices, tests, sweep, sanitizer, bench, train, peers, verify, parity, bits, start, ladder. Runs learn
# from --text with --tokenizer (the embedded stories and their own by default).
set -u
bin=build/bin out=gpu-check text="" tokenizer=auto
only=devices,tests,sweep,sanitizer,bench,train,peers,verify,parity,bits,start,ladder
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --text) text=$2; shift 2 ;;
    --tokenizer) tokenizer=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) echo "gpu_check.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
summary="$out/summary.txt"
: >"$summary"

# Words of `brrr train` for GPT-2 124M with nothing between its steps.
words=(train)
[ -n "$text" ] && words+=("$text")
words+=(--tokenizer "$tokenizer" --model gpt2-124m --eval-every 100000 --eval-batches 1 --sample-every 0
        --sample-tokens 1 --json)
batch_words="--batch 4 --context 64"
# train FOLDER WORDS...: a short run of these sizes that leaves losses and a checkpoint.
train() {
  local folder=$1
  shift
  # shellcheck disable=SC2086
  "$bin/brrr" "${words[@]}" $batch_words --keep 3 --out "$folder" "$@"
}

wants() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

# note NAME STATUS WORDS: a line of the table.
note() {
  printf '%-22s %-7s %s\n' "$1" "$2" "$3" >>"$summary"
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
  # Side by side: most of their time is the cpu's, which computes what the GPU's results are held against.
  shards=4
  for shard in $(seq $shards); do
    step "tests_${shard}_of_$shards" 400 env GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$((shard - 1)) \
      "$bin/tests/test_cuda" --gtest_brief=1 --gtest_filter='-AllOps/*' &
  done
  wait
  # Without a compiler for generated kernels the built-in ones serve, and it says so.
  step without_nvrtc 120 env BRRR_NVRTC=off "$bin/brrr" train --device cuda --steps 5 --out "$out/without_nvrtc"
  grep -q 'built-in ones serve' "$out/without_nvrtc.log" ||
    note without_nvrtc_words FAILED "nothing was said of built-in kernels"
fi
if wants sweep; then step sweep 400 "$bin/brrr" sweep --device cuda; fi
# Memory and races of kernels, side by side: a tool that watches every access slows a kernel tens of times, and mostly
# waits for the host. Every op is under memcheck. Under racecheck are those whose threads meet in shared memory in kernels
# of ours: products and sorts are the libraries', and attention has its own tests.
if wants sanitizer; then
  if command -v compute-sanitizer >/dev/null; then
    checked="compute-sanitizer --error-exitcode 9 --tool"
    attention='Cases/*'
    rows='CudaRows.NormsAdd*:CudaRows.Infinities*:CudaFp8.Quantizes*:CudaRuntime.Random*'
    longer='CudaDraws.CopeWithTies*:CudaFp8*:CudaRows.GradientsOfEmbeddings:CudaRows.NormsWith*:CudaGemm*:CudaCompiled.ARepeat*:CudaGroup.SumsOf*'
    meeting=$("$bin/brrr" ops | awk '$2 ~ /^(reduce|gather|other)$/ && $1 !~ /^(sort|topk)$/ { print $1 }')
    # shellcheck disable=SC2086
    {
      step memcheck_sweep 550 $checked memcheck "$bin/brrr" sweep --device cuda --verbose &
      step memcheck_kernels 550 $checked memcheck "$bin/tests/test_cuda" --gtest_filter="$attention:$rows:$longer" &
      step racecheck_attention 550 $checked racecheck "$bin/tests/test_cuda" --gtest_filter="$attention" &
      step racecheck_rows 550 $checked racecheck "$bin/tests/test_cuda" --gtest_filter="$rows" &
      step racecheck_sweep 550 $checked racecheck "$bin/brrr" sweep --device cuda --verbose $meeting &
      wait
    }
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
  # An arena of 15,700 MiB: with its states 124M stays below 60 % of what PyTorch takes (28.5 GiB).
  for sizes in "gpt2-124m 64 1024 15700" "gpt2-350m 32 1024" "gpt2-char 12 256"; do
    read -r model batch seq budget <<<"$sizes"
    # shellcheck disable=SC2086
    step "profile_$model" 120 "$bin/brrr" profile --model "$model" --batch "$batch" --seq "$seq" \
      --precision bf16 ${budget:+--memory-budget $budget} --device cuda --no-batch-test --steps 20
    note "step_$model" ok "$(grep -m 1 '^step' "$out/profile_$model.log")"
  done
fi
if wants peers; then
  peer=${BRRR_PEER:-../shared/peers/torch_train.py}
  if [ -f "$peer" ] && python3 -c 'import torch' 2>/dev/null; then
    step torch_124m 240 python3 "$peer" --shape gpt2-124m --batch 64 --seq 1024
    step torch_350m 240 python3 "$peer" --shape gpt2-350m --batch 32 --seq 1024
    step torch_char 240 python3 "$peer" --shape char --batch 12 --seq 256 --mode reduce-overhead
    for shape in 124m 350m char; do
      note "torch_$shape" ok "$(grep -o '"ms": [0-9.]*\|"peak_bytes": [0-9]*' "$out/torch_$shape.log" | tr '\n' ' ')"
    done
  else
    note peers skipped "no PyTorch here, or no $peer (set BRRR_PEER)"
  fi
fi

# Predicted beside measured: memory to the byte, time within a tenth.
if wants verify; then
  for sizes in "gpt2-124m 64 1024" "gpt2-350m 32 1024" "gpt2-1558m 8 1024" "qwen2.5-0.5b 8 1024"; do
    read -r model batch seq <<<"$sizes"
    step "verify_$model" 180 "$bin/brrr" napkin verify --model "$model" --batch "$batch" --seq "$seq" \
      --precision bf16 --recompute selective --device cuda --steps 5 --rows 8
  done
fi
# The same weights and batches: f32 on both devices, and bf16 beside f32.
if wants parity; then
  # A gentle start: at the rate that `brrr train` picks, runs of the first steps part for any reason. At 3e-4 after 50 steps
  # one step in 300 had a spike (its gradient three times as long as those around it), which no two precisions share.
  gentle="--lr 1e-4 --save-every 100000"
  f32="--precision f32 --matmul-precision ieee $gentle"
  rm -rf "$out"/parity_*
  # shellcheck disable=SC2086
  { train "$out/parity_cpu" --device cpu --steps 50 --warmup 25 $f32 &&
    train "$out/parity_gpu" --device cuda --steps 50 --warmup 25 $f32; } >"$out/parity_runs.log" 2>&1
  step parity_f32_50 60 "$bin/brrr" compare "$out/parity_cpu" "$out/parity_gpu" --within 1e-4
  # Of 256 tokens a loss is a mean of few: rounding alone then moves it by a hundredth.
  batch_words="--batch 16 --context 256"
  # shellcheck disable=SC2086
  { train "$out/parity_f32" --device cuda --steps 300 --warmup 100 $f32 &&
    train "$out/parity_bf16" --device cuda --steps 300 --warmup 100 --precision bf16 $gentle; } >>"$out/parity_runs.log" 2>&1
  step parity_bf16_300 60 "$bin/brrr" compare "$out/parity_f32" "$out/parity_bf16" --within 0.01
  batch_words="--batch 4 --context 64"
fi
# The same bits twice, from two cold caches with the same choices, and through a pause.
if wants bits; then
  rm -rf "$out"/bits_* "$out"/cache_*
  {
    train "$out/bits_once" --device cuda --precision bf16 --save-every 10 --steps 20
    train "$out/bits_again" --device cuda --precision bf16 --save-every 10 --steps 20
    XDG_CACHE_HOME="$out/cache_a" train "$out/bits_cold_a" --device cuda --precision bf16 --save-every 10 --steps 20
    XDG_CACHE_HOME="$out/cache_b" train "$out/bits_cold_b" --device cuda --precision bf16 --save-every 10 --steps 20 \
      --algorithms "$out/bits_cold_a/algorithms.txt"
    train "$out/bits_paused" --device cuda --precision bf16 --save-every 10 --steps 20
    rm -rf "$out/bits_paused/checkpoints/step-00000020"  # it goes on from step 10
    "$bin/brrr" train --resume --device cuda --json --out "$out/bits_paused"
  } >"$out/bits_runs.log" 2>&1
  step bits_twice 60 "$bin/brrr" compare "$out/bits_once" "$out/bits_again" --within 0
  step bits_cold 60 "$bin/brrr" compare "$out/bits_cold_a" "$out/bits_cold_b" --within 0
  step bits_resumed 60 "$bin/brrr" compare "$out/bits_once" "$out/bits_paused" --within 0
  rm -rf "$out"/bits_*/checkpoints "$out"/parity_*/checkpoints "$out"/cache_*
fi
# From the start of the process to the end of the tenth step, with what the last run left in the caches.
if wants start; then
  rm -rf "$out"/start_*
  large=("$bin/brrr" "${words[@]}" --batch 64 --context 1024 --save-every 100000 --device cuda --precision bf16)
  "${large[@]}" --steps 2 --out "$out/start_cold" >"$out/start_runs.log" 2>&1
  step start_to_10th_step 60 "${large[@]}" --steps 10 --out "$out/start_warm"
  rm -rf "$out"/start_*/checkpoints
fi
if wants ladder; then step ladder 180 "$bin/brrr" ladder; fi

# The table as JSON: [{"name": ..., "status": ..., "words": ...}, ...].
awk 'function quoted(text) { gsub(/[[:cntrl:]]/, " ", text); gsub(/\\/, "/", text); gsub(/"/, "\\\"", text)
                             return "\"" text "\"" }
  { name = $1; status = $2; words = $0; sub(/^[^ ]+ +[^ ]+ */, "", words)
    printf "%s{\"name\": %s, \"status\": %s, \"words\": %s}", NR == 1 ? "[" : ",\n ", quoted(name), quoted(status), quoted(words) }
  END { print NR == 0 ? "[]" : "]" }' "$summary" >"$out/summary.json"

echo
cat "$summary"
! grep -q '^[^ ]* *FAILED' "$summary"
