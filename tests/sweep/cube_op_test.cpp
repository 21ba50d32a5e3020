// The example of CONTRIBUTING.md: an elementwise op that is defined outside of the tree runs on the CPU, passes
// the sweep, and is in the CUDA text of a fused program, which NVRTC compiles. No GPU is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "brrr/brrr.h"
#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/graph/trace.h"
#include "brrr/kernels/cpu/elementwise/functor_tiles.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"
#include "brrr/runtime/stages.h"
#include "brrr/sweep/sweep.h"

namespace brrr {
namespace {

struct Cube {
  template <typename T>
  static T of(T x) {
    return x * x * x;
  }
};

const OpDef cube_op{
    .name = "test_cube",
    .formula = "x^3",
    .kind = OpKind::elementwise,
    .flops_per_element = 2,
    .infer = infer_same,
    .grad = [](const GradCall& call) -> Tensors {
      return {call.output_grad(0) * (3.0 * square(call.input(0)))};
    },
    .grad_reads = {.inputs = 1},
    .scalar = [](const double* x, const Attrs&) { return x[0] * x[0] * x[0]; },
    .tiles = kernels::tiles_of<Cube>,
    .cpu = kernels::run_elementwise,
    .expression = [](const Attrs&, ComputeType) -> std::string { return "x0 * x0 * x0"; },
    .samples = samples_any};

Tensor cube(const Tensor& x) { return call_one(cube_op, {x}); }

TEST(CubeFromOutside, RunsOnTheCpu) {
  EXPECT_EQ(cube(tensor({-2, 0, 3})).to_vector<float>(), (std::vector<float>{-8, 0, 27}));
}

TEST(CubeFromOutside, RunsInACompiledProgram) {
  auto program = runtime::compile([](Tensor x) { return cube(x + 1.0) * 2.0; });
  EXPECT_EQ(program(tensor({-2, 0, 3})).to_vector<float>(), (std::vector<float>{-2, 2, 128}));
}

TEST(CubeFromOutside, PassesTheSweep) { EXPECT_NO_THROW(sweep::run(cube_op)); }

std::shared_ptr<const compiler::GeneratedKernel> fused_kernel() {
  graph::Tracer tracer;
  const Tensor x = tracer.add_input({{1024, 768}, DType::f32}, Device::null(), "x");
  compiler::PipelineOptions options;
  options.device = Device::null();
  options.target = compiler::parse_target("cuda:h200");
  const Tensor y = cube(x + 1.0) * 2.0;
  const compiler::KernelList list = runtime::plan_program(tracer.finish({&y, 1}), options).kernels;
  return list.kernels.size() == 1 ? list.kernels[0].generated : nullptr;
}

TEST(CubeFromOutside, IsInTheCudaTextOfAFusedProgram) {
  const auto kernel = fused_kernel();
  ASSERT_TRUE(kernel) << "the program is not one generated kernel";
  const std::string& text = kernel->source.text;
  EXPECT_THAT(text, testing::HasSubstr("functors::Add::of("));
  EXPECT_TRUE(std::regex_search(text, std::regex(R"((v\d+) \* \1 \* \1;)"))) << text;
  EXPECT_THAT(text, testing::HasSubstr("functors::Mul::of("));
}

TEST(CubeFromOutside, HasCudaTextThatCompiles) {
  if (!cuda::has_compiler()) GTEST_SKIP() << "no NVRTC here: " << cuda::compiler_name();
  const auto kernel = fused_kernel();
  ASSERT_TRUE(kernel);
  for (const char* architecture : {"sm_80", "sm_90a"})
    EXPECT_FALSE(cuda::compile_source(kernel->source, architecture)->empty()) << architecture;
}

}  // namespace
}  // namespace brrr
