// Generated kernels: NVRTC compiles every one of them for sm_80 and sm_90a (it needs no GPU), and their
// text says what it promises: wide accesses, sizes as constants, numbers in place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/compiler/codegen/codegen_reduce.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/graph/trace.h"
#include "brrr/kernels/cuda/codegen/elementwise_text.h"
#include "brrr/nn/module.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/slice_backward.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a"};

compiler::PipelineOptions on_gpu() {
  compiler::PipelineOptions options;
  options.device = Device::null(), options.target = h200();
  return options;
}

template <typename Fn>
compiler::KernelList kernels_of(const std::vector<TensorType>& types, Fn fn) {
  graph::Tracer tracer;
  std::vector<Tensor> handles;
  for (const TensorType& type : types)
    handles.push_back(tracer.add_input(type, Device::null(), join_text("x", handles.size())));
  const Tensors outputs = fn(handles);
  return runtime::plan_program(tracer.finish({outputs.begin(), outputs.end()}), on_gpu()).kernels;
}

void compile_all(const compiler::KernelList& list) {
  for (const compiler::Kernel& kernel : list.kernels) {
    if (kernel.body) compile_all(kernel.body->list);
    if (!kernel.generated || kernel.generated->launches.empty()) continue;
    for (const char* architecture : kArchitectures)
      EXPECT_FALSE(cuda::compile_source(kernel.generated->source, architecture)->empty());
  }
}

#define SKIP_WITHOUT_COMPILER() \
  if (!cuda::has_compiler()) GTEST_SKIP() << "no NVRTC here: " << cuda::compiler_name()

TEST(Codegen, FoldsOfU64BeginAtItsOwnLimits) {
  const auto identity = [](const OpDef& op, ComputeType type) {
    const std::optional<compiler::FoldText> fold = compiler::fold_text(op, type);
    return fold ? fold->identity : "none";
  };
  EXPECT_EQ(identity(max_op, ComputeType::u64), "0ul");
  EXPECT_EQ(identity(min_op, ComputeType::u64), "18446744073709551615ul");
  EXPECT_EQ(identity(sum_op, ComputeType::u64), "0ul");
  EXPECT_EQ(identity(prod_op, ComputeType::u64), "1ul");
  EXPECT_EQ(identity(max_op, ComputeType::i64), "(-0x7fffffffffffffffl - 1)");
  EXPECT_EQ(identity(min_op, ComputeType::i64), "9223372036854775807l");
}

// One source for all calls of an op: samples in several dtypes.
TEST(Codegen, EveryElementwiseOpCompiles) {
  SKIP_WITHOUT_COMPILER();
  int ops = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->expression || !op->samples) continue;
    ++ops;
    std::string source = kernels::source_head(std::string(op->name));
    std::set<std::string> seen;
    for (const Sample& sample : op->samples()) {
      for (const ComputeType type :
           {ComputeType::f32, ComputeType::f64, ComputeType::i64, ComputeType::u64}) {
        const TileKernels tiles = op->tiles();
        const TileFn functions[] = {tiles.f32, tiles.f64, tiles.i64, tiles.u64};
        if (!functions[static_cast<size_t>(type)] || !op->dtypes.contains(natural_dtype(type)))
          continue;
        kernels::ElementwiseText text{.shape = {}};
        std::vector<int> values;
        for (const Tensor& x : sample.inputs) {
          const int i = static_cast<int>(values.size());
          text.inputs.push_back(
              {x.layout(), x.dtype() == DType::f64 ? natural_dtype(type) : x.dtype()});
          text.loads.push_back({i, i, type});
          values.push_back(i);
        }
        std::vector<TensorType> types;
        for (const kernels::TextOperand& input : text.inputs)
          types.push_back({input.layout.shape, input.dtype});
        const TensorType result = graph::infer_types(*op, sample.attrs, types)[0];
        if (numel(result.shape) == 0) continue;
        text.shape = result.shape;
        text.outputs.push_back({contiguous_layout(result.shape), natural_dtype(type)});
        const int made = static_cast<int>(values.size());
        text.statements = {kernels::statement_text(*op, sample.attrs, type, made, values)};
        text.stores = {{0, made, type}};
        const int pack = kernels::pack_of(text);
        if (!seen.insert(kernels::function_text(text, "call", pack)).second) continue;
        const std::string name = fmt::format("call_{}", seen.size());
        source +=
            kernels::function_text(text, name, pack) +
            fmt::format("extern \"C\" __global__ void k{}(const {}_args args) {{\n{}}}\n", name,
                        name, kernels::block_text(text, name, pack, "blockIdx.x", "args"));
      }
    }
    for (const char* architecture : kArchitectures)
      EXPECT_FALSE(cuda::compile_source({std::string(op->name), source}, architecture)->empty());
  }
  EXPECT_GE(ops, 50);
}

