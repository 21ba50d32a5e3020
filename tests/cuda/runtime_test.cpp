// The device itself: memory, the ledger, copies, errors, captured graphs.
#include "brrr/device/cuda/runtime.h"

#include <numeric>

#include "brrr/device/cuda/generated.h"
#include "brrr/graph/call.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"
#include "support/error_of.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

TEST(CudaRuntime, SaysThatThereIsNoGpuWhereThereIsNone) {
  if (cuda::gpu_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  const std::string words = error_of([] { empty({2}, DType::f32, kGpu); });
  EXPECT_TRUE(words.find("no GPU") != std::string::npos ||
              words.find("no CUDA") != std::string::npos)
      << words;
}

// The lecture's question: two matrices of 32 x 32 f32 are 8192 bytes, no more and no less.
TEST(CudaRuntime, LedgerCountsExactBytes) {
  BRRR_NEEDS_GPU();
  const Bytes before = ledger(kGpu).live();
  const Tensor x = empty({32, 32}, DType::f32, kGpu), y = empty({32, 32}, DType::f32, kGpu);
  EXPECT_EQ((ledger(kGpu).live() - before).value(), 8192);
}

TEST(CudaRuntime, BlocksAreUsedAgain) {
  BRRR_NEEDS_GPU();
  const auto take_and_give_back = [] { const Tensor x = empty({1 << 20}, DType::f32, kGpu); };
  take_and_give_back();
  const cuda::MemoryState before = cuda::memory_state(0);
  for (int i = 0; i < 10; ++i) take_and_give_back();
  const cuda::MemoryState after = cuda::memory_state(0);
  EXPECT_EQ(after.held_by_brrr, before.held_by_brrr);
  EXPECT_GE(after.kept_for_reuse, 4 << 20);
  EXPECT_GT(after.total, after.free);
}

TEST(CudaRuntime, OutOfMemoryNamesTheHolders) {
  BRRR_NEEDS_GPU();
  const std::string words = error_of([] { empty({int64_t{1} << 44}, DType::f32, kGpu); });
  EXPECT_NE(words.find("out of memory"), std::string::npos) << words;
  EXPECT_NE(words.find("other programs"), std::string::npos) << words;
  EXPECT_EQ(sum(ones({4}, {.device = kGpu})).item<float>(), 4) << "the device still works";
}

// One temporary of 4 TiB: refused when the program is compiled, before it runs.
TEST(CudaRuntime, AProgramThatCannotFitIsRefusedByItsPlan) {
  BRRR_NEEDS_GPU();
  const Tensor column = ones({1 << 20, 16}, {.device = kGpu});
  auto f =
      runtime::compile([](const Tensor& x) { return sum(softmax(matmul(x, transpose(x)), -1)); });
  const std::string words = error_of([&] { f(column); });
  EXPECT_NE(words.find("out of memory by the plan: the program needs "), std::string::npos)
      << words;
  EXPECT_NE(words.find("other programs"), std::string::npos) << words;
  EXPECT_EQ(sum(ones({4}, {.device = kGpu})).item<float>(), 4) << "the device still works";
}

TEST(CudaRuntime, AFailedLaunchNamesTheKernelItsSizesAndArguments) {
  BRRR_NEEDS_GPU();
  if (!cuda::has_compiler()) GTEST_SKIP() << "no NVRTC here: " << cuda::compiler_name();
  const cuda::SourceText source{"idle", "extern \"C\" __global__ void idle(int a, int b) {}\n"};
  const cuda::Kernel& kernel = cuda::generated_kernel(source, "idle", 0);
  int first = 123456, second = 77;
  void* const arguments[] = {&first, &second};
  const std::string words =
      error_of([&] { kernel.launch({.grid = {3}, .block = {4096}}, cuda::stream(0), arguments); });
  for (const char* part : {"launch of idle", "grid 3x1x1", "block 4096x1x1", "123456 77"})
    EXPECT_NE(words.find(part), std::string::npos) << words;
}

const OpDef kBroken{.name = "broken",
                    .formula = "x",
                    .kind = OpKind::other,
                    .infer = [](const InferCall& call) -> TensorTypes {
                      return {{call.shape(0), call.dtype(0)}};
                    }};

TEST(CudaRuntime, AFailedKernelOfAnOpNamesItsOperands) {
  BRRR_NEEDS_GPU();
  register_cuda_kernel(
      kBroken, {.run = [](const CudaCall&) { fail("cuda: launch of broken failed: reason"); }});
  const Tensor x = transpose(empty({2, 3}, DType::bf16, kGpu));
  const std::string words = error_of([&] { call_op(kBroken, {&x, 1}, {{"size", int64_t{5}}}); });
  EXPECT_EQ(words.find("cuda: launch of broken failed: reason; it ran broken of bf16[3, 2] "
                       "strides [1, 3] -> bf16[3, 2] {size=5}"),
            0U)
      << words;
}

TEST(CudaRuntime, ElementsGoThereAndBack) {
  BRRR_NEEDS_GPU();
  const Tensor x = arange(100003);
  const Tensor back = to(to(x, kGpu), Device::cpu());
  EXPECT_EQ(back.to_vector<float>(), x.to_vector<float>());
}

TEST(CudaRuntime, BadIndicesAreAnErrorAndNotABadAccess) {
  BRRR_NEEDS_GPU();
  const Tensor table = to(ones({4, 2}), kGpu);
  const Tensor ids = to(from_values(std::vector<int64_t>{1, 7}, {2}), kGpu);
  const std::string words = error_of([&] { to(embedding(table, ids), Device::cpu()); });
  EXPECT_NE(words.find("embedding: index 7 is out of range"), std::string::npos) << words;
  EXPECT_EQ(sum(table).item<float>(), 8) << "the device still works";
}

TEST(CudaRuntime, CapturedWorkRunsAgain) {
  BRRR_NEEDS_GPU();
  const cuda::Stream stream = cuda::stream(0);
  const Tensor x = zeros({1000}, {.device = kGpu}), one = ones({1000}, {.device = kGpu});
  x.copy_from(x + one);  // first use compiles and loads what the graph will hold
  cuda::Capture recording(stream);
  x.copy_from(one);
  const cuda::Graph graph = recording.finish();
  EXPECT_GT(graph.nodes(), 0);
  x.fill(5);
  graph.launch(stream);
  EXPECT_EQ(x[7].item<float>(), 1);
}

TEST(CudaRuntime, RandomBitsAreThoseOfTheCpu) {
  BRRR_NEEDS_GPU();
  const RandomKey key{.seed = 7, .stream = 3, .draw = 1};
  const Tensor cpu = uniform({1001}, key), gpu = uniform({1001}, key, {}, {.device = kGpu});
  EXPECT_EQ(to(gpu, Device::cpu()).to_vector<float>(), cpu.to_vector<float>());
}

}  // namespace
}  // namespace brrr
