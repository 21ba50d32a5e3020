// Which training step: a model, its batch, and every setting that changes the program. `brrr train` makes its step
// from one, and so does whoever explains, profiles, verifies or prices a step, so that all of them have the program
// that a run would have:
//
//   const StepSpec spec = named_step("gpt2-124m", {.batch = 64, .seq = 1024});
//   TrainingParts parts = make_parts(spec);                       // train/setup.h
//   const PlannedProgram program = plan_step(on_paper(spec));     // without memory
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "brrr/data/batches.h"
#include "brrr/nn/classifiers.h"
#include "brrr/nn/models.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/optim/registry.h"
#include "brrr/run/config.h"
#include "brrr/runtime/stages.h"

namespace brrr::training {

// A language model, or a classifier of images.
using StepModel = std::variant<ModelConfig, MlpConfig, CnnConfig>;

struct StepSpec {
  StepModel model;
  int64_t batch = 1;       // rows of a micro-batch
  int64_t context = 1;     // tokens of a row
  int64_t accumulate = 1;  // micro-batches of a step
  CrossEntropyOptions loss;
  bool document_mask = false;
  bool activations = true;  // the largest |x| that each layer passes on is a result
  bool guard = true;        // updates are refused beyond the limits of loss and norm
  bool halts = false;       // after a refused update no other is made

  std::string optimizer = "adamw";
  OptimizerSettings optimizer_settings;
  ScheduleOptions schedule;
  double clip = 1;     // largest norm of all gradients together; 0: none
  double average = 0;  // decay of the average of the weights; 0: none

  std::string pad_vocab = "auto";  // vocab_padding.h
  compiler::PipelineOptions pipeline;
  uint64_t init_seed = 0, dropout_seed = 0;

  compiler::Target target = compiler::cpu_target();  // what it is compiled for
  bool is_on_paper = false;                          // its tensors have shapes and no memory
  // Expert parallelism: the step of one of so many devices. It holds its share of the experts of a layer, each with
  // room for the tokens that all devices send them, as many as it sends itself. For pricing: nothing is sent.
  int64_t expert_devices = 1;

  Device tensor_device() const { return is_on_paper ? Device::null() : target.device(); }
};
StepSpec on_paper(StepSpec spec);

// The step of a run whose settings are resolved.
StepSpec step_spec(const runs::TrainConfig& config, const StepModel& model,
                   const compiler::Target& target);
// The settings of a run that nobody has changed. Those that a run chooses from its data (steps, warmup, learning rate)
// are numbers in the program and do not change its kernels; one document, so no document mask.
runs::TrainConfig default_step_settings(int64_t batch, int64_t context);

// Sizes in place of a preset's: a 70B-class model is gpt2-1558m with 80 layers of width 8192.
struct StepSizes {
  int64_t batch = 4, seq = 64;
  std::optional<int64_t> layers = {}, heads = {}, width = {}, vocab = {};
};
// Every preset of nn/models.h, and "char-gpt", "mlp", "cnn".
std::vector<std::string> step_models();
// Throws Error with the list of models on an unknown name.
StepModel find_step_model(std::string_view name, const StepSizes& sizes = {});
// As `brrr train` would run it by default.
StepSpec named_step(std::string_view name, const StepSizes& sizes = {},
                    const compiler::Target& target = compiler::cpu_target());
StepSpec default_step(const StepModel& model, int64_t batch, int64_t context,
                      const compiler::Target& target = compiler::cpu_target());

// The options that its graph is compiled with, with its target.
compiler::PipelineOptions pipeline_of(const StepSpec& spec);
// A fixed batch, all micro-batches together: on the host, as a data loader hands it over, or on paper.
Batch make_batch(const StepSpec& spec);
// The whole step traced, and planned for its target; the spec must be on paper.
graph::Graph trace_step(const StepSpec& spec);
runtime::PlannedProgram plan_step(const StepSpec& spec);

}  // namespace brrr::training