TEST(Codegen, TheStepOfGpt2Compiles) {
  SKIP_WITHOUT_COMPILER();
  for (const compiler::Precision precision :
       {compiler::Precision::f32, compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed,
        compiler::Precision::fp8_mixed}) {
    training::StepSpec spec =
        training::named_step("gpt2-124m", {.layers = 2}, h200());  // the others: alike
    spec.pipeline = on_gpu();
    spec.pipeline.precision.policy = precision;
    const runtime::PlannedProgram program = training::plan_step(training::on_paper(spec));
    int generated = 0;
    for (const compiler::Kernel& kernel : program.kernels.kernels) {
      generated += kernel.generated != nullptr;
      EXPECT_TRUE(kernel.generated || kernel.body || find_cuda_kernel(*kernel.op)) << kernel.name;
    }
    EXPECT_GE(generated, 8);
    compile_all(program.kernels);
  }
}

// Steps of the other families: experts, latent attention, recurrence, convolutions.
TEST(Codegen, TheStepsOfEveryFamilyCompile) {
  SKIP_WITHOUT_COMPILER();
  for (const char* model : {"llama-tiny", "llama-moe-tiny", "llama-mla-tiny", "rnn-tiny",
                            "gru-tiny", "lstm-tiny", "mlp", "cnn"}) {
    training::StepSpec spec = training::named_step(model, {.batch = 2, .seq = 16}, h200());
    spec.pipeline = on_gpu();
    spec.pipeline.precision.policy = compiler::Precision::bf16_mixed;
    const runtime::PlannedProgram program = training::plan_step(training::on_paper(spec));
    for (const compiler::Kernel& kernel : program.kernels.kernels)
      EXPECT_TRUE(kernel.generated || kernel.body || find_cuda_kernel(*kernel.op))
          << model << kernel.name;
    compile_all(program.kernels);
  }
}

// Parameters, gradients and moments in bf16, without a policy.
TEST(Codegen, AStepInPureBf16Compiles) {
  SKIP_WITHOUT_COMPILER();
  const ParameterScope low({.dtype = DType::bf16, .device = Device::null()});
  const runtime::PlannedProgram program =
      training::plan_step(plain_step("gpt2-124m", {.layers = 1}, on_gpu()));
  int products = 0;
  for (const compiler::Kernel& kernel : program.kernels.kernels) {
    EXPECT_TRUE(kernel.generated || kernel.body || find_cuda_kernel(*kernel.op)) << kernel.name;
    if (!kernel.op || kernel.op->kind != OpKind::contraction) continue;
    ++products;
    EXPECT_EQ(kernel.inputs[0].dtype, DType::bf16) << kernel.name;
  }
  EXPECT_GT(products, 10);
  compile_all(program.kernels);
}

TEST(Codegen, AChainIsOneKernelWithWideAccesses) {
  const compiler::KernelList list =
      kernels_of({{{1024, 1024}, DType::f32}},
                 [](std::span<const Tensor> x) { return Tensors{cos(cos(x[0])) * 2.0 + 1.0}; });
  ASSERT_EQ(list.kernels.size(), 1U);  // the numbers are in the text
  const std::string& text = list.kernels[0].generated->source.text;
  EXPECT_THAT(text, HasSubstr("load_pack<kPack>(args.in0 + first)"));
  EXPECT_THAT(text, HasSubstr("constexpr float v"));
  EXPECT_THAT(text, HasSubstr("<4>(args, first)"));
  EXPECT_EQ(list.kernels[0].generated->launches[0].blocks, 1024 * 1024 / (4 * 256));
  if (cuda::has_compiler()) compile_all(list);
}

TEST(Codegen, SixteenBitOperandsArePackedByEight) {
  const compiler::KernelList list =
      kernels_of({{{4096, 768}, DType::bf16}, {{768}, DType::bf16}},
                 [](std::span<const Tensor> x) { return Tensors{gelu(x[0] + x[1])}; });
  const std::string& text = list.kernels[0].generated->source.text;
  EXPECT_THAT(text, HasSubstr("<8>(args, first)"));
  EXPECT_THAT(text, HasSubstr("load_pack<kPack>(args.in1 + first % 768)"));
  EXPECT_THAT(text, HasSubstr("through<bf16, float>"));  // between the ops, as in memory
  if (cuda::has_compiler()) compile_all(list);
}

TEST(Codegen, TransposedAndMisalignedOperandsGoOneByOne) {
  const compiler::KernelList list = kernels_of(
      {{{300, 200}, DType::f32}, {{200, 301}, DType::f32}}, [](std::span<const Tensor> x) {
        return Tensors{transpose(x[0], 0, 1) * slice(x[1], 1, {1, 301})};
      });
  const std::string& text = list.kernels[0].generated->source.text;
  EXPECT_THAT(text, HasSubstr("a0.at[j] = args.in0["));
  EXPECT_THAT(text, HasSubstr("a1.at[j] = args.in1["));
  if (cuda::has_compiler()) compile_all(list);
}

