#include "brrr/plan/inference.h"

#include <algorithm>
#include <cmath>

#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/conventions.h"
#include "brrr/plan/gpu_rates.h"

namespace brrr::plan {
namespace {

void check_question(const InferQuestion& q) {
  check(q.count >= 1, q.count, " devices make no sense; use at least 1");
  check(q.batch >= 1 && q.batch <= 1'000'000, "a batch of ", q.batch,
        " makes no sense; use 1 to 1,000,000");
  check(q.context >= 1 && q.context <= 100'000'000, "a context of ", q.context,
        " tokens makes no sense; use 1 to 100,000,000");
  if (const int64_t positions = shape_of(q.model).learned_positions; positions > 0)
    check(q.context <= positions, "a context of ", q.context, " tokens is longer than the ",
          positions, " positions that the model has a table of; use fewer tokens");
  check(q.weight_bytes > 0 && q.kv_bytes > 0, "bytes of weights and caches must be positive");
}

// Experts of one layer that a batch touches when choices are even.
double touched_share(const ModelConfig& model, int64_t batch) {
  const ModelShape shape = shape_of(model);
  if (shape.experts == 0) return 1;
  const double missed = 1 - static_cast<double>(shape.top_k) / static_cast<double>(shape.experts);
  return 1 - std::pow(missed, static_cast<double>(batch));
}

// The mean over layers, whose windows may differ.
int64_t cached_tokens(const InferQuestion& q) {
  const ModelShape shape = shape_of(q.model);
  if (shape.windows.empty()) return q.context;
  int64_t sum = 0;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const int64_t window = shape.windows[static_cast<size_t>(layer % shape.period())];
    sum += window > 0 ? std::min(window, q.context) : q.context;
  }
  return sum / shape.layers;
}

// Devices that tensor parallelism shares a cache out over.
int64_t kv_devices(const InferQuestion& q) {
  const ModelShape shape = shape_of(q.model);
  return std::min(q.count, shape.latent ? 1 : shape.kv_heads);
}

// The wanted arithmetic where the device has it, else that of 16 bits.
const hardware::PeakRate& peak_for(const hardware::GpuSpec& gpu, hardware::Arithmetic wanted) {
  for (hardware::Arithmetic arithmetic : {wanted, hardware::Arithmetic::bf16}) {
    if (const hardware::PeakRate* peak = gpu.find(arithmetic)) return *peak;
  }
  return gpu.peak(hardware::Arithmetic::fp16);
}

}  // namespace

hardware::Arithmetic product_arithmetic(std::string_view format) {
  if (format == "fp8") return hardware::Arithmetic::fp8;
  return format == "int8" ? hardware::Arithmetic::int8 : hardware::Arithmetic::bf16;
}

double weight_bytes_of(std::string_view format) {
  struct Row {
    std::string_view name;
    double bytes;
  };
  // Groups of 32 with a scale and a zero of 16 bits each: 4 bytes more for 32 elements.
  constexpr Row kRows[] = {{"f32", 4}, {"bf16", 2}, {"f16", 2},
                           {"fp8", 1}, {"int8", 1}, {"int4", 0.625}};
  for (const Row& row : kRows) {
    if (row.name == format) return row.bytes;
  }
  fail("there is no format \"", format, "\" of weights; use f32, bf16, f16, fp8, int8 or int4");
}

double kv_elements_per_token(const ModelConfig& model) {
  const ModelShape shape = shape_of(model);
  check(shape.heads > 0, "a recurrent model keeps a state of fixed size and no cache");
  return static_cast<double>(shape.layers) * shape.cache_elements;
}

