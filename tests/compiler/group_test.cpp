// Kernels side by side on a GPU: which are joined, which must not be, and what the joined ones are made of. No
// GPU is needed to make or to compile them.
#include "brrr/compiler/lower/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/compiler/lower/verify_plan.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/plan/profile.h"
#include "brrr/runtime/cuda/cuda_program.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

compiler::PipelineOptions on_gpu(std::string_view left_out = "") {
  compiler::PipelineOptions options;
  options.device = Device::null(), options.target = h200();
  return compiler::without(options, left_out);
}

template <typename Fn>
runtime::PlannedProgram planned(const std::vector<TensorType>& types, Fn fn,
                                const compiler::PipelineOptions& options = on_gpu()) {
  graph::Tracer tracer;
  std::vector<Tensor> handles;
  for (const TensorType& type : types)
    handles.push_back(tracer.add_input(type, Device::null(), join_text("x", handles.size())));
  const Tensors outputs = fn(handles);
  return runtime::plan_program(tracer.finish({outputs.begin(), outputs.end()}), options);
}

runtime::PlannedProgram step_of(std::string_view model, int64_t batch, int64_t seq,
                                std::string_view left_out = "") {
  compiler::PipelineOptions pipeline = on_gpu(left_out);
  pipeline.precision.policy = compiler::Precision::bf16_mixed;
  // With what else would be kernels of sums before the update.
  pipeline.epilogues.most_summed_bytes = std::numeric_limits<int64_t>::max();
  return training::plan_step(plain_step(model, {.batch = batch, .seq = seq}, pipeline));
}

Cost cost_of(const compiler::KernelList& list) {
  Cost cost;
  for (const compiler::Kernel& kernel : list.kernels) cost += kernel.cost;
  return cost;
}

// As far as they are generated.
size_t launches_of(const compiler::KernelList& list) {
  size_t launches = 0;
  for (const compiler::Kernel& kernel : list.kernels)
    launches += kernel.generated ? kernel.generated->launches.size() : 1;
  return launches;
}

size_t reductions_of(const compiler::KernelList& list, graph::Phase phase) {
  return static_cast<size_t>(
      std::count_if(list.kernels.begin(), list.kernels.end(), [&](const compiler::Kernel& kernel) {
        return kernel.phase == phase &&
               (!kernel.members.empty() || (kernel.op && !kernel.attachments.empty()));
      }));
}

// What runs side by side runs in any order: nobody reads or writes what another one writes.
void expect_independent(const compiler::KernelList& list) {
  for (const compiler::Kernel& kernel : list.kernels) {
    for (const compiler::Member& writer : kernel.members) {
      for (size_t o = writer.first_output; o < writer.first_output + writer.outputs; ++o) {
        const compiler::BufferId made = kernel.outputs[o].buffer;
        for (const compiler::Member& other : kernel.members) {
          if (&other == &writer) continue;
          const compiler::Kernel own = compiler::alone(kernel, other);
          for (const std::vector<compiler::OperandRef>* refs : {&own.inputs, &own.outputs}) {
            for (const compiler::OperandRef& ref : *refs)
              EXPECT_NE(ref.buffer, made) << kernel.name;
          }
        }
      }
    }
  }
}

const compiler::Kernel* joined_in(const compiler::KernelList& list) {
  for (const compiler::Kernel& kernel : list.kernels) {
    if (!kernel.members.empty()) return &kernel;
  }
  return nullptr;
}

