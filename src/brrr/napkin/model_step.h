// Training steps by name or configuration: a model, an optimizer with clipping, and a batch of tokens, on the
// cpu to run it or on the null device to price it. What the commands explain, profile, plan and verify.
#pragma once

#include <memory>
#include <optional>

#include "brrr/graph/graph.h"
#include "brrr/nn/models.h"
#include "brrr/runtime/compile.h"

namespace brrr {

struct StepOptions {
  int64_t batch = 4;
  int64_t seq = 64;
  // Other sizes than the preset's: a 70B-class model is gpt2-1558m with 80 layers of width 8192.
  std::optional<int64_t> layers, heads, width, vocab;
  Device device = Device::cpu();
  PipelineOptions pipeline;
  std::string optimizer = "adamw";
};

// Every preset of nn/models.h, and "char-gpt", "mlp", "cnn".
std::vector<std::string> step_models();

class ModelStep {
 public:
  // Throws Error with the list of models on an unknown name.
  ModelStep(std::string_view name, const StepOptions& options);
  ModelStep(const ModelConfig& config, const StepOptions& options);
  ~ModelStep();
  ModelStep(const ModelStep&) = delete;
  ModelStep& operator=(const ModelStep&) = delete;

  int64_t parameter_count() const;
  std::vector<NamedTensor> named_parameters() const;
  Graph trace_forward() const;  // inputs to loss
  Graph trace_step() const;     // forward, backward, clip and update

  // On the cpu: the compiled step and the inputs to call it with.
  Executable& executable();
  std::span<const Tensor> inputs() const;
  Tensors run_eager() const;  // the same step op by op

 private:
  struct State;
  void finish(const StepOptions& options);
  std::unique_ptr<State> state_;
};

}  // namespace brrr
