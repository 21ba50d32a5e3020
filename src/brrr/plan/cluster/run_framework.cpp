// What PyTorch does beside the kernels of the model's graph. Counted, not fitted: bytes through memory at the rate
// of copies, and ops that a host has to launch.
//
//   loss      a logit, autocast: cast to f32 2 + 4, log-softmax 4 + 4, gradient of the choice 4 (zeros, then one place a
//             row), log-softmax backward 4 + 4 + 4, cast back 4 + 2: 36 bytes; in 16 bits throughout 2 + 2, 2,
//             2 + 2 + 2: 12. The graph has 6 of them: cross-entropy reads a logit, and backward reads and writes it
//             What lies in memory of a logit is most while log-softmax runs backward: the logits that the caller
//             holds 2, log-softmax 4, its gradient 4 and that of the f32 logits 4, 14 bytes; 8 in 16 bits throughout,
//             16 in f32. The f32 copy itself is gone by then: log-softmax keeps its result and not its operand. These
//             are the logits of torchtitan's four memories (published_memory.cpp)
//   casts     fp8, where ops run one by one: Transformer Engine casts a tensor and its transpose in one kernel,
//             2 + 1 + 1 bytes per element, operands in the forward part and gradients in the backward part; matmuls
//             apply the scales in their epilogue. The head stays in 16 bits
//   weights   a parameter of ZeRO-3, for every micro-batch: where f32 is gathered autocast casts it, 4 + 2, again where
//             a layer runs again, and its gradient back, 2 + 4. A flat tensor has gradients of its views joined, one
//             read and one write, and cast to the type that is reduced; separate tensors are copied out of the buffer
//             they were gathered in, twice, and their gradients into that of the reduction, 2 + 4
//   parts     eager, what a Llama has no kernel for, in f32. A value of a norm: cast 2 + 4, square 4 + 4, mean 4, scale
//             4 + 4, cast 4 + 2, weight 2 + 2: 36 bytes forward; backward the weight 2 + 2 and its gradient 2 + 2 + 2 + 2,
//             cast 2 + 4, scale 4 + 4, its gradient 4 + 4 + 4 + 4, square 4 + 4, sum 4 + 4 + 4, cast 4 + 2: 68. The graph
//             has 4 and 6. A value of queries and keys that is turned: cast 2 + 4, turn 4 + 4, cast 4 + 2 each way, of
//             which the graph has 4. Forward again under recomputation
//   host      every op of the graph, layers that run again and the update included, at 8.6 us: one eager op on the host
//             of an H200
#include <fmt/format.h>

#include <array>

#include "brrr/plan/cluster/run_question.h"