TEST(GroupOnGpu, NormsOfAllGradientsAreOneKernel) {
  const runtime::PlannedProgram one_by_one = step_of("char-gpt", 12, 256, "group_kernels"),
                                program = step_of("char-gpt", 12, 256);
  EXPECT_EQ(reductions_of(one_by_one.kernels, graph::Phase::update), 76U);  // as many as parameters
  EXPECT_EQ(reductions_of(program.kernels, graph::Phase::update), 1U);
  const compiler::Kernel* joined = joined_in(program.kernels);
  ASSERT_NE(joined, nullptr);
  // The gradient of the embedding has two parts, of the head and of the input.
  EXPECT_EQ(joined->name, "square+sum x 75 and 1 more");
  EXPECT_EQ(plan::kernel_label(*joined), joined->name);
  EXPECT_EQ(joined->members.size(), 76U);
  EXPECT_EQ(joined->generated->launches.size(), 2U);  // parts, and their sums
  const compiler::Kernel& update =
      *std::max_element(program.kernels.kernels.begin(), program.kernels.kernels.end(),
                        [](const compiler::Kernel& a, const compiler::Kernel& b) {
                          return a.attachments.size() < b.attachments.size();
                        });
  EXPECT_EQ(update.attachments.size(), 76U);
  EXPECT_EQ(update.generated->launches.size(), 1U);
  EXPECT_THAT(plan::kernel_label(update), HasSubstr(" more x "));
  EXPECT_EQ(cost_of(program.kernels), cost_of(one_by_one.kernels));
  EXPECT_LT(launches_of(program.kernels) + 170, launches_of(one_by_one.kernels));
  expect_independent(program.kernels);
  // Gradients wait for the update in any case.
  EXPECT_LE(program.plan.arena_bytes, one_by_one.plan.arena_bytes);
}

TEST(GroupOnGpu, AMemberIsTheKernelThatRunsAlone) {
  const std::vector<TensorType> types{{{1'000'003}, DType::f32}, {{7}, DType::f32}};
  const auto norms = [](std::span<const Tensor> x) {
    return Tensors{sum(square(x[0])), sum(square(x[1]))};
  };
  const compiler::KernelList list = planned(types, norms).kernels,
                             apart = planned(types, norms, on_gpu("group_kernels")).kernels;
  ASSERT_EQ(list.kernels.size(), 1U);
  ASSERT_EQ(apart.kernels.size(), 2U);
  const compiler::GeneratedKernel& joined = *list.kernels[0].generated;
  int64_t blocks[2] = {0, 0};
  for (const compiler::Kernel& kernel : apart.kernels) {
    const compiler::GeneratedKernel& own = *kernel.generated;
    // All but the head and the entry points.
    const size_t begin = own.source.text.find("struct elements_args"),
                 end = own.source.text.find("\nextern \"C\"");
    ASSERT_LT(begin, end);
    EXPECT_THAT(joined.source.text, HasSubstr(own.source.text.substr(begin, end - begin)));
    for (size_t l = 0; l < own.launches.size(); ++l) blocks[l] += own.launches[l].blocks;
  }
  ASSERT_EQ(joined.launches.size(), 2U);
  for (size_t l = 0; l < 2; ++l) EXPECT_EQ(joined.launches[l].blocks, blocks[l]);
}

