// Ops from outside the tree in the hands of passes: they are treated by what they say of themselves.
#include <gtest/gtest.h>

#include <algorithm>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/head/chunk_head.h"
#include "brrr/compiler/precision/precision_table.h"
#include "brrr/compiler/rewrite/matmul_graph.h"
#include "brrr/compiler/rewrite/simplify.h"
#include "brrr/graph/call.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

OpDef renamed(OpDef op, std::string_view name) {
  op.name = name;
  return op;
}
const OpDef own_matmul_op = renamed(matmul_op, "test_matmul"),
            own_linear_op = renamed(linear_op, "test_linear"),
            own_cast_op = renamed(cast_op, "test_cast");

Tensor given(graph::Tracer& tracer, const Shape& shape, DType dtype, const char* name) {
  return tracer.add_input({.shape = shape, .dtype = dtype}, Device::cpu(), name);
}

int count_ops(const graph::Graph& graph, const OpDef& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const graph::Node& node) { return node.op == &op; }));
}

TEST(OutsideMatmul, IsAProductInTheOrderOfItsRole) {
  graph::Tracer tracer;
  const Tensor a = given(tracer, {4, 8}, DType::f32, "a"),
               b = given(tracer, {8, 16}, DType::f32, "b"),
               w = given(tracer, {16, 8}, DType::f32, "w");
  const Tensor y = call_one(own_matmul_op, {a, b}), z = call_one(own_linear_op, {a, w});
  const graph::Graph graph = tracer.finish(std::vector<Tensor>{y, z});
  const compiler::ProductGraph products(graph);
  ASSERT_EQ(graph.nodes.size(), 2u);
  const std::optional<compiler::Product> first = products.product_at(0),
                                         second = products.product_at(1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->b, graph.nodes[0].inputs[1]);
  EXPECT_FALSE(first->transposed);
  EXPECT_TRUE(second->transposed) << "a weight is [n, k]";
}

TEST(OutsideMatmul, MakesLogitsThatAreCutIntoChunks) {
  graph::Tracer tracer;
  const Tensor x = given(tracer, {8, 4}, DType::f32, "x"),
               w = given(tracer, {4, 6}, DType::f32, "w"),
               targets = given(tracer, {8}, DType::i64, "targets");
  const Tensor losses = cross_entropy_each(call_one(own_matmul_op, {x, w}), targets);
  const graph::Graph graph = tracer.finish(std::vector<Tensor>{losses});
  const graph::Graph cut =
      compiler::chunk_heads(graph, {.chunk_bytes = 0, .min_rows = 4, .row_multiple = 1});
  graph::verify(cut, "chunk_head");
  EXPECT_EQ(count_ops(cut, own_matmul_op), 2) << graph::to_text(cut);
  EXPECT_EQ(count_ops(cut, cross_entropy_op), 2) << graph::to_text(cut);
}

// The policy for products of f32 in the update, where no op has a say.
TEST(OutsideMatmul, HasTheFactorsOfAMatmulInTheUpdate) {
  const graph::Node node{.op = &own_matmul_op, .phase = graph::Phase::update};
  EXPECT_EQ(compiler::find_precision_rule(node).take, Take::wide);
  EXPECT_EQ(compiler::find_precision_rule(node).factors, 0b11u);
  const graph::Node other{.op = &add_op, .phase = graph::Phase::update};
  EXPECT_EQ(compiler::find_precision_rule(other).factors, 0u);
}

TEST(OutsideCast, IsDroppedWhereItChangesNothing) {
  graph::Tracer tracer;
  const Tensor x = given(tracer, {3}, DType::f32, "x");
  const Tensor same = call_one(own_cast_op, {x}, {{"dtype", DType::f32}});
  const graph::Graph graph = tracer.finish(std::vector<Tensor>{call_one(neg_op, {same})});
  EXPECT_EQ(count_ops(graph, own_cast_op), 1);
  EXPECT_EQ(count_ops(compiler::simplify(graph), own_cast_op), 0);
  EXPECT_TRUE(compiler::is_tileable(graph, graph.nodes[0]));
}

constexpr PrecisionRule kSensitive{.take = Take::wide, .reason = "a test says so"};

TEST(OutsidePrecision, IsWhatTheOpDeclares) {
  OpDef op = renamed(exp_op, "test_exp");
  const graph::Node node{.op = &op};
  EXPECT_EQ(compiler::find_precision_rule(node).take, Take::follow)
      << "as elementwise ops without a rule";
  op.precision = &kSensitive;
  EXPECT_EQ(&compiler::find_precision_rule(node), &kSensitive);
}

// exp between two products: brrr's is stored low, one that declares f32 reads and makes f32.
TEST(OutsidePrecision, IsFollowedByThePass) {
  OpDef sensitive = renamed(exp_op, "test_exp");
  sensitive.precision = &kSensitive;
  for (const OpDef* op : {&exp_op, static_cast<const OpDef*>(&sensitive)}) {
    graph::Tracer tracer;
    const Tensor x = given(tracer, {4, 4}, DType::f32, "x");
    const Tensor between = call_one(*op, {call_one(matmul_op, {x, x})});
    const graph::Graph graph =
        tracer.finish(std::vector<Tensor>{call_one(matmul_op, {between, x})});
    const graph::Graph low =
        compiler::apply_precision(graph, {.policy = compiler::Precision::bf16_mixed});
    const auto found = std::find_if(low.nodes.begin(), low.nodes.end(),
                                    [&](const graph::Node& node) { return node.op == op; });
    ASSERT_NE(found, low.nodes.end());
    EXPECT_EQ(low.type(found->outputs[0]).dtype, op == &exp_op ? DType::bf16 : DType::f32)
        << graph::to_text(low);
  }
}

}  // namespace
}  // namespace brrr
