// Tracing, printing, parsing and interpreting graphs. The golden texts are the specification of what
// writes, views and states become.
#include "brrr/graph/trace.h"

#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

template <typename Body>
graph::Graph trace(const Body& body) {
  graph::Tracer tracer;
  graph::Graph graph = tracer.finish(body(tracer));
  graph::verify(graph, "tracing");
  return graph;
}

Tensor given(graph::Tracer& tracer, const Shape& shape, const char* name = "x") {
  return tracer.add_input({.shape = shape, .dtype = DType::f32}, Device::cpu(), name);
}

TEST(Trace, RecordsInsteadOfRunning) {
  const graph::Graph graph = trace([](graph::Tracer& tracer) -> Tensors {
    const Tensor x = given(tracer, {2, 3});
    return {sum(exp(x) * 2.0)};
  });
  EXPECT_EQ(graph::to_text(graph), R"(input %0: f32[2, 3] "x"
%1: f32[2, 3] = exp %0
%2: f64[] weak = number {dtype=f64 device=cpu value=2.0}
%3: f32[2, 3] = mul %1 %2
%4: f32[] = sum %3 {axes=[0, 1] keep_dims=false}
return %4
)");
  const Tensor x = tensor({{0, 0, 0}, {0, 0, 0}});
  EXPECT_EQ(graph::interpret(graph, {{x}}).outputs[0].item<float>(), 12);
}

TEST(Trace, ConcreteTensorsAreStates) {
  const Tensor w = tensor({1, 2, 3});
  const graph::Graph graph = trace([&](graph::Tracer& tracer) -> Tensors {
    tracer.name_state(w, "w");
    const Tensor x = given(tracer, {3});
    return {x * w, x + slice(w, 0, {0, 3})};
  });
  EXPECT_EQ(graph::to_text(graph), R"(input %0: f32[3] "x"
state %1: f32[3] "w"
%2: f32[3] = mul %0 %1
%3: f32[3] = add %0 %1
return %2 %3
)");
  w.fill(5);  // not burnt in: the graph sees the tensor as it is when it runs
  EXPECT_EQ(graph::interpret(graph, {{ones({3})}}).outputs[0].to_vector<float>(),
            (std::vector<float>{5, 5, 5}));
}

