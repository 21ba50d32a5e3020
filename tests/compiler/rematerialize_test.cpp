// The pass on small programs: what it makes of them, and that they compute the same.
#include "brrr/compiler/remat/rematerialize.h"

#include <gtest/gtest.h>

#include "brrr/compiler/lower/peak_holders.h"
#include "brrr/compiler/remat/remat_rewrite.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/create/creation.h"
#include "support/error_of.h"

namespace brrr {
namespace {

compiler::PlannedGraph plan(const graph::Graph& graph) {
  compiler::PlannedGraph planned{.kernels = compiler::lower(graph, compiler::fuse(graph)),
                                 .memory = {}};
  compiler::add_workspaces(planned.kernels, [](const compiler::Kernel& kernel) {
    return compiler::cpu_workspace_bytes(kernel, thread_pool());
  });
  planned.memory = compiler::plan_memory(planned.kernels);
  return planned;
}

graph::Graph rewritten(const graph::Graph& graph, const compiler::RematOptions& options = {}) {
  graph::Graph result = compiler::rematerialize(graph, options, plan);
  graph::verify(result, "rematerialize");
  return result;
}

constexpr const char* kChain = R"(input %0: f32[1000000] "x"
%1: f32[1000000] = exp %0
%2: f32[1000000] = sin %1
%3: f32[] = sum %2 {axes=[0] keep_dims=false}
backward
%4: f32[1000000] = cos %1
%5: f32[1000000] = mul %4 %3
%6: f32[1000000] = mul %5 %1
return %3 %6
)";

TEST(Rematerialize, SecondRunsStandBeforeTheirFirstReader) {
  EXPECT_EQ(graph::to_text(rewritten(graph::parse_graph(kChain))), R"(input %0: f32[1000000] "x"
%1: f32[1000000] = exp %0
%2: f32[1000000] = sin %1
%3: f32[] = sum %2 {axes=[0] keep_dims=false}
recompute
%4: f32[1000000] = exp %0
backward
%5: f32[1000000] = cos %4
%6: f32[1000000] = mul %5 %3
%7: f32[1000000] = mul %6 %4
return %3 %7
)");
}

// The largest |x| is read late, by a report: it is kept, and not the tensor that it was taken of.
TEST(Rematerialize, AReductionIsNotPutOffWithItsOperand) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[1000000] "x"
%1: f32[1000000] = exp %0
%2: f32[1000000] = abs %1
%3: f32[] = max %2 {axes=[0] keep_dims=false}
%4: f32[] = sum %1 {axes=[0] keep_dims=false}
backward
%5: f32[] = mul %3 %4
return %5
)");
  EXPECT_EQ(graph::to_text(rewritten(graph)), graph::to_text(graph));
}

TEST(Rematerialize, NoneLeavesTheProgramAlone) {
  const graph::Graph graph = graph::parse_graph(kChain);
  EXPECT_EQ(graph::to_text(rewritten(graph, {.policy = compiler::RematPolicy::none})),
            graph::to_text(graph));
}

// The forward part writes nothing but the sum, and the backward part reads x alone.
TEST(Rematerialize, FusionDoesNotUndoIt) {
  const compiler::PlannedGraph kept = plan(graph::parse_graph(kChain)),
                               again = plan(rewritten(graph::parse_graph(kChain)));
  const auto bytes = [](const compiler::PlannedGraph& planned) {
    int64_t total = 0;
    for (const compiler::Kernel& kernel : planned.kernels.kernels)
      total += kernel.cost.bytes_read + kernel.cost.bytes_written;
    return total;
  };
  EXPECT_EQ(bytes(again), bytes(kept) - 4'000'000);
  EXPECT_LT(again.memory.arena_bytes, kept.memory.arena_bytes);
}