InferAnswer answer(const InferQuestion& q) {
  check_question(q);
  const hardware::GpuSpec& gpu = hardware::find_gpu(q.gpu);
  const bool has_bf16 = gpu.find(hardware::Arithmetic::bf16) != nullptr;
  const StepCost cost = model_cost(q.model, {.seq = q.context, .monitored = false},
                                   gpu_rates(gpu, has_bf16 ? compiler::Precision::bf16_mixed
                                                           : compiler::Precision::f16_mixed))
                            .total();
  const FlopFacts facts = flop_facts(q.model, cost, q.context);
  const auto n = static_cast<double>(q.count), b = static_cast<double>(q.batch),
             t = static_cast<double>(q.context);
  InferAnswer a;
  const hardware::PeakRate &products = peak_for(gpu, q.products),
                           &attention = peak_for(gpu, q.attention);
  a.products = products.arithmetic, a.products_peak = products.dense.value();
  a.attention = attention.arithmetic, a.attention_peak = attention.dense.value();
  const auto at_peak = [&](double product_flops, double attention_flops) {
    return (product_flops / a.products_peak + attention_flops / a.attention_peak) / n;
  };
  a.cached_tokens = cached_tokens(q);
  const auto kept = static_cast<double>(a.cached_tokens);
  a.params = cost.parameters();
  a.active_params = facts.parameters;
  a.weight_bytes = a.params * q.weight_bytes;
  // Where the head is the table, the table is read; else the input table is only looked up.
  const bool is_tied = cost.head_table < 0.5 * cost.embedding;
  const double looked_up = q.whole_table ? 0 : is_tied ? cost.positions : cost.embedding;
  const double experts = cost.experts * touched_share(q.model, q.batch);
  a.read_elements = a.params - looked_up;
  a.touched_bytes = (a.read_elements - cost.experts + experts) * q.weight_bytes;
  a.kv_bytes_per_token = kv_elements_per_token(q.model) * q.kv_bytes;
  a.kv_bytes_per_sequence = a.kv_bytes_per_token * kept;
  a.kv_bytes = a.kv_bytes_per_sequence * b;
  a.kv_devices = kv_devices(q);
  const double copies = n / static_cast<double>(a.kv_devices);
  a.kv_device_bytes = a.kv_bytes * copies / n;
  a.memory_bytes = a.weight_bytes + a.kv_bytes * copies;
  const double room = n * static_cast<double>(gpu.memory.value());
  a.fits = a.memory_bytes <= room;
  a.largest_batch = static_cast<int64_t>(
      std::max(0.0, std::floor((room - a.weight_bytes) / (a.kv_bytes_per_sequence * copies))));
  a.prefill_seconds = b * t * at_peak(2 * facts.products, facts.attention);
  a.decode_bandwidth_seconds = (a.touched_bytes / n + a.kv_device_bytes) / gpu.bandwidth.value();
  // A new token looks at all that is kept: the whole context is twice the mean over a causal prompt.
  a.decode_compute_seconds = b * at_peak(2 * facts.products, facts.attention_full * kept / t);
  a.decode_seconds = std::max(a.decode_bandwidth_seconds, a.decode_compute_seconds);
  a.tokens_per_second = b / a.decode_seconds;
  a.binding = !a.fits ? "memory: weights and caches do not fit"
              : a.decode_bandwidth_seconds >= a.decode_compute_seconds ? "memory bandwidth"
                                                                       : "compute";
  return a;
}

std::optional<InferPrediction> predict(const InferQuestion& q) {
  check_question(q);
  const hardware::GpuSpec& gpu = hardware::find_gpu(q.gpu);
  const compiler::Precision precision = gpu.find(hardware::Arithmetic::bf16)
                                            ? compiler::Precision::bf16_mixed
                                            : compiler::Precision::f16_mixed;
  const hardware::Rates rates = gpu_rates(gpu, precision);
  const ModelShape shape = shape_of(q.model);
  if (!splits_by(q.model, q.count)) return std::nullopt;
  const ModelConfig shard = tensor_shard(q.model, q.count);
  constexpr double kFarAway[] = {1e12};
  const double bandwidth = rates.grid("bandwidth").at(kFarAway);
  const auto reduces = [&](int64_t tokens) {
    if (q.count == 1) return 0.0;
    const double bytes = static_cast<double>(q.batch * tokens * shape.width) * 2;
    return 2 * static_cast<double>(shape.layers) * node_reduce_seconds(gpu, q.count, bytes);
  };
  const auto seconds = [&](int64_t tokens) {
    const StepCost cost =
        model_cost(shard,
                   {.batch = q.batch, .seq = tokens, .precision = precision, .monitored = false},
                   rates)
            .total();
    return cost.forward_seconds + reduces(tokens);
  };
  const InferAnswer bounds = answer(q);
  const auto n = static_cast<double>(q.count);
  // The graph reads all weights, in 16 bits. Narrower ones save bytes, and so do experts that no token chose.
  const double saved = (2 * bounds.read_elements - bounds.touched_bytes) / n / bandwidth;
  return InferPrediction{.prefill_seconds = seconds(q.context),
                         .decode_seconds = seconds(1) - saved + bounds.kv_device_bytes / bandwidth,
                         .prefill_reduce_seconds = reduces(q.context),
                         .decode_reduce_seconds = reduces(1)};
}

}  // namespace brrr::plan
