// A backend is one value. This one has two passes, fuses nothing, and runs programs by interpreting their graph; it
// compiles and counts GPT-2's training step, and computes what the CPU computes.
#include <gtest/gtest.h>

#include <algorithm>

#include "brrr/compiler/backend.h"
#include "brrr/graph/interpret.h"
#include "brrr/nn/models.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/runtime/compile.h"
#include "brrr/runtime/runner.h"
#include "brrr/train/setup.h"
#include "brrr/train/step_spec.h"

namespace brrr {
namespace {

class ToyRunner final : public runtime::Runner {
 public:
  explicit ToyRunner(const compiler::CompiledProgram& program) : program_(program) {}
  Tensors run(std::span<const Tensor> inputs, runtime::KernelTimes*) override {
    Tensors results;
    for (const Tensor& x : graph::interpret(program_.graph, inputs).outputs) results.push_back(x);
    return results;
  }
  void count_last_run() const override { runtime::count_run(program_.kernels.list); }

 private:
  const compiler::CompiledProgram& program_;
};

const compiler::Backend& toy_backend() {
  static const compiler::GraphPass kPasses[] = {compiler::passes::precision(),
                                                compiler::passes::simplify()};
  static const compiler::Backend kToy{
      .name = "toy",
      .passes = kPasses,
      .fuse_options =
          [](const compiler::Target&) { return compiler::FuseOptions{.enabled = false}; },
      .lower_options = [](const compiler::Target&) { return compiler::LowerOptions{}; },
      .select = [](compiler::KernelList&, const compiler::Target&,
                   ThreadPool&) {},  // no kernel needs scratch
      .alignment = 128,
      .bind = [](const compiler::CompiledProgram& program, std::byte*, Device)
          -> std::unique_ptr<runtime::Runner> { return std::make_unique<ToyRunner>(program); }};
  return kToy;
}

const compiler::Target kToy{.name = "toy", .backend = &toy_backend(), .index = std::nullopt};

TEST(ToyBackend, CompilesAndCountsTheTrainingStepOfGpt2) {
  training::StepSpec spec =
      training::on_paper(training::named_step("gpt2-124m", {.batch = 2, .seq = 64, .layers = 2}));
  training::TrainingParts parts = training::make_parts(spec);
  compiler::PipelineOptions options;
  options.device = Device::null();
  options.target = kToy;
  runtime::Executable toy(parts.step->trace(training::make_batch(spec)), options);
  const auto views =
      std::count_if(toy.graph().nodes.begin(), toy.graph().nodes.end(),
                    [](const graph::Node& node) { return node.op->view != nullptr; });
  // States that are written in place may need a copy at the end; nothing is fused.
  EXPECT_GE(toy.kernels().kernels.size(), toy.graph().nodes.size() - static_cast<size_t>(views));
  options.target = compiler::cpu_target();
  options.without = {"fuse", "chunk_head", "rematerialize"};
  EXPECT_EQ(
      toy.cost().flops,
      runtime::Executable(parts.step->trace(training::make_batch(spec)), options).cost().flops);
}

TEST(ToyBackend, RunsWhatItCompiles) {
  compiler::PipelineOptions options;
  options.target = kToy;
  const auto f = [](const Tensor& x, const Tensor& w) { return relu(matmul(x, w)) + 1.0; };
  const Tensor x = normal({3, 4}, RandomKey{.seed = 1}), w = normal({4, 5}, RandomKey{.seed = 2});
  EXPECT_EQ(runtime::compile(f, options)(x, w).to_vector<float>(), f(x, w).to_vector<float>());
}

}  // namespace
}  // namespace brrr
