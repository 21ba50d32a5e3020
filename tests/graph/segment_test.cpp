// Segments: which nodes they hold, and their text.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "support/error_of.h"

namespace brrr {
namespace {

// The backward part of a segment lies in none.
TEST(Segments, HoldTheForwardNodesOfTheirScope) {
  graph::Tracer tracer;
  const Tensor x = tracer.add_input({.shape = {2}, .dtype = DType::f32}, Device::cpu(), "x");
  x.require_grad();
  Tensor y = exp(x);
  {
    const graph::SegmentScope layer("h.0");
    y = sin(y);
    const graph::SegmentScope inner("h.0.mlp", true);
    y = cos(y);
  }
  const Tensor loss = sum(y);
  const graph::Graph graph = tracer.finish(grad(loss, {x}));
  const std::string text = graph::to_text(graph);
  EXPECT_EQ(text.substr(0, text.find("backward")), R"(input %0: f32[2] "x"
segment 0 "h.0"
segment 1 "h.0.mlp" in 0 checkpoint
%1: f32[2] = exp %0
%2: f32[2] = sin %1 @0
%3: f32[2] = cos %2 @1
%4: f32[] = sum %3 {axes=[0] keep_dims=false}
)");
  EXPECT_EQ(text.substr(text.find("backward")).find('@'), std::string::npos);
  EXPECT_EQ(graph::to_text(graph::parse_graph(text)), text);
}

TEST(Segments, TextThatNamesNoneIsRefused) {
  EXPECT_NE(error_of([] {
              graph::parse_graph("input %0: f32[2] \"x\"\n%1: f32[2] = exp %0 @3\n");
            }).find("there is no segment 3"),
            std::string::npos);
  EXPECT_NE(error_of([] { graph::parse_graph("segment 4 \"h.4\"\n"); }).find("should be segment 0"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
