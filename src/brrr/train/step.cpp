#include "brrr/train/step.h"

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/trace.h"
#include "brrr/nn/layers.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr::training {
namespace {

// The inputs of the program, in this order; documents only where they are wanted.
enum Input : size_t { kData, kTargets, kKeys, kNumber, kLossLimit, kNormLimit, kDocuments };
constexpr const char* kNamesBehindData[] = {"targets",    "dropout keys", "step",
                                            "loss limit", "norm limit",   "documents"};
// Its results.
enum Output : int { kLoss, kNorm, kApplied, kSquares, kActivations };

Device device_of(const Module& model) { return model.parameters().front().device(); }

Tensor number(double value, Device device) {
  return full({}, value, {.dtype = DType::f64, .device = device});
}

// How many targets count.
Tensor counted(const Tensor& targets, int64_t ignored) {
  return cast(sum(not_equal(targets, static_cast<double>(ignored))), DType::f32);
}

// Handles for these tensors, as inputs of the trace under way.
std::vector<Tensor> trace_inputs(graph::Tracer& tracer, std::span<const Tensor> given,
                                 std::string_view data_name) {
  std::vector<Tensor> handles;
  for (size_t i = 0; i < given.size(); ++i)
    handles.push_back(tracer.add_input(
        given[i].type(), given[i].device(),
        std::string(i == kData ? data_name : std::string_view(kNamesBehindData[i - 1]))));
  return handles;
}

// Row i is the key of micro-batch i: draws of the stream "dropout", counted through the run.
Tensor dropout_keys(uint64_t seed, int64_t step, int64_t parts, Device device) {
  std::vector<Tensor> keys;
  for (int64_t part = 0; part < parts; ++part)
    keys.push_back(dropout_key(seed, step * parts + part, device));
  return stack(keys);
}

}  // namespace

Batch null_batch(int64_t rows, int64_t context) {
  CategoryScope scope(Category::data);
  const auto ids = [&] { return empty({rows, context}, DType::i64, Device::null()); };
  return {.step = 0, .inputs = ids(), .targets = ids(), .documents = ids()};
}

TrainStep::TrainStep(const LanguageModel& model, Optimizer& optimizer, WeightAverage* average,
                     const Schedule& schedule, const TrainStepOptions& options)
    : TrainStep(std::make_unique<TokenLoss>(model, options.loss, options.head_rows), optimizer,
                average, schedule, options) {}

TrainStep::TrainStep(std::unique_ptr<Objective> objective, Optimizer& optimizer,
                     WeightAverage* average, const Schedule& schedule,
                     const TrainStepOptions& options)
    : objective_(std::move(objective)),
      optimizer_(optimizer),
      average_(average),
      schedule_(schedule),
      options_(options),
      compiled_([this](std::span<const Tensor> inputs) { return step(inputs); }, options.pipeline) {
  check(options.accumulate >= 1, "a step has at least one micro-batch, not ", options.accumulate);
  if (options.activations) activation_names_ = objective_->activation_names();
  if (options.halts)
    halted_ = zeros({}, {.dtype = DType::boolean, .device = device_of(objective_->model())});
}

// ---- the program ---------------------------------------------------------------------------------
// One micro-batch: gradients, behind them the loss. `share` is its part of the loss of the step.
std::vector<Tensor> TrainStep::backward(const MicroBatch& batch, const Tensor& share) {
  std::vector<NamedTensor> largest;
  const ForwardInputs inputs{.dropout_key = batch.dropout_key,
                             .documents = batch.documents,
                             .largest_activations = options_.activations ? &largest : nullptr};
  const LanguageLoss losses = objective_->losses(batch.data, batch.targets, inputs);
  const Tensor total = share.defined() ? losses.total * share : losses.total;
  std::vector<Tensor> results = grad(total, optimizer_.parameters());
  const Tensor shown = losses.cross_entropy.detach();
  results.push_back(share.defined() ? shown * share : shown);
  for (size_t i = 0; i < largest.size(); ++i)
    activations_[i].copy_from(maximum(activations_[i], cast(largest[i].tensor, DType::f32)));
  return results;
}

std::vector<Tensor> TrainStep::accumulated(std::span<const Tensor> inputs) {
  const Tensor &data = inputs[kData], &targets = inputs[kTargets];
  const Device device = data.device();
  const int64_t parts = options_.accumulate;
  const auto dealt = [&](const Tensor& x) {
    Shape shape = x.shape();
    shape[0] /= parts;
    shape.insert(0, parts);
    return reshape(x, shape);
  };
  const std::optional<int64_t> ignored = options_.loss.ignore_index;
  const Tensor all = ignored ? maximum(counted(targets, *ignored), 1.0) : Tensor();
  std::vector<Tensor> sliced{dealt(data), dealt(targets), inputs[kKeys]};
  if (options_.document_mask) sliced.push_back(dealt(inputs[kDocuments]));
  const Tensor count =
      full({}, static_cast<double>(parts), {.dtype = DType::i64, .device = device});
  return repeat(count, sliced, [&](const Tensor&, std::span<const Tensor> part) {
    const Tensor share = ignored ? counted(part[1], *ignored) / all
                                 : full({}, 1 / static_cast<double>(parts), {.device = device});
    return backward({.data = part[0],
                     .targets = part[1],
                     .dropout_key = part[2],
                     .documents = options_.document_mask ? part[3] : Tensor()},
                    share);
  });
}

