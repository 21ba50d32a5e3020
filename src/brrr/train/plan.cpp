#include "brrr/train/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "brrr/base/error.h"
#include "brrr/device/default_device.h"
#include "brrr/graph/op_def.h"
#include "brrr/graph/trace.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/memory_moments.h"
#include "brrr/train/setup.h"

namespace brrr::training {
namespace {

constexpr int kBatchesAhead = 4;
constexpr Bytes kBesides = 64_MiB;  // program text, libraries, tokenizer, logs

// FLOPs of products and attention in the forward graph of one micro-batch; the backward part has twice as
// many.
Flops forward_flops(const LanguageModel& model, const Batch& batch) {
  NoGrad forward_only;
  graph::Tracer tracer;
  const Tensor tokens = tracer.add_input(batch.inputs.type(), Device::null(), "tokens");
  const graph::Graph graph = tracer.finish(std::vector<Tensor>{model.logits(tokens)});
  double flops = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.op->kind == OpKind::contraction)
      flops += static_cast<double>(graph::cost_of(graph, node).flops);
  }
  return Flops(flops);
}

Bytes bytes_in(const compiler::KernelList& list, compiler::Place place) {
  int64_t bytes = 0;
  for (const compiler::Buffer& buffer : list.buffers)
    bytes += buffer.place == place ? buffer.bytes : 0;
  return Bytes(bytes);
}

// Of data that no cache holds any more.
double far_bandwidth(const hardware::Rates& rates) {
  constexpr double kFarAway[] = {1e12};  // bytes touched since
  return rates.grid("bandwidth").at(kFarAway);
}

std::vector<runs::KernelFact> facts_of(const compiler::KernelList& list,
                                       const cost::Prediction& prediction) {
  std::map<std::pair<std::string, cost::Regime>, runs::KernelFact>
      by_name;  // a family may have two regimes
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const compiler::Kernel& kernel = list.kernels[i];
    const cost::KernelPrediction& predicted = prediction.kernels[i];
    const std::string name = predicted.family.empty() ? "other" : predicted.family;
    runs::KernelFact& fact = by_name[{name, predicted.regime()}];
    fact.name = name;
    fact.calls += 1;
    fact.flops += static_cast<double>(kernel.cost.flops);
    fact.bytes += static_cast<double>(kernel.cost.bytes_read + kernel.cost.bytes_written);
    fact.seconds += predicted.seconds();
    fact.regime = cost::regime_name(predicted.regime());
  }
  std::vector<runs::KernelFact> facts;
  for (auto& [key, fact] : by_name) facts.push_back(std::move(fact));
  std::sort(facts.begin(), facts.end(), [](const runs::KernelFact& a, const runs::KernelFact& b) {
    return a.seconds > b.seconds;
  });
  return facts;
}

void describe_speed(TrainPlan& plan, const cost::Prediction& prediction) {
  const double all = std::max(prediction.seconds(), 1e-12);
  plan.compute_share = prediction.seconds_in(cost::Regime::compute) / all;
  plan.bandwidth_share = prediction.seconds_in(cost::Regime::bandwidth) / all;
  plan.overhead_share = prediction.seconds_in(cost::Regime::overhead) / all;
  const char* source =
      prediction.calibrated ? "" : " (rough rates; `brrr calibrate` measures them)";
  const auto sentence = [&](std::string_view regime, double share, std::string_view unit) {
    plan.speed_regime = fmt::format("{}-bound: {:.0f} % of a step is spent where {} is the limit{}",
                                    regime, 100 * share, unit, source);
  };
  if (plan.compute_share >= plan.bandwidth_share && plan.compute_share >= plan.overhead_share) {
    sentence("compute", plan.compute_share, "arithmetic");
    plan.speed_advice = "a lower precision or more cores would help; more memory speed would not";
  } else if (plan.bandwidth_share >= plan.overhead_share) {
    sentence("bandwidth", plan.bandwidth_share, "memory");
    plan.speed_advice =
        "a larger batch spreads the traffic of weights and optimizer over more tokens";
  } else {
    sentence("overhead", plan.overhead_share, "starting kernels");
    plan.speed_advice = "a larger batch or a longer context costs little more time a step";
  }
}

}  // namespace

TrainPlan plan_training(const runs::TrainConfig& config, const ModelConfig& model,
                        const compiler::Target& target, const hardware::Rates& rates,
                        Bytes data_bytes) {
  const StepSpec spec = on_paper(step_spec(config, model, target));
  const DeviceScope scope(Device::null());
  TrainingParts parts = make_parts(spec);
  const int64_t rows = rows_per_step(config), context = runs::resolved(config.model.context);
  const Batch batch = null_batch(rows, context);
  const runtime::PlannedProgram program =
      runtime::plan_program(parts.step->trace(batch), pipeline_of(spec));
  const cost::Prediction prediction = cost::predict(program.kernels, program.plan, rates);

  TrainPlan plan;
  plan.target = target;
  plan.parameters = parts.model->parameter_count();
  plan.states = bytes_in(program.kernels, compiler::Place::state);
  plan.arena = Bytes(program.plan.arena_bytes);
  plan.snapshot = parts.model->counts().bytes + parts.optimizer->state_bytes();
  if (parts.average) plan.snapshot += parts.model->counts().bytes;
  const Bytes inputs = bytes_in(program.kernels, compiler::Place::input);
  // Evaluation holds the activations of one layer and the logits, of one micro-batch.
  const Bytes logits(4 * runs::resolved(config.train.batch) * context * vocab_of(model));
  plan.other = inputs * (kBatchesAhead + 1) + logits * 2 + kBesides;
  plan.checkpoint = plan.snapshot;
  plan.disk = plan.checkpoint * (config.checkpoint.keep + 2) + data_bytes +
              Bytes(400 * runs::resolved(config.train.steps));

  const Batch micro = null_batch(runs::resolved(config.train.batch), context);
  plan.model_flops_per_token = forward_flops(*parts.model, micro) * 3.0 /
                               static_cast<double>(runs::resolved(config.train.batch) * context);
  plan.step_seconds = prediction.seconds();
  plan.rates_kind = rates.kind();
  plan.rates_source = rates.source;
  plan.memory_bandwidth = BytesPerSecond(far_bandwidth(rates));
  plan.kernels = facts_of(program.kernels, prediction);
  plan.launches = cost::kernel_lines(program.kernels, program.plan, rates);
  plan.memory_timeline = memory_moments(program.kernels, program.plan);
  describe_speed(plan, prediction);
  return plan;
}

}  // namespace brrr::training