// x[:, 0] += 1
TEST(Trace, WriteThroughAView) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  const graph::Graph graph = trace([&](graph::Tracer& tracer) -> Tensors {
    tracer.name_state(x, "x");
    const Tensor column = select(x, 1, 0);
    column.copy_from(column + 1.0);
    return {sum(x)};
  });
  EXPECT_EQ(graph::to_text(graph), R"(state %0: f32[2, 2] "x"
%1: f32[2] = select %0 {axis=1 index=0}
%2: f64[] weak = number {dtype=f64 device=cpu value=1.0}
%3: f32[2] = add %1 %2
%4: f32[2, 2] = update_view %0 %3 {shape=[2] strides=[2] offset=0}
%5: f32[] = sum %4 {axes=[0, 1] keep_dims=false}
write "x" %4
return %5
)");
  const graph::Interpreted result = graph::interpret(graph, {});
  EXPECT_EQ(result.outputs[0].item<float>(), 12);
  EXPECT_EQ(result.states[0].to_vector<float>(), (std::vector<float>{2, 2, 4, 4}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

// Two handles of one storage are one state, and a view taken before a write shows what was written.
TEST(Trace, ViewsFollowWrites) {
  const Tensor x = tensor({1, 2, 3, 4});
  const graph::Graph graph = trace([&](graph::Tracer&) -> Tensors {
    const Tensor first = slice(x, 0, {0, 2});
    const Tensor before = first * 1.0;
    x.fill(7);
    return {before, first * 1.0};
  });
  ASSERT_EQ(graph.states.size(), 1U);
  const graph::Interpreted result = graph::interpret(graph, {});
  EXPECT_EQ(result.outputs[0].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(result.outputs[1].to_vector<float>(), (std::vector<float>{7, 7}));
}

TEST(Trace, SwappedStates) {
  const Tensor a = tensor({1, 2}), b = tensor({3, 4});
  const graph::Graph graph = trace([&](graph::Tracer& tracer) -> Tensors {
    tracer.name_state(a, "a");
    tracer.name_state(b, "b");
    const Tensor old = clone(a);
    a.copy_from(b);
    b.copy_from(old);
    return {};
  });
  const graph::Interpreted result = graph::interpret(graph, {});
  EXPECT_EQ(result.states[0].to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(result.states[1].to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Trace, ReturnedAliasOfState) {
  const Tensor a = tensor({1, 2});
  const graph::Graph graph = trace([&](graph::Tracer&) -> Tensors {
    a.copy_from(a * 2.0);
    return {a};
  });
  EXPECT_EQ(graph.outputs[0], graph.states[0].after);
}

// One table used twice is one state with one gradient, summed.
TEST(Trace, TiedEmbedding) {
  Random random(1);
  const Tensor table = normal({5, 3}, random.stream("table")).require_grad();
  const Tensor ids = from_values(std::vector<int64_t>{0, 2, 4}, {3});
  const Tensor targets = from_values(std::vector<int64_t>{1, 1, 3}, {3});
  const auto loss_and_grad = [&](const Tensor& tokens) -> Tensors {
    const Tensor x = embedding(table, tokens);
    const Tensor loss = cross_entropy(matmul(x, transpose(table)), targets);
    return {loss, grad(loss, {table})[0]};
  };
  const graph::Graph graph = trace([&](graph::Tracer& tracer) {
    return loss_and_grad(tracer.add_input(ids.type(), Device::cpu(), "ids"));
  });
  const Tensors expected = loss_and_grad(ids);
  const graph::Interpreted result = graph::interpret(graph, {{ids}});
  for (int i : {0, 1})
    EXPECT_EQ(result.outputs[static_cast<size_t>(i)].to_vector<float>(),
              expected[i].to_vector<float>());
  EXPECT_EQ(graph.nodes.front().phase, graph::Phase::forward);
  EXPECT_EQ(graph.nodes.back().phase, graph::Phase::backward);
}

TEST(Trace, RefusesToLookAtValues) {
  const auto message = error_of([] {
    trace([](graph::Tracer& tracer) -> Tensors {
      const Tensor x = given(tracer, {1});
      if (x.item<float>() > 0) return {x};
      return {neg(x)};
    });
  });
  EXPECT_NE(message.find("cannot branch"), std::string::npos) << message;
  EXPECT_NE(message.find("where(condition"), std::string::npos) << message;
}

TEST(Trace, RefusesWhatWouldSurprise) {
  Tensor leaked;
  trace([&](graph::Tracer& tracer) -> Tensors { return {leaked = exp(given(tracer, {2}))}; });
  EXPECT_NE(error_of([&] { leaked + 1.0; }).find("trace that has ended"), std::string::npos);
  EXPECT_NE(error_of([&] {
              trace([&](graph::Tracer&) -> Tensors { return {leaked}; });
            }).find("trace that has ended"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              trace([](graph::Tracer&) -> Tensors { return {normal({2})}; });
            }).find("pass it as an input"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              trace([](graph::Tracer& tracer) -> Tensors {
                const Tensor x = given(tracer, {2});
                x.fill(1);
                return {x};
              });
            }).find("writes to its \"x\""),
            std::string::npos);
  const Tensor w = tensor({1, 2}).require_grad();
  EXPECT_NE(error_of([&] {
              trace([&](graph::Tracer&) -> Tensors {
                sum(w).backward();
                return {};
              });
            }).find("grad(loss, parameters)"),
            std::string::npos);
  EXPECT_EQ(graph::Tracer::current(), nullptr);
}

TEST(GraphText, ReadsBackWhatItPrints) {
  const Tensor w = tensor({{1, 2}, {3, 4}});
  const graph::Graph graph = trace([&](graph::Tracer& tracer) -> Tensors {
    tracer.name_state(w, "a \"quoted\" \\ name");
    const Tensor x = given(tracer, {3, 2});
    const Tensor y = matmul(x, w) * 0.1 + cast(x, DType::f64);
    w.copy_from(w * 3);
    return {max(y, {0}), full({2}, 1e-300), cast(x, DType::u64) + (uint64_t{1} << 63)};
  });
  const std::string text = graph::to_text(graph);
  EXPECT_EQ(graph::to_text(graph::parse_graph(text)), text);
}

TEST(GraphText, ErrorsNameTheLine) {
  const auto refused = [](const char* text) { return error_of([&] { graph::parse_graph(text); }); };
  EXPECT_NE(refused("input %0: f32[2] \"x\"\n%1: f32[2] = nonsense %0\nreturn %1\n").find("line 2"),
            std::string::npos);
  EXPECT_NE(refused("return %3\n").find("%3 is not made"), std::string::npos);
  EXPECT_NE(refused("input %0: f99[2] \"x\"\nreturn %0\n").find("f99"), std::string::npos);
  EXPECT_NE(refused("input %0: f32[2] \"x\"\ninput %0: f32[2] \"y\"\nreturn\n").find("twice"),
            std::string::npos);
  EXPECT_NE(refused("").find("return"), std::string::npos);
}

TEST(Verify, FindsPlantedFaults) {
  const graph::Graph good = graph::parse_graph(
      "input %0: f32[2] \"x\"\n%1: f32[2] = exp %0\n%2: f32[2] = neg %1\nreturn %2\n");
  const auto fault = [&](const auto& plant) {
    graph::Graph bad = good;
    plant(bad);
    try {
      graph::verify(bad, "planting");
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("not noticed");
  };
  const auto expect = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(fault([](graph::Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }), "before it is made");
  expect(fault([](graph::Graph& g) { g.values[2].type.shape = {3}; }), "makes f32[2]");
  expect(fault([](graph::Graph& g) { g.nodes[1].outputs[0] = graph::ValueId(1); }),
         "exists already");
  expect(fault([](graph::Graph& g) { g.outputs.push_back(graph::ValueId(9)); }), "the outputs");
  expect(fault([](graph::Graph& g) { g.add_value({}); }), "nobody makes");
  expect(fault([](graph::Graph& g) { g.values[2].node = graph::NodeId(0); }), "does not know");
}

}  // namespace
}  // namespace brrr