TEST(Codegen, ReductionsTakeWhatMakesTheirOperand) {
  const std::vector<TensorType> types{{{64, 3000, 96}, DType::f32}};
  const auto reduce = [&](const Axes& axes) {
    return kernels_of(types, [&](std::span<const Tensor> x) {
      return Tensors{sum(square(x[0]), axes), max(square(x[0]) + 1.0, axes), mean(abs(x[0]), axes)};
    });
  };
  for (const Axes& axes : {Axes{2}, Axes{1, 2}, Axes{1}, Axes{0}, Axes{0, 1}, Axes{0, 1, 2}}) {
    const compiler::KernelList list = reduce(axes);
    int fused = 0;
    for (const compiler::Kernel& kernel : list.kernels)
      fused += kernel.op && kernel.generated ? 1 : 0;
    EXPECT_GE(fused, 2) << to_text(axes);
    if (cuda::has_compiler()) compile_all(list);
  }
}

TEST(Codegen, ProgramsSideBySideShareFunctionsOfEqualText) {
  std::vector<TensorType> types;
  for (int i = 0; i < 6; ++i) types.push_back({{i < 4 ? 1000 : 64, 100}, DType::f32});
  const compiler::KernelList list = kernels_of(types, [](std::span<const Tensor> x) {
    Tensors outputs;
    for (const Tensor& each : x) outputs.push_back(exp(each) * 0.5 - 1.0);
    return outputs;
  });
  ASSERT_EQ(list.kernels.size(), 1U);
  const std::string& text = list.kernels[0].generated->source.text;
  EXPECT_THAT(text, HasSubstr("namespace part_1 "));
  EXPECT_THAT(text, Not(HasSubstr("namespace part_2 ")));
  EXPECT_FALSE(list.kernels[0].generated->launches[0].is_table);  // they fit the parameters
  if (cuda::has_compiler()) compile_all(list);
}

// What splitting q, k and v apart gives its gradient.
TEST(Codegen, GradientsOfSlicesAreReadWhereTheyAre) {
  const TensorType part{{4, 64, 1, 12, 64}, DType::bf16};
  const compiler::KernelList list = kernels_of({part, part, part}, [](std::span<const Tensor> x) {
    const Shape whole{4, 64, 3, 12, 64};
    return Tensors{place_slice(x[0], whole, 2, {0, 1}) + place_slice(x[1], whole, 2, {1, 2}) +
                   place_slice(x[2], whole, 2, {2, 3})};
  });
  ASSERT_EQ(list.kernels.size(), 1U);
  const std::string& text = list.kernels[0].generated->source.text;
  EXPECT_THAT(text, HasSubstr("first / 768 % 3 >= 1 && first / 768 % 3 < 2 ? load_pack<kPack>"));
  if (cuda::has_compiler()) compile_all(list);
}

TEST(Codegen, ProductsOfTf32OperandsAreToldSo) {
  compiler::PipelineOptions options = on_gpu();
  options.precision.matmul = compiler::MatmulPrecision::tf32;
  graph::Tracer tracer;
  const TensorType type{{64, 64}, DType::f32};
  const Tensor a = tracer.add_input(type, Device::null(), "a"),
               b = tracer.add_input(type, Device::null(), "b");
  const Tensors outputs{matmul(a, b)};
  const runtime::PlannedProgram program =
      runtime::plan_program(tracer.finish({outputs.begin(), outputs.end()}), options);
  ASSERT_EQ(program.kernels.kernels.size(), 1U);
  EXPECT_TRUE(program.kernels.kernels[0].attrs.flag("tf32"));
}

TEST(Codegen, MachineCodeIsKeptOnDiskByAllThatItDependsOn) {
  SKIP_WITHOUT_COMPILER();
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "brrr_codegen_test";
  std::filesystem::remove_all(folder);
  ASSERT_EQ(setenv("XDG_CACHE_HOME", folder.c_str(), 1), 0);
  EXPECT_EQ(cuda::kernel_cache_folder(), (folder / "brrr/kernels").string());
  const auto files = [&] {
    const std::filesystem::directory_iterator all(folder / "brrr/kernels");
    return std::distance(begin(all), end(all));
  };
  const cuda::SourceText source{"kept", "extern \"C\" __global__ void kept() {}\n"};
  cuda::compile_source(source, "sm_80");
  EXPECT_EQ(files(), 1);
  cuda::compile_source(source, "sm_90a");
  EXPECT_EQ(files(), 2);
  const int compiled = cuda::compiler_counts().compiled;
  cuda::compile_source(source, "sm_90a");
  EXPECT_EQ(cuda::compiler_counts().compiled, compiled);
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

TEST(Codegen, AnErrorShowsTheCompilersWordsAndTheSource) {
  SKIP_WITHOUT_COMPILER();
  try {
    cuda::compile_source({"broken", "__global__ void broken() { nonsense(); }\n"}, "sm_80");
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nonsense"));
    EXPECT_THAT(error.what(), HasSubstr("broken.cu"));
  }
}

}  // namespace
}  // namespace brrr