// Layer 1 is needed first and made first; layer 0 comes when its turn is.
constexpr const char* kLayers = R"(input %0: f32[8, 8] "x"
state %1: f32[8, 8] "a"
state %2: f32[8, 8] "b"
segment 0 "h.0"
segment 1 "h.1"
%3: f32[8, 8] = matmul %0 %1 @0
%4: f32[8, 8] = exp %3 @0
%5: f32[8, 8] = matmul %4 %2 @0
%6: f32[8, 8] = matmul %5 %1 @1
%7: f32[8, 8] = exp %6 @1
%8: f32[8, 8] = matmul %7 %2 @1
backward
%9: f32[8, 8] = mul %8 %7
%10: f32[8, 8] = mul %9 %5
%11: f32[8, 8] = mul %10 %4
%12: f32[8, 8] = mul %11 %3
write "a" %12
return %8
)";

TEST(Rematerialize, FullRunsLayersAgainFromTheirInputs) {
  EXPECT_EQ(graph::to_text(
                rewritten(graph::parse_graph(kLayers), {.policy = compiler::RematPolicy::full})),
            R"(input %0: f32[8, 8] "x"
state %1: f32[8, 8] "a"
state %2: f32[8, 8] "b"
segment 0 "h.0"
segment 1 "h.1"
%3: f32[8, 8] = matmul %0 %1 @0
%4: f32[8, 8] = exp %3 @0
%5: f32[8, 8] = matmul %4 %2 @0
%6: f32[8, 8] = matmul %5 %1 @1
%7: f32[8, 8] = exp %6 @1
%8: f32[8, 8] = matmul %7 %2 @1
recompute
%9: f32[8, 8] = matmul %5 %1 @1
%10: f32[8, 8] = exp %9 @1
backward
%11: f32[8, 8] = mul %8 %10
%12: f32[8, 8] = mul %11 %5
recompute
%13: f32[8, 8] = matmul %0 %1 @0
%14: f32[8, 8] = exp %13 @0
backward
%15: f32[8, 8] = mul %12 %14
%16: f32[8, 8] = mul %15 %13
write "a" %16
return %8
)");
}

// The largest |x| in a layer is for the update, as those of 8-bit operands are: it is kept, since a second run for it
// would hold x until there.
TEST(Rematerialize, WhatTheUpdateReadsOfALayerDoesNotRunAgain) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[8, 8] "x"
state %1: f32[8, 8] "a"
state %2: f32[] "largest"
segment 0 "h.0"
%3: f32[8, 8] = matmul %0 %1 @0
%4: f32[8, 8] = abs %3 @0
%5: f32[] = max %4 {axes=[0, 1] keep_dims=false} @0
%6: f32[8, 8] = exp %3 @0
%7: f32[] = sum %6 {axes=[0, 1] keep_dims=false}
backward
%8: f32[8, 8] = mul %7 %3
update
%9: f32[] = maximum %2 %5
%10: f32[8, 8] = sub %1 %8
write "a" %10
write "largest" %9
return %7
)");
  for (const bool is_checkpoint : {false, true}) {
    graph::Graph layer = graph;
    layer.segments[0].checkpoint = is_checkpoint;
    const compiler::RematPolicy policy =
        is_checkpoint ? compiler::RematPolicy::selective : compiler::RematPolicy::full;
    const graph::Graph result = rewritten(layer, {.policy = policy});
    int again = 0;
    for (const graph::Node& node : result.nodes) {
      if (node.phase != graph::Phase::recompute) continue;
      EXPECT_EQ(node.op->name, "matmul");
      ++again;
    }
    EXPECT_EQ(again, 1) << compiler::policy_name(policy);
  }
}

// "a" is written at the end, and what runs again must see it as it was.
TEST(Rematerialize, SecondRunsSeeStatesAsTheyWere) {
  graph::Graph graph = graph::parse_graph(kLayers);
  const Tensor x = full({8, 8}, 0.1), a = full({8, 8}, 0.2), b = full({8, 8}, 0.3);
  graph.states[0].tensor = a;
  graph.states[1].tensor = b;
  const graph::Interpreted expected = graph::interpret(graph, {{x}});
  for (const compiler::RematPolicy policy :
       {compiler::RematPolicy::selective, compiler::RematPolicy::full,
        compiler::RematPolicy::budget}) {
    const graph::Interpreted found = graph::interpret(rewritten(graph, {.policy = policy}), {{x}});
    EXPECT_EQ(found.outputs[0].to_vector<float>(), expected.outputs[0].to_vector<float>());
    EXPECT_EQ(found.states[0].to_vector<float>(), expected.states[0].to_vector<float>());
  }
}