Tensors TrainStep::step(std::span<const Tensor> inputs) {
  activations_.clear();
  for (size_t i = 0; i < activation_names_.size(); ++i)
    activations_.push_back(zeros({}, {.device = inputs[kData].device()}));
  std::vector<Tensor> grads =
      options_.accumulate > 1
          ? accumulated(inputs)
          : backward({.data = inputs[kData],
                      .targets = inputs[kTargets],
                      .dropout_key = inputs[kKeys][0],
                      .documents = options_.document_mask ? inputs[kDocuments] : Tensor()},
                     {});
  const Tensor loss = grads.back();
  grads.pop_back();

  NoGrad update_only;
  std::vector<Tensor> squares;
  for (const Tensor& g : grads) squares.push_back(sum(square(g)));
  const Tensor norm =
      options_.clip > 0 ? clip_global_norm(grads, options_.clip) : global_norm(grads);
  const auto within = [](const Tensor& x, const Tensor& limit) {
    return logical_and(isfinite(x), less_equal(cast(x, DType::f64), limit));
  };
  Tensor applies =
      options_.guard
          ? logical_and(within(loss, inputs[kLossLimit]), within(norm, inputs[kNormLimit]))
          : full({}, 1.0, {.dtype = DType::boolean, .device = loss.device()});
  if (halted_.defined()) {
    applies = logical_and(applies, logical_not(halted_));
    halted_.copy_from(logical_not(applies));
  }
  const Tensor condition = options_.guard ? applies : Tensor();
  optimizer_.update(grads, schedule_.at(inputs[kNumber]), condition);
  if (average_) average_->update(condition);
  Tensors results{loss, norm, applies, stack(squares)};
  if (!activations_.empty()) results.push_back(stack(activations_));
  activations_.clear();
  return results;
}

// ---- from outside --------------------------------------------------------------------------------
std::vector<Tensor> TrainStep::inputs_of(const Batch& batch, int64_t step,
                                         const StepLimits& limits) const {
  check(batch.inputs.dim(0) % options_.accumulate == 0, "a batch of ", batch.inputs.dim(0),
        " rows cannot be dealt out among ", options_.accumulate, " micro-batches");
  const Device device = batch.inputs.device();
  std::vector<Tensor> inputs{batch.inputs,
                             batch.targets,
                             dropout_keys(options_.dropout_seed, step, options_.accumulate, device),
                             number(static_cast<double>(step), device),
                             number(limits.loss, device),
                             number(limits.grad_norm, device)};
  if (options_.document_mask) inputs.push_back(batch.documents);
  return inputs;
}

runtime::PendingResults TrainStep::start(const Batch& batch, int64_t step,
                                         const StepLimits& limits) {
  return compiled_.enqueue(inputs_of(batch, step, limits));
}

StepResult TrainStep::finish(runtime::PendingResults started) const {
  const Tensors results = started.take();
  StepResult result{.loss = results[kLoss].item<double>(),
                    .grad_norm = results[kNorm].item<double>(),
                    .applied = results[kApplied].item<bool>(),
                    .grad_norms = results[kSquares].to_vector<double>()};
  for (double& each : result.grad_norms) each = std::sqrt(each);
  if (!activation_names_.empty()) result.activations = results[kActivations].to_vector<double>();
  return result;
}

graph::Graph TrainStep::trace(const Batch& batch) {
  const std::vector<Tensor> given = inputs_of(batch);  // outside of the trace: they are its inputs
  graph::Tracer tracer;
  return tracer.finish(step(trace_inputs(tracer, given, objective_->data_name())));
}

graph::Graph TrainStep::trace_forward(const Batch& batch) {
  NoGrad forward_only;
  graph::Tracer tracer;
  const std::vector<Tensor> handles =
      trace_inputs(tracer, std::vector{batch.inputs, batch.targets}, objective_->data_name());
  const Tensors results{objective_->losses(handles[kData], handles[kTargets], {}).total};
  name_states(objective_->model().named_parameters());
  return tracer.finish(results);
}

Tensors TrainStep::run_eager(const Batch& batch) {
  std::vector<Tensor> inputs = inputs_of(batch);
  for (Tensor& x : inputs) x = to(x, device_of(objective_->model()));
  return step(inputs);
}

runtime::Executable& TrainStep::executable(const Batch& batch) {
  return compiled_.executable(inputs_of(batch));
}

std::vector<NamedTensor> TrainStep::program_states(const Batch& batch) {
  std::vector<NamedTensor> owned = objective_->model().named_parameters();
  for (const NamedTensor& each : optimizer_.states()) owned.push_back(each);
  if (average_) {
    for (const NamedTensor& each : average_->states()) owned.push_back(each);
  }
  std::vector<NamedTensor> found;
  for (const graph::StateSlot& state : executable(batch).graph().states) {
    const bool is_owned = std::any_of(owned.begin(), owned.end(), [&](const NamedTensor& each) {
      return shares_storage(each.tensor, state.tensor);
    });
    const bool is_halt = halted_.defined() && shares_storage(halted_, state.tensor);
    if (is_owned || is_halt || state.copy_of >= 0 || !state.is_written()) continue;
    found.push_back({join_text("program.", state.name), state.tensor});
  }
  return found;
}

}  // namespace brrr::training
