// The step that training repeats, as one compiled program: losses, gradients, clipping, the rate of this
// step, the optimizer and the average of the weights. What changes from step to step is an input: the
// batch, the number of the step, the keys of dropout, and the limits of the guard.
//
// The guard's verdict is part of the program. When the loss or the norm is not finite or above its limit,
// every parameter and state keeps its value, so what a run saves after a bad step is what was before it.
// That holds although a GPU may be some steps ahead of the host that reads their results: with `halts` the
// program itself makes no update behind the one that it refused.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "brrr/data/batches.h"
#include "brrr/optim/optimizer.h"
#include "brrr/optim/schedule.h"
#include "brrr/optim/weight_average.h"
#include "brrr/runtime/compile.h"
#include "brrr/train/objective.h"

namespace brrr::training {

struct TrainStepOptions {
  CrossEntropyOptions loss;  // of a language model
  int64_t accumulate = 1;    // micro-batches; the rows of a batch are dealt out among them
  double clip = 1;           // 0: none
  bool activations = true;   // largest |x| that each layer passes on
  bool document_mask = false;
  bool guard = true;  // updates depend on the limits of the step; false: every one is made
  uint64_t dropout_seed = 0;
  bool halts = false;     // behind a refused update: no other is made
  int64_t head_rows = 0;  // of the head's matrix inside the program (vocab_padding.h); 0: its own
  compiler::PipelineOptions pipeline;
};

// Above them an update is not made; infinite: no limit.
struct StepLimits {
  double loss = std::numeric_limits<double>::infinity();
  double grad_norm = std::numeric_limits<double>::infinity();
  bool operator==(const StepLimits&) const = default;
};

struct StepResult {
  double loss = 0;       // cross entropy; what layers add is trained and not shown
  double grad_norm = 0;  // before clipping
  bool applied = true;
  std::vector<double> grad_norms;   // by parameter
  std::vector<double> activations;  // by part, as named by activation_names
};

class TrainStep {
 public:
  // All that is given by reference must outlive the step. `average` may be null.
  TrainStep(std::unique_ptr<Objective> objective, Optimizer& optimizer, WeightAverage* average,
            const Schedule& schedule, const TrainStepOptions& options);
  TrainStep(const LanguageModel& model, Optimizer& optimizer, WeightAverage* average,
            const Schedule& schedule, const TrainStepOptions& options);

  // `step` counts from 0. A GPU is still at work when start returns; results are read in the order of starts.
  runtime::PendingResults start(const Batch& batch, int64_t step, const StepLimits& limits = {});
  StepResult finish(runtime::PendingResults started) const;
  StepResult run(const Batch& batch, int64_t step, const StepLimits& limits = {}) {
    return finish(start(batch, step, limits));
  }

  // The traced step for batches like this one; on the null device it has shapes and a price.
  graph::Graph trace(const Batch& batch);
  graph::Graph trace_forward(const Batch& batch);  // from the inputs of one micro-batch to the loss
  // What the program is called with, and the same step op by op, on the device of the model.
  std::vector<Tensor> inputs_of(const Batch& batch, int64_t step = 0,
                                const StepLimits& limits = {}) const;
  Tensors run_eager(const Batch& batch);
  // The program for batches like this one, compiled now if there is none yet.
  runtime::Executable& executable(const Batch& batch);
  // States of the program that neither model nor optimizer own: scales and histories of low precision.
  std::vector<NamedTensor> program_states(const Batch& batch);

  const std::vector<std::string>& activation_names() const { return activation_names_; }

 private:
  Tensors step(std::span<const Tensor> inputs);
  struct MicroBatch {
    Tensor data, targets, dropout_key, documents;
  };
  std::vector<Tensor> backward(const MicroBatch& batch, const Tensor& share);
  std::vector<Tensor> accumulated(std::span<const Tensor> inputs);

  std::unique_ptr<Objective> objective_;
  Optimizer& optimizer_;
  WeightAverage* average_;
  Schedule schedule_;
  TrainStepOptions options_;
  std::vector<std::string> activation_names_;
  std::vector<Tensor> activations_;  // of the trace under way
  Tensor halted_;                    // defined where refused updates halt
  runtime::CompiledFunction compiled_;
};

// A batch of these sizes on the null device: for plans.
Batch null_batch(int64_t rows, int64_t context);

}  // namespace brrr::training
