// Results that lie where they would be copied to: which kernels that saves, where they lie, and what must stay.
#include <gtest/gtest.h>

#include <functional>

#include "brrr/compiler/lower/copy_elision.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

compiler::KernelList kernels_of(const graph::Graph& graph, std::string_view left_out = "") {
  compiler::PipelineOptions options;
  options.device = Device::null(), options.target = h200();
  return runtime::plan_program(graph, compiler::without(options, left_out)).kernels;
}

compiler::KernelList step_kernels(const char* model, std::string_view left_out = "") {
  compiler::PipelineOptions pipeline;
  pipeline.device = Device::null(), pipeline.target = h200();
  pipeline.precision.policy = compiler::Precision::bf16_mixed;
  pipeline.remat.policy = compiler::RematPolicy::none;
  return training::plan_step(plain_step(model, {.batch = 4, .seq = 128, .layers = 2},
                                        compiler::without(pipeline, left_out)))
      .kernels;
}

// How often this op runs over so many elements, alone or in a fused kernel; over any number by default.
int count_of(const compiler::KernelList& list, const OpDef& op, int64_t elements = 0) {
  int count = 0;
  for (const compiler::Kernel& kernel : list.kernels) {
    for (const compiler::KernelPart& part : kernel.parts)
      count += part.op == &op && (elements == 0 || part.elements == elements) ? 1 : 0;
  }
  return count;
}

TEST(Landing, HeadsOfGpt2BecomeRows) {
  constexpr int64_t kBatch = 4, kSeq = 128, kWidth = 768;
  const compiler::KernelList with = step_kernels("gpt2-124m"),
                             bare = step_kernels("gpt2-124m", "land_results");
  EXPECT_EQ(count_of(with, copy_op, kBatch * kSeq * kWidth), 0);
  EXPECT_EQ(count_of(with, concat_op, kBatch * kSeq * 3 * kWidth), 0);
  EXPECT_EQ(count_of(bare, copy_op, kBatch * kSeq * kWidth), 2);
  EXPECT_EQ(count_of(bare, concat_op, kBatch * kSeq * 3 * kWidth), 2);
  for (const compiler::Kernel& kernel : with.kernels) {
    if (kernel.op == &attention_op) {
      EXPECT_EQ(kernel.outputs[0].layout.strides, (Strides{kSeq * kWidth, 64, kWidth, 1}));
      EXPECT_TRUE(kernel.outputs[1].layout.is_contiguous());
    }
    if (kernel.op != &attention_backward_op) continue;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(kernel.outputs[i].buffer, kernel.outputs[0].buffer);
      EXPECT_EQ(kernel.outputs[i].layout.strides, (Strides{kSeq * 3 * kWidth, 64, 3 * kWidth, 1}));
      EXPECT_EQ(kernel.outputs[i].layout.offset, static_cast<int64_t>(i) * kWidth);
    }
    EXPECT_EQ(with.buffers[kernel.outputs[0].buffer.index()].bytes, kBatch * kSeq * 3 * kWidth * 2);
  }
}

TEST(Landing, TurnedHeadsOfLlamaBecomeRowsOfGradients) {
  // In a layer: the result of attention, and the gradients of q, k and v.
  EXPECT_EQ(count_of(step_kernels("llama-tiny", "land_results"), copy_op), 2 * 4);
  EXPECT_EQ(count_of(step_kernels("llama-tiny"), copy_op), 0);
}

// Rows of 12 bytes do not begin at multiples of 16.
TEST(Landing, RowsOfPartsOfChunksAreCopied) {
  for (const int64_t dim : {6, 8}) {
    graph::Tracer tracer;
    const Tensor q = tracer.add_input({{2, 3, 5, dim}, DType::bf16}, Device::null(), "q");
    const Tensor rows = reshape(transpose(attention(q, q, q), 1, 2), {10, 3 * dim});
    const compiler::KernelList list = kernels_of(tracer.finish(std::vector<Tensor>{rows * 2.0}));
    EXPECT_EQ(count_of(list, copy_op, q.numel()), dim == 6 ? 1 : 0) << dim;
  }
}

// A part twice, a part that is no result of attention, and a result that the caller gets.
TEST(Landing, WhatIsReadElsewhereStays) {
  const auto joins =
      [](const std::function<std::vector<Tensor>(const Tensor& y, const Tensor& x)>& rest) {
        graph::Tracer tracer;
        const Tensor q = tracer.add_input({{2, 3, 5, 8}, DType::bf16}, Device::null(), "q");
        return count_of(kernels_of(tracer.finish(rest(attention(q, q, q), q))), concat_op);
      };
  EXPECT_EQ(joins([](const Tensor& y, const Tensor&) { return std::vector{concat({y}, 1) * 2.0}; }),
            0);
  EXPECT_EQ(joins([](const Tensor& y, const Tensor&) {
              return std::vector{concat({y, y}, 1) * 2.0};
            }),
            1);
  EXPECT_EQ(joins([](const Tensor& y, const Tensor& x) {
              return std::vector{concat({y, x}, 1) * 2.0};
            }),
            1);
  EXPECT_EQ(joins([](const Tensor& y, const Tensor&) { return std::vector{concat({y}, 1)}; }), 1);
  EXPECT_EQ(joins([](const Tensor& y, const Tensor&) {
              return std::vector{concat({y}, 1) * 2.0, y};
            }),
            1);
}

}  // namespace
}  // namespace brrr
