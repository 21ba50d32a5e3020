// A loss and its gradient in one op: where they are joined, where they are not, and that it means the same.
#include "brrr/compiler/fuse/join_losses.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/head/chunk_head.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

constexpr int64_t kRows = 12, kWidth = 6, kVocab = 10;

int count_ops(const graph::Graph& graph, const OpDef& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const graph::Node& node) { return node.op == &op; }));
}

std::vector<Tensor> inputs() {
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < kRows; ++i) targets.push_back(i * 7 % kVocab);
  return {sample_values({kRows, kWidth}, 1), sample_values({kVocab, kWidth}, 2),
          from_values(targets, {kRows})};
}

// The mean loss of x W^T and its gradients, as traced.
graph::Graph trace_head(const CrossEntropyOptions& options = {}) {
  graph::Tracer tracer;
  std::vector<Tensor> handles;
  for (const Tensor& x : inputs())
    handles.push_back(tracer.add_input(x.type(), x.device(), "operand"));
  for (int i : {0, 1}) handles[static_cast<size_t>(i)].require_grad();
  const Tensor loss = cross_entropy(linear(handles[0], handles[1]), handles[2], options);
  std::vector<Tensor> results{loss.detach()};
  for (const Tensor& gradient : grad(loss, {handles[0], handles[1]})) results.push_back(gradient);
  return tracer.finish(results);
}

graph::Graph in_chunks(const graph::Graph& graph) {
  return compiler::chunk_heads(graph, {.chunk_bytes = 0, .min_rows = 4, .row_multiple = 1});
}

TEST(JoinLosses, TakesEveryChunkOfAHead) {
  for (const CrossEntropyOptions& options :
       {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.1, .z_loss = 1e-3}}) {
    const graph::Graph chunked = in_chunks(trace_head(options)),
                       joined = compiler::join_losses(chunked);
    graph::verify(joined, "join_losses");
    EXPECT_EQ(count_ops(chunked, cross_entropy_op), 3);
    EXPECT_EQ(count_ops(joined, classifier_op), 3);
    EXPECT_EQ(count_ops(joined, cross_entropy_op), 0);
    EXPECT_EQ(count_ops(joined, cross_entropy_backward_op), 0);
    const std::vector<Tensor> expected = graph::interpret(chunked, inputs()).outputs,
                              got = graph::interpret(joined, inputs()).outputs;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), expected[i].to_vector<float>()) << "result " << i;
  }
}

// The mean of a whole head is taken before anything comes back.
TEST(JoinLosses, LeavesLossesThatAreReadBefore) {
  const graph::Graph whole = trace_head();
  EXPECT_EQ(count_ops(compiler::join_losses(whole), classifier_op), 0);
}

TEST(JoinLosses, IsAPassOfGpuPrograms) {
  compiler::PipelineOptions all;
  all.head = {.chunk_bytes = 0, .min_rows = 64, .row_multiple = 1};
  all.precision.policy = compiler::Precision::bf16_mixed;
  all.device = Device::null(), all.target = h200();
  const auto count = [&](const compiler::PipelineOptions& pipeline, std::string_view name) {
    const runtime::PlannedProgram program =
        training::plan_step(plain_step("gpt2-tiny", {.batch = 4, .seq = 32}, pipeline));
    return std::count_if(program.kernels.kernels.begin(), program.kernels.kernels.end(),
                         [&](const compiler::Kernel& kernel) { return kernel.name == name; });
  };
  EXPECT_EQ(count(all, "classifier"), 2);
  EXPECT_EQ(count(all, "cross_entropy"), 0);
  EXPECT_EQ(count(compiler::without(all, "join_losses"), "cross_entropy"), 2);
}

}  // namespace
}  // namespace brrr
