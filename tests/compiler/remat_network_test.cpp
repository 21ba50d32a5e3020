// The minimum cut of remat_network against trying every choice on small random programs.
#include "brrr/compiler/remat/remat_network.h"

#include <gtest/gtest.h>

#include <random>

#include "brrr/graph/print.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

using Generator = std::mt19937;
size_t below(Generator& generator, size_t limit) { return generator() % limit; }

// A forward part of random dependencies, and backward nodes that read some of it.
graph::Graph random_step(Generator& generator, size_t forward, size_t backward) {
  graph::Graph graph;
  const TensorType type{.shape = {4}, .dtype = DType::f32};
  std::vector<graph::ValueId> made{graph.add_value(type)};
  graph.inputs.push_back({"x", made[0]});
  const auto add = [&](graph::Phase phase, size_t known) {
    const graph::ValueIds inputs{made[below(generator, known)], made[below(generator, known)]};
    const graph::NodeId node = graph.add_node(add_op, {}, inputs, {&type, 1}, phase);
    return graph.node(node).outputs[0];
  };
  for (size_t i = 0; i < forward; ++i) made.push_back(add(graph::Phase::forward, made.size()));
  graph.outputs.push_back(made.back());
  for (size_t i = 0; i < backward; ++i)
    graph.outputs.push_back(add(graph::Phase::backward, made.size()));
  return graph;
}

compiler::CutCosts random_costs(Generator& generator, const graph::Graph& graph) {
  compiler::CutCosts costs;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    costs.again_seconds.push_back(1e-6 * static_cast<double>(below(generator, 50)));
    costs.is_never_again.push_back(false);
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    costs.keep_seconds.push_back(1e-6 * static_cast<double>(below(generator, 10)));
    costs.keep_bytes.push_back(static_cast<int64_t>(below(generator, 40)));
    costs.is_never_kept.push_back(below(generator, 6) == 0);
  }
  return costs;
}

// From the definition: what later nodes read is made again from what it reads, or kept.
double cost_by_definition(const graph::Graph& graph, const compiler::CutCosts& costs,
                          uint32_t again, double price) {
  std::vector<bool> is_needed(graph.values.size(), false);
  double total = 0;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const graph::Node& node = graph.nodes[n];
    const size_t made = node.outputs[0].index();
    bool reads = true;
    if (node.phase == graph::Phase::forward) {
      if (!is_needed[made]) continue;
      reads = (again >> n & 1U) != 0;
      if (reads) {
        total += costs.again_seconds[n];
      } else {
        if (costs.is_never_kept[made]) return INFINITY;
        total += costs.keep_seconds[made] + price * static_cast<double>(costs.keep_bytes[made]);
      }
    }
    for (graph::ValueId id : node.inputs) is_needed[id.index()] = is_needed[id.index()] || reads;
  }
  return total;
}

TEST(RematNetwork, EqualsTryingAllChoices) {
  Generator generator(11);
  for (int round = 0; round < 200; ++round) {
    const size_t forward = 3 + below(generator, 7);
    const graph::Graph graph = random_step(generator, forward, 1 + below(generator, 4));
    const compiler::StepParts parts(graph);
    const compiler::CutCosts costs = random_costs(generator, graph);
    for (const double price : {0.0, 3e-7, 5e-6}) {
      double best = INFINITY;
      for (uint32_t again = 0; again < (1U << forward); ++again)
        best = std::min(best, cost_by_definition(graph, costs, again, price));
      const compiler::NodeSet chosen = compiler::cheapest_choice(graph, parts, costs, price);
      uint32_t bits = 0;
      for (size_t n = 0; n < forward; ++n) bits |= static_cast<uint32_t>(chosen[n]) << n;
      // Ticks of 1e-11 s, one for each node.
      ASSERT_NEAR(cost_by_definition(graph, costs, bits, price), best, 1e-9)
          << "round " << round << "\n"
          << graph::to_text(graph);
    }
  }
}

TEST(RematNetwork, AHigherPriceNeverKeepsMore) {
  Generator generator(12);
  for (int round = 0; round < 100; ++round) {
    const graph::Graph graph = random_step(generator, 12, 4);
    const compiler::StepParts parts(graph);
    const compiler::CutCosts costs = random_costs(generator, graph);
    int64_t before = INT64_MAX;
    for (const double price : {0.0, 1e-7, 1e-6, 1e-5}) {
      const compiler::ChoiceTotals totals = compiler::totals_of(
          graph, parts, costs, compiler::cheapest_choice(graph, parts, costs, price));
      ASSERT_LE(totals.kept_bytes, before) << "round " << round;
      before = totals.kept_bytes;
    }
  }
}

// exp needs its result in the backward part: writing it forward and reading it there are 8 bytes an
// element, computing it again one operation on what is read anyway.
TEST(RematNetwork, FusedValuesAreCheaperToMakeThanToRead) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[1000000] "x"
%1: f32[1000000] = exp %0
%2: f32[1000000] = sin %1
%3: f32[] = sum %2 {axes=[0] keep_dims=false}
backward
%4: f32[1000000] = cos %1
%5: f32[1000000] = mul %4 %1
%6: f32[1000000] = mul %5 %3
return %3 %6
)");
  const compiler::StepParts parts(graph);
  const compiler::CutCosts costs = compiler::cut_costs(graph, parts, {});
  const compiler::NodeSet again = compiler::cheapest_choice(graph, parts, costs, 0);
  EXPECT_TRUE(again[0]);
  EXPECT_FALSE(again[1]);  // nobody asks for the sine
  EXPECT_DOUBLE_EQ(costs.keep_seconds[1], 2 * compiler::RematRates().traffic_seconds(4'000'000));
}

// A product of 512 x 512 x 512 is not worth the megabyte that it makes, until bytes have a price.
TEST(RematNetwork, ContractionsAreKeptUntilBytesCost) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[512, 512] "x"
state %1: f32[512, 512] "w"
%2: f32[512, 512] = matmul %0 %1
%3: f32[512, 512] = gelu %2
%4: f32[] = sum %3 {axes=[0, 1] keep_dims=false}
backward
%5: f32[512, 512] = gelu_backward %2 %0
return %4 %5
)");
  const compiler::StepParts parts(graph);
  const compiler::CutCosts costs = compiler::cut_costs(graph, parts, {});
  EXPECT_FALSE(compiler::cheapest_choice(graph, parts, costs, 0)[0]);
  EXPECT_TRUE(compiler::cheapest_choice(graph, parts, costs, 1e-8)[0]);
}

}  // namespace
}  // namespace brrr