TEST(GroupOnGpu, TablesAreCountedToTheByte) {
  const auto norms_of = [](size_t count) {
    return planned(std::vector<TensorType>(count, {{100'000}, DType::f32}),
                   [](std::span<const Tensor> x) {
                     Tensors norms;
                     for (const Tensor& each : x) norms.push_back(sum(square(each)));
                     return norms;
                   })
        .kernels;
  };
  // Two pointers a tensor for its parts, where they are and where their sums go, and two to join them.
  const compiler::KernelList many = norms_of(300), few = norms_of(5);
  ASSERT_EQ(many.kernels.size(), 1U);
  EXPECT_EQ(runtime::side_bytes(many), Bytes(300 * 4 * 8));
  EXPECT_EQ(runtime::side_bytes(few), Bytes(0));  // parameters of the launch
  EXPECT_FALSE(few.kernels[0].generated->launches[0].is_table);
  EXPECT_EQ(few.kernels[0].generated->launches[0].pointers.size(), 10U);
  // Scratch of each begins at a multiple of 256 bytes: 13 parts of 4 bytes.
  EXPECT_EQ(few.kernels[0].generated->workspace_bytes, 5 * 256);
  if (!cuda::has_compiler()) return;
  for (const compiler::KernelList* list : {&few, &many})
    EXPECT_FALSE(cuda::compile_source(list->kernels[0].generated->source, "sm_90a")->empty());
}

// A program over numbers may read and write more of them than the parameters of a launch hold.
TEST(GroupOnGpu, APointerThatIsNoParameterIsInATable) {
  const std::vector<TensorType> types(400, {{}, DType::f32});
  const compiler::KernelList list = planned(types, [](std::span<const Tensor> x) {
                                      Tensors sums{x[0] * 2.0};
                                      for (size_t i = 1; i < x.size(); ++i)
                                        sums.push_back(sums[sums.size() - 1] + x[i]);
                                      return sums;
                                    }).kernels;
  ASSERT_EQ(list.kernels.size(), 1U);
  const compiler::GeneratedLaunch& launch = list.kernels[0].generated->launches.at(0);
  EXPECT_EQ(launch.pointers.size(), 800U);
  EXPECT_TRUE(launch.is_table);
  EXPECT_EQ(runtime::side_bytes(list), Bytes(800 * 8));
  if (cuda::has_compiler()) {
    EXPECT_FALSE(cuda::compile_source(list.kernels[0].generated->source, "sm_90a")->empty());
  }
}

TEST(GroupOnGpu, WhatDependsOnAGroupIsNotInIt) {
  const TensorType type{{300, 40}, DType::f32};
  const runtime::PlannedProgram program =
      planned({type, type, type}, [](std::span<const Tensor> x) {
        const Tensor a = sum(square(x[0]));
        const Tensor b = sum(square(x[1] * a));  // reads the first
        const Tensor c = sum(square(x[2])), d = sum(abs(x[2]));
        return Tensors{b, sum(exp(x[1]) * c), d};  // and the last reads the third
      });
  expect_independent(program.kernels);
  EXPECT_GE(program.kernels.kernels.size(), 2U);
  EXPECT_NE(joined_in(program.kernels), nullptr);  // the independent ones are joined all the same
  // Every value is made before it is read.
  std::set<int32_t> made;
  for (const compiler::Kernel& kernel : program.kernels.kernels) {
    for (const compiler::OperandRef& ref : kernel.inputs) {
      if (program.kernels.buffers[ref.buffer.index()].place != compiler::Place::input) {
        EXPECT_TRUE(made.count(ref.buffer.value)) << kernel.name;
      }
    }
    for (const compiler::OperandRef& ref : kernel.outputs) made.insert(ref.buffer.value);
  }
}

TEST(GroupOnGpu, UpdatesThatReadEachOtherStayApart) {
  const DeviceScope scope(Device::null());
  const Tensor p = zeros({64, 32}), q = zeros({32}), r = zeros({7});
  const runtime::PlannedProgram program =
      planned({{{}, DType::f32}}, [&](std::span<const Tensor> x) {
        p.copy_from(p - x[0] * exp(p));
        q.copy_from(q - x[0] * select(p, 0, 3));  // the new p
        r.copy_from(r - x[0] * exp(r));
        return Tensors{x[0] + 1.0};
      });
  for (const compiler::Kernel& kernel : program.kernels.kernels) {
    std::set<int32_t> written;
    for (const compiler::OperandRef& ref : kernel.outputs) written.insert(ref.buffer.value);
    for (size_t a = 0; a < kernel.attachments.size(); ++a) {
      for (const int o : kernel.attachments[a].outputs) {
        const compiler::BufferId made = kernel.outputs[static_cast<size_t>(o)].buffer;
        for (size_t b = 0; b < kernel.attachments.size(); ++b) {
          for (const int i : kernel.attachments[b].inputs) {
            if (a != b) {
              EXPECT_NE(kernel.inputs[static_cast<size_t>(i)].buffer, made) << kernel.name;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(program.kernels.kernels.size(), 2U);  // r goes with one of them
}

// The norm of old weights beside that of new ones: the group may not wait until the weights are written, or
// they would be written elsewhere and copied.
TEST(GroupOnGpu, NormsOfStatesDoNotWaitForTheirUpdate) {
  const DeviceScope scope(Device::null());
  const Tensor p = zeros({500, 64}), q = zeros({900});
  const runtime::PlannedProgram program =
      planned({{{}, DType::f32}}, [&](std::span<const Tensor> x) {
        const Tensor before = sum(square(p));
        p.copy_from(p - x[0] * exp(p));
        const Tensor after = sum(square(p)), other = sum(square(q));
        return Tensors{before, after, other};
      });
  expect_independent(program.kernels);
  size_t writer = 0, reader = 0;
  for (size_t k = 0; k < program.kernels.kernels.size(); ++k) {
    const compiler::Kernel& kernel = program.kernels.kernels[k];
    EXPECT_NE(kernel.op, &copy_op);
    for (const compiler::OperandRef& ref : kernel.outputs) {
      const compiler::Buffer& buffer = program.kernels.buffers[ref.buffer.index()];
      if (buffer.place == compiler::Place::state) writer = k;
      if (buffer.place == compiler::Place::output && buffer.index == 0) reader = k;
    }
  }
  EXPECT_LT(reader, writer);
}

// Large operands that nobody reads later are not held for the sake of a launch.
TEST(GroupOnGpu, AGroupHoldsNoMemoryBack) {
  const TensorType type{{1024, 1024}, DType::f32};
  const auto chain = [](std::span<const Tensor> x) {
    Tensor y = x[0];
    Tensors norms;
    for (int i = 0; i < 6; ++i) {
      y = cumsum(y, 0);  // no program: it cannot join what is before and behind
      norms.push_back(sum(square(y)));
    }
    norms.push_back(y);
    return norms;
  };
  const runtime::PlannedProgram program = planned({type}, chain),
                                apart = planned({type}, chain, on_gpu("group_kernels"));
  EXPECT_LE(program.plan.arena_bytes, apart.plan.arena_bytes + (int64_t{1} << 20));
  EXPECT_EQ(reductions_of(program.kernels, graph::Phase::forward), 6U);
}

TEST(GroupOnGpu, ReductionsOfAllKindsCompileSideBySide) {
  if (!cuda::has_compiler()) GTEST_SKIP() << "no NVRTC here: " << cuda::compiler_name();
  std::vector<TensorType> types;
  for (const int64_t size : {1, 7, 384, 2048, 2049, 8192, 1'000'003, 589'824})
    types.push_back({{size}, DType::f32});
  types.push_back({{4097, 3}, DType::bf16});
  types.push_back({{300, 96}, DType::f32});
  const compiler::KernelList list = planned(types, [](std::span<const Tensor> x) {
                                      Tensors results;
                                      for (const Tensor& each : x)
                                        results.push_back(sum(square(each)));
                                      results.push_back(sum(exp(x[9]), {0}));
                                      results.push_back(sqrt(mean(abs(x[9]), {1})));
                                      results.push_back(max(x[8] * 2.0, {0}));
                                      return results;
                                    }).kernels;
  ASSERT_EQ(list.kernels.size(), 1U);
  EXPECT_EQ(list.kernels[0].members.size(), 13U);
  EXPECT_THAT(list.kernels[0].name, StartsWith("square+sum x "));
  for (const char* architecture : {"sm_80", "sm_90a"})
    EXPECT_FALSE(cuda::compile_source(list.kernels[0].generated->source, architecture)->empty());
}

TEST(GroupOnGpu, TheStepOfTheCharacterModelCompiles) {
  if (!cuda::has_compiler()) GTEST_SKIP() << "no NVRTC here: " << cuda::compiler_name();
  const runtime::PlannedProgram program = step_of("char-gpt", 12, 256);
  for (const compiler::Kernel& kernel : program.kernels.kernels) {
    if (kernel.generated && !kernel.generated->launches.empty()) {
      EXPECT_FALSE(cuda::compile_source(kernel.generated->source, "sm_90a")->empty());
    }
  }
}

}  // namespace
}  // namespace brrr