// The exponential of layer 0 comes from a product that is kept anyway; that of layer 1 would only take
// the place of its product.
TEST(Rematerialize, SelectiveRunsNoContractionAgain) {
  const graph::Graph graph =
      rewritten(graph::parse_graph(kLayers), {.policy = compiler::RematPolicy::selective});
  int again = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.phase != graph::Phase::recompute) continue;
    EXPECT_EQ(node.op->name, "exp");
    ++again;
  }
  EXPECT_EQ(again, 1);
}

TEST(Rematerialize, CheckpointsAreNotKept) {
  std::string text(kLayers);
  text.replace(text.find("\"h.0\""), 5, "\"h.0\" checkpoint");
  const graph::Graph graph = rewritten(graph::parse_graph(text));
  for (const compiler::KeptValue& kept : compiler::kept_values(graph))
    EXPECT_NE(kept.name, "matmul of a") << "an inner value of the checkpoint is kept";
  EXPECT_NE(graph::to_text(graph).find("recompute"), std::string::npos);
}

TEST(Rematerialize, ReportsWhatIsKept) {
  const std::vector<compiler::KeptValue> kept = compiler::kept_values(graph::parse_graph(kLayers));
  ASSERT_EQ(kept.size(), 5U);  // 8, 7, 5, 4, 3
  for (const compiler::KeptValue& value : kept) {
    EXPECT_EQ(value.bytes, 256);
    EXPECT_GT(value.recompute_seconds, 0);
  }
  const graph::Graph graph = graph::parse_graph(kLayers);
  const auto exp_0 = std::find_if(kept.begin(), kept.end(), [&](const compiler::KeptValue& value) {
    return value.name == "exp in h.0";
  });
  ASSERT_NE(exp_0, kept.end());
  EXPECT_EQ(graph.node(exp_0->needed_by).op->name, "mul");
  EXPECT_EQ(exp_0->needed_by, graph::NodeId(8));
  EXPECT_DOUBLE_EQ(exp_0->recompute_seconds, compiler::node_seconds(graph, graph.nodes[1], {}));
}

TEST(Rematerialize, BudgetIsHeldOrRefusedWithReasons) {
  const graph::Graph graph = graph::parse_graph(kLayers);
  const int64_t all = plan(graph).memory.arena_bytes;
  EXPECT_LE(plan(rewritten(graph, {.memory_budget = Bytes(all - 256)})).memory.arena_bytes,
            all - 256);
  const std::string message = error_of([&] { rewritten(graph, {.memory_budget = Bytes(100)}); });
  EXPECT_NE(message.find("100 B"), std::string::npos) << message;
  EXPECT_NE(message.find("needs at least"), std::string::npos) << message;
  EXPECT_NE(message.find("f32[8, 8]: 256 B"), std::string::npos) << message;
}

TEST(Rematerialize, RefusesSettingsThatContradict) {
  const graph::Graph graph = graph::parse_graph(kChain);
  EXPECT_NE(error_of([&] {
              rewritten(graph, {.policy = compiler::RematPolicy::full});
            }).find("checkpoint"),
            std::string::npos);
  const compiler::RematOptions both{.policy = compiler::RematPolicy::none,
                                    .memory_budget = Bytes(1)};
  EXPECT_NE(error_of([&] { rewritten(graph, both); }).find("\"none\""), std::string::npos);
  EXPECT_EQ(compiler::parse_policy("selective"), compiler::RematPolicy::selective);
  EXPECT_NE(error_of([] { compiler::parse_policy("some"); }).find("selective"), std::string::npos);
}

}  // namespace
}  // namespace brrr
