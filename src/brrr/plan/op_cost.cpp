#include "brrr/plan/op_cost.h"

#include <algorithm>

#include "brrr/base/join_names.h"
#include "brrr/graph/call.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/norm/rms_norm.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/optim/registry.h"
#include "brrr/runtime/stages.h"

namespace brrr::plan {
namespace {

constexpr OpInfo kOps[] = {{"matmul", "M N K", 3, 3},
                           {"attention", "BATCH HEADS SEQ HEAD_DIM [KEYS]", 4, 5},
                           {"swiglu", "ROWS WIDTH HIDDEN", 3, 3},
                           {"layer_norm", "ROWS COLUMNS", 2, 2},
                           {"rms_norm", "ROWS COLUMNS", 2, 2},
                           {"softmax", "ROWS COLUMNS", 2, 2},
                           {"gelu", "ELEMENTS", 1, 1},
                           {"silu", "ELEMENTS", 1, 1},
                           {"add", "ELEMENTS", 1, 1},
                           {"copy", "ELEMENTS", 1, 1},
                           {"adamw", "PARAMETERS", 1, 1}};

const OpInfo& find_info(std::string_view name) {
  for (const OpInfo& op : kOps) {
    if (op.name == name) return op;
  }
  fail("napkin op: there is no \"", name, "\"; use one of ", join_names(kOps, &OpInfo::name));
}

// Scores and values over the pairs that are seen; q, k, v and the result once. The sums of exponentials that the op
// keeps for a backward part, one f32 a query, are left out: they are no part of attention itself.
Cost attention_cost_of(std::span<const int64_t> n, DType dtype, const OpSettings& settings) {
  const int64_t keys = n.size() > 4 ? n[4] : n[2];
  const auto of = [&](int64_t length) {
    return empty({n[0], n[1], length, n[3]}, dtype, Device::null());
  };
  const Tensor k = of(keys);
  CostCounter counter;
  attention(of(n[2]), k, k, {.causal = !settings.full_square});
  Cost cost = counter.total();
  cost.bytes_written -= storage_bytes(DType::f32, n[0] * n[1] * n[2]);
  return cost;
}

// Y = (silu(X Wg) * (X Wu)) Wd: three matmuls by their own counts, where X is read once for two of them and of the two
// halves only their product goes to memory.
Cost swiglu_cost_of(int64_t rows, int64_t width, int64_t hidden, DType dtype) {
  const auto of = [&](int64_t m, int64_t n) { return empty({m, n}, dtype, Device::null()); };
  const Tensor x = of(rows, width), h = of(rows, hidden);
  CostCounter counter;
  matmul(x, of(width, hidden)), matmul(x, of(width, hidden)), matmul(h, of(hidden, width));
  Cost cost = counter.total();
  cost.bytes_read -= x.bytes().value();
  cost.bytes_written -= h.bytes().value();
  return cost;
}

// The kernels of AdamW's update of one matrix with so many elements.
Cost adamw_kernels_of(int64_t elements) {
  const TensorType type{.shape = {elements, 1}, .dtype = DType::f32};
  const auto optimizer =
      make_optimizer("adamw", {{"h.0.weight", empty(type.shape, type.dtype, Device::null())}});
  graph::Tracer tracer;
  const Tensor gradient = tracer.add_input(type, Device::null(), "gradient");
  optimizer->update({gradient}, 1e-4);
  Cost cost;
  for (const compiler::Kernel& kernel :
       runtime::plan_program(tracer.finish({}), {.device = Device::null()}).kernels.kernels)
    cost += kernel.cost;
  return cost;
}

// Less what does not grow with the parameters: the number of the step, and what follows from it.
Cost adamw_cost_of(int64_t parameters) {
  constexpr int64_t kFew = 1024;
  const Cost few = adamw_kernels_of(kFew), twice = adamw_kernels_of(2 * kFew);
  Cost cost = adamw_kernels_of(parameters);
  cost.flops -= 2 * few.flops - twice.flops;
  cost.bytes_read -= 2 * few.bytes_read - twice.bytes_read;
  cost.bytes_written -= 2 * few.bytes_written - twice.bytes_written;
  return cost;
}

// What the op's own rule counts, without memory.
Cost cost_on_null(std::string_view op, std::span<const int64_t> n, DType dtype,
                  const OpSettings& settings) {
  const auto make = [&](const Shape& shape, DType type) {
    return empty(shape, type, Device::null());
  };
  const auto of = [&](const Shape& shape) { return make(shape, dtype); };
  NoGrad forward_only;
  if (op == "adamw") return adamw_cost_of(n[0]);
  if (op == "copy") {
    const int64_t bytes = storage_bytes(dtype, n[0]);
    return {.flops = 0, .bytes_read = bytes, .bytes_written = bytes};
  }
  if (op == "swiglu") return swiglu_cost_of(n[0], n[1], n[2], dtype);
  if (op == "attention") return attention_cost_of(n, dtype, settings);
  CostCounter counter;
  if (op == "matmul") matmul(of({n[0], n[2]}), of({n[2], n[1]}));
  if (op == "layer_norm")
    layer_norm(of({n[0], n[1]}), make({n[1]}, DType::f32), make({n[1]}, DType::f32));
  if (op == "rms_norm") rms_norm(of({n[0], n[1]}), make({n[1]}, DType::f32));
  if (op == "softmax") softmax(of({n[0], n[1]}));
  if (op == "gelu") gelu(of({n[0]}));
  if (op == "silu") silu(of({n[0]}));
  if (op == "add") of({n[0]}) + of({n[0]});
  return counter.total();
}

// What was counted, and what the same takes in separate ops.
void describe_counts(std::span<const int64_t> n, DType dtype, const OpSettings& settings,
                     OpAnswer& a) {
  a.flops_how = "the op's own count";
  a.bytes_how = "every operand once";
  if (a.op == "attention") {
    a.flops_how = settings.full_square
                      ? "4 B S T D: every query sees every key"
                      : "4 D for every pair that a causal mask leaves; --full: the whole square";
    a.bytes_how = "q, k, v and the result once";
  }
  if (a.op == "adamw") {
    a.flops_how = "the kernels of AdamW's update";
    a.bytes_how = "p, g, m and v read, p, m and v written, in f32";
  }
  if (a.op == "swiglu") {
    a.flops_how = "6 B T D F: three products";
    a.bytes_how = "X, three weights, hidden values there and back, Y";
  }
  if (a.op == "softmax") {
    const int64_t rows = n[0], all = n[0] * n[1];
    a.naive_bytes = static_cast<double>(storage_bytes(dtype, 5 * all + rows) +
                                        storage_bytes(dtype, 3 * all + 2 * rows));
    a.naive_how =
        "maximum, difference, exponential, sum, quotient: 5 M N + M read, 3 M N + 2 M "
        "written";
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::span<const OpInfo> napkin_ops() { return kOps; }

Quantisation quantise(int64_t m, int64_t n, const hardware::GpuSpec& gpu) {
  // Large tiles from Hopper on, whose matrix units take 64 x 256 at a time.
  const bool is_large =
      gpu.multiprocessors >= 114 && gpu.find(hardware::Arithmetic::fp8) != nullptr;
  Quantisation q{.tile_rows = 128, .tile_columns = is_large ? 256 : 128};
  const int64_t units = std::max(1, gpu.multiprocessors);
  q.tiles = ceil_div(m, q.tile_rows) * ceil_div(n, q.tile_columns);
  q.waves = ceil_div(q.tiles, units);
  const double useful = static_cast<double>(m) * static_cast<double>(n);
  const double spent =
      static_cast<double>(q.waves * units) * static_cast<double>(q.tile_rows * q.tile_columns);
  q.efficiency = gpu.multiprocessors > 0 ? useful / spent : 1;
  return q;
}

OpAnswer op_answer(std::string_view op, std::span<const int64_t> sizes, DType dtype,
                   const hardware::GpuSpec& gpu, const OpSettings& settings) {
  const OpInfo& info = find_info(op);
  check(!settings.full_square || op == "attention", "napkin op ", op,
        ": --full is the whole square of attention, which this op has none of");
  check(static_cast<int>(sizes.size()) >= info.least && static_cast<int>(sizes.size()) <= info.most,
        "napkin op ", op, " takes ", info.sizes, ", not ", sizes.size(), " sizes");
  double elements = 1;
  for (int64_t size : sizes) {
    check(size >= 1, "napkin op ", op, ": a size of ", size, " is empty; use at least 1");
    elements *= static_cast<double>(size);
  }
  if (op == "attention" && sizes.size() == 4) elements *= static_cast<double>(sizes[2]);  // keys
  check(elements < 1e18, "napkin op ", op, ": sizes of ", elements, " together are beyond reason");
  const Cost cost = cost_on_null(op, sizes, dtype, settings);
  const bool is_product = op == "matmul" || op == "attention" || op == "swiglu";
  const hardware::Arithmetic arithmetic = is_product || !gpu.find(hardware::Arithmetic::fp32)
                                              ? hardware::arithmetic_of(dtype)
                                              : hardware::Arithmetic::fp32;
  OpAnswer a{.op = std::string(op), .arithmetic = std::string(hardware::to_text(arithmetic))};
  describe_counts(sizes, dtype, settings, a);
  const double peak = gpu.peak(arithmetic).dense.value();
  a.flops = static_cast<double>(cost.flops);
  a.bytes = static_cast<double>(cost.bytes_read + cost.bytes_written);
  a.intensity = a.flops / a.bytes;
  a.ridge = peak / gpu.bandwidth.value();
  a.compute_seconds = a.flops / peak;
  a.memory_seconds = a.bytes / gpu.bandwidth.value();
  a.floor_seconds = std::max(a.compute_seconds, a.memory_seconds);
  a.regime = a.compute_seconds > a.memory_seconds ? "compute" : "memory";
  if (op == "matmul") a.quantisation = quantise(sizes[0], sizes[1], gpu);
  return a;
}

}  // namespace brrr::plan