namespace brrr::plan {
namespace {

constexpr double kOpSeconds = 8.6e-6;
constexpr double kAutocastLossBytes = 36, kPlainLossBytes = 12, kGraphLossBytes = 6;
constexpr double kLossTensors = 4;   // as wide as the logits: they, log-softmax and both gradients
constexpr double kCastBytes = 6;     // between f32 and 16 bits
constexpr double kLowCastBytes = 4;  // from 16 bits to 8, and the transpose
constexpr double kNormForwardBytes = 36 - 4, kNormBackwardBytes = 68 - 6, kTurnBytes = 20 - 4;

double loss_bytes(const RunQuestion& q) {
  // Nothing is cast in f32: the ops of 16 bits throughout, at twice the bytes.
  if (q.precision == compiler::Precision::f32) return 2 * (kPlainLossBytes - kGraphLossBytes);
  return (q.system.autocast ? kAutocastLossBytes : kPlainLossBytes) - kGraphLossBytes;
}

// Casts to fp8 of all layers, per micro-batch.
double cast_bytes(const RunQuestion& q, const StepCost& layers) {
  if (!casts_apart(q)) return 0;
  const double forwards = q.recompute == compiler::RematPolicy::full ? 2 : 1;
  return kLowCastBytes * (forwards * layers.product_operands + layers.product_results);
}

// Of one parameter and micro-batch.
double weight_bytes(const RunQuestion& q) {
  if (q.layout.zero < 3) return 0;
  const bool gathers_f32 = q.system.gather_bytes == 4;
  const double gathered = gathers_f32 ? 4 : 2;
  double bytes = gathers_f32 ? 2 * kCastBytes : 0;
  if (gathers_f32 && q.recompute == compiler::RematPolicy::full) bytes += kCastBytes;
  if (q.system.flat_parameters) return bytes + 2 * gathered + (gathers_f32 ? kCastBytes : 0);
  return bytes + 2 * 2 * gathered + kCastBytes;
}

// RMS norms and rotary positions, of all layers and one micro-batch. Norms are of the whole stream, unless sequences
// are split beside tensors.
double part_bytes(const RunQuestion& q) {
  if (!q.model) return 0;
  const ModelShape shape = shape_of(*q.model);
  if (!shape.rotary) return 0;
  const auto tokens = static_cast<double>(q.micro_batch * q.seq),
             tp = static_cast<double>(q.layout.tp), layers = static_cast<double>(shape.layers),
             width = static_cast<double>(shape.width);
  const double forwards = q.recompute == compiler::RematPolicy::none ? 1 : 2;
  const double stream = tokens * width / (q.layout.sequence_parallel ? tp : 1);
  const double turned =
      tokens / tp * shape.pair_width *
      (1 + static_cast<double>(shape.kv_heads) / static_cast<double>(shape.heads));
  return layers * (2 * stream * (forwards * kNormForwardBytes + kNormBackwardBytes) +
                   turned * (forwards + 1) * kTurnBytes);
}

}  // namespace

std::string_view to_text(Framework framework) {
  constexpr std::array<std::string_view, 4> names = {"brrr", "tuned", "compiled", "eager"};
  return names[static_cast<size_t>(framework)];
}

Framework parse_framework(std::string_view name) {
  using enum Framework;
  for (Framework framework : {brrr, tuned, compiled, eager}) {
    if (to_text(framework) == name) return framework;
  }
  fail("there is no framework \"", name, "\"; use brrr, tuned, compiled or eager");
}

double framework_logit_bytes(const RunQuestion& q) {
  if (q.system.is_tuned()) return 0;
  if (q.precision == compiler::Precision::f32) return kLossTensors * 4;
  return q.system.autocast ? 2 + (kLossTensors - 1) * 4 : kLossTensors * 2;
}

bool casts_apart(const RunQuestion& q) {
  return q.precision == compiler::Precision::fp8_mixed && !q.system.fuses();
}

double low_copies(const RunQuestion& q, const StepCost& layer) {
  if (!casts_apart(q)) return layer.weight_copies;
  return q.recompute == compiler::RematPolicy::full ? 0 : layer.matrices + layer.experts;
}

FrameworkSeconds framework_seconds(const RunQuestion& q, const RunCost& cost) {
  if (!q.model) return {};
  const double bandwidth = copy_rate(hardware::find_gpu(q.gpu));
  const StepCost layers = cost.shard.all_layers();
  const double casts = cast_bytes(q, layers) / bandwidth;
  if (q.system.is_tuned()) return {.casts = casts};
  const auto tokens = static_cast<double>(q.micro_batch * q.seq);
  const double logits =
      tokens * static_cast<double>(shape_of(*q.model).vocab) / static_cast<double>(q.layout.tp);
  const StepCost total = cost.shard.total();
  FrameworkSeconds seconds{.casts = casts};
  seconds.loss = logits * loss_bytes(q) / bandwidth;
  seconds.weights = total.parameters() * weight_bytes(q) / bandwidth;
  if (q.system.framework == Framework::eager) {
    seconds.parts = part_bytes(q) / bandwidth;
    const double cast_kernels = casts_apart(q) ? layers.product_tensors : 0;
    seconds.host = (total.kernels - total.update_kernels + cast_kernels) * kOpSeconds;
    seconds.host_update = total.update_kernels * kOpSeconds;
  }
  return seconds;
}

std::vector<std::string> framework_assumptions(const RunQuestion& q) {
  std::vector<std::string> lines;
  if (casts_apart(q))
    lines.push_back(fmt::format(
        "operands of the layers' matmuls are cast to fp8 by kernels of their own, {:.0f} bytes per "
        "element; matmuls scale their results, and the head is in 16 bits",
        kLowCastBytes));
  if (q.system.is_tuned()) return lines;
  lines.push_back(fmt::format(
      "framework {}: {:.0f} bytes of a logit and {:.0f} of a sharded parameter beside the graph",
      to_text(q.system.framework), loss_bytes(q), weight_bytes(q)));
  lines.push_back(
      fmt::format("{:.0f} bytes per logit are in memory at the loss: logits, "
                  "log-softmax and the gradients of both",
                  framework_logit_bytes(q)));
  if (q.system.framework == Framework::eager)
    lines.push_back(
        fmt::format("norms and rotations of a Llama in parts; the host launches an op in {:.1f} us",
                    1e6 * kOpSeconds));
  return lines;
}

}  // namespace brrr::plan
