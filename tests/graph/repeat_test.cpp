// Repeats as graphs: what a body captures and carries, its text, what verify and the tracer refuse, and
// interpret against the loop that it stands for.
#include "brrr/graph/repeat.h"

#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

Tensor count_of(int64_t n) { return from_values(std::vector<int64_t>{n}, {}); }

// Traces body(x of [4, 3], count).
template <typename Body>
graph::Graph trace(const Body& body) {
  graph::Tracer tracer;
  const Tensor x = tracer.add_input({.shape = {4, 3}, .dtype = DType::f32}, Device::cpu(), "x");
  const Tensor count = tracer.add_input({.shape = {}, .dtype = DType::i64}, Device::cpu(), "n");
  graph::Graph graph = tracer.finish(body(x, count));
  graph::verify(graph, "tracing");
  return graph;
}

const Tensor kRows = tensor({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}});

// The gradient of sum((w x_i)^2) by w, summed over the rows.
std::vector<Tensor> accumulate(const Tensor& w, const Tensor& x, const Tensor& count) {
  return repeat(count, {x}, [&](const Tensor& row) {
    const Tensor loss = sum(square(w * row));
    std::vector<Tensor> parts = grad(loss, {w});
    parts.push_back(loss);
    return parts;
  });
}

TEST(RepeatGraph, BodyCapturesAndSums) {
  const Tensor w = tensor({1, 2, 3}).require_grad();
  const graph::Graph graph = trace([&](const Tensor& x, const Tensor& count) -> Tensors {
    const std::vector<Tensor> sums = accumulate(w, x, count);
    graph::Tracer::current()->name_state(w, "w");  // behind the body, as optimizers do
    return {sums[0], sums[1]};
  });
  ASSERT_EQ(graph.nodes.size(), 1U);
  const graph::Node& node = graph.nodes[0];
  EXPECT_EQ(node.op, &graph::repeat_op);
  EXPECT_EQ(node.body->inputs.size(), 3U);  // the index, the slice, w
  EXPECT_EQ(node.body->inputs[2].name, "w");
  EXPECT_EQ(node.body->states.size(), 2U);
  const auto phase_of = [&](size_t n) { return node.body->nodes[n].phase; };
  EXPECT_EQ(phase_of(0), graph::Phase::forward);
  EXPECT_EQ(phase_of(node.body->nodes.size() - 3), graph::Phase::backward);
  EXPECT_EQ(phase_of(node.body->nodes.size() - 1), graph::Phase::update);
}

TEST(RepeatGraph, InterpretsLikeTheLoop) {
  const Tensor w = tensor({1, 2, 3}).require_grad();
  const graph::Graph graph = trace([&](const Tensor& x, const Tensor& count) -> Tensors {
    const std::vector<Tensor> sums = accumulate(w, x, count);
    return {sums[0], sums[1]};
  });
  for (int64_t n : {1, 3, 4}) {
    const std::vector<Tensor> expected = accumulate(w, kRows, count_of(n));
    const graph::Interpreted result = graph::interpret(graph, {{kRows, count_of(n)}});
    for (size_t i : {0U, 1U})
      EXPECT_EQ(result.outputs[i].to_vector<float>(), expected[i].to_vector<float>());
  }
  EXPECT_EQ(graph::interpret(graph, {{kRows, count_of(0)}}).outputs[0].to_vector<float>(),
            (std::vector<float>{0, 0, 0}));
  EXPECT_NE(error_of([&] {
              graph::interpret(graph, {{kRows, count_of(5)}});
            }).find("between 0 and the 4"),
            std::string::npos);
}

// A running maximum and a counter: what the body writes of outside goes on to the next iteration.
TEST(RepeatGraph, WritesCarryOver) {
  const Tensor largest = full({3}, -1), table = zeros({2, 4});
  const auto body = [&](const Tensor& index, const Tensor& row) -> Tensors {
    largest.copy_from(maximum(largest, row));
    const Tensor corner = select(select(table, 0, 1), 0, 2);
    corner.copy_from(corner + cast(index, DType::f32));
    return {sum(row) * corner};
  };
  const graph::Graph graph = trace([&](const Tensor& x, const Tensor& count) -> Tensors {
    const std::vector<Tensor> sums = repeat(count, {x}, body);
    return {sums[0], largest * 1.0};
  });
  EXPECT_EQ(graph::repeat_node(graph.nodes[0].attrs).initial, 2);
  const graph::Interpreted result = graph::interpret(graph, {{kRows, count_of(3)}});
  const std::vector<Tensor> expected = repeat(count_of(3), {kRows}, body);  // writes for real
  EXPECT_EQ(result.outputs[0].item<float>(), expected[0].item<float>());
  EXPECT_EQ(result.outputs[1].to_vector<float>(), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(result.states[0].to_vector<float>(), largest.to_vector<float>());
  EXPECT_EQ(result.states[1].to_vector<float>(), table.to_vector<float>());
  EXPECT_EQ(table.to_vector<float>()[6], 3);
}

TEST(RepeatGraph, BodiesInBodies) {
  const Tensor w = tensor({1, 2, 3});
  const auto program = [&](const Tensor& x, const Tensor& count) {
    return repeat(count, {x}, [&](const Tensor& row) {
      return repeat(count, {x}, [&](const Tensor& other) { return sum(row * other * w); });
    });
  };
  const graph::Graph graph = trace(
      [&](const Tensor& x, const Tensor& count) -> Tensors { return {program(x, count)[0]}; });
  EXPECT_EQ(graph::interpret(graph, {{kRows, count_of(3)}}).outputs[0].item<float>(),
            program(kRows, count_of(3))[0].item<float>());
  const std::string text = graph::to_text(graph);
  EXPECT_EQ(graph::to_text(graph::parse_graph(text)), text);
}

TEST(RepeatGraph, CostIsThatOfAllIterations) {
  const graph::Graph graph = trace([&](const Tensor& x, const Tensor& count) -> Tensors {
    return {repeat(count, {x}, [](const Tensor& row) { return exp(row); })[0]};
  });
  const Cost once = graph::cost_of(*graph.nodes[0].body);
  EXPECT_EQ(graph::cost_of(graph).flops, 4 * once.flops);
  EXPECT_GT(once.flops, 0);
}

TEST(RepeatGraph, NarrowPartsAreSummedInF32) {
  const graph::Graph graph = trace([&](const Tensor& x, const Tensor& count) -> Tensors {
    const std::vector<Tensor> sums = repeat(count, {x}, [](const Tensor& row) -> Tensors {
      return {cast(row, DType::bf16), cast(row, DType::f64), cast(row, DType::i32)};
    });
    return {sums[0], sums[1], sums[2]};
  });
  EXPECT_EQ(graph.type(graph.outputs[0]).dtype, DType::f32);
  EXPECT_EQ(graph.type(graph.outputs[1]).dtype, DType::f64);
  EXPECT_EQ(graph.type(graph.outputs[2]).dtype, DType::i64);
}

TEST(RepeatGraph, RefusesWhatALoopWouldNotMean) {
  const auto refused = [](const auto& body) { return error_of([&] { trace(body); }); };
  const auto expect = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           return {repeat(count * 2, {x}, [](const Tensor& row) { return row; })[0]};
         }),
         "known before the program starts");
  expect(refused([](const Tensor& x, const Tensor&) -> Tensors {
           return {repeat(full({}, 9, {.dtype = DType::i64}), {x},
                          [](const Tensor& row) { return row; })[0]};
         }),
         "9 iterations, and there are 4 slices");
  const Tensor held = count_of(2);
  expect(refused([&](const Tensor& x, const Tensor&) -> Tensors {
           return {repeat(held, {x}, [](const Tensor& row) { return row; })[0]};
         }),
         "pass it as an input");
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           return {repeat(count, {x}, [](const Tensor& row) {
             row.fill(0);
             return row;
           })[0]};
         }),
         "writes to its \"slice 0\"");
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           return {repeat(count, {x}, [&](const Tensor& row) {
             x.fill(0);
             return row;
           })[0]};
         }),
         "which it takes slices of");
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           Tensor leaked;
           repeat(count, {x}, [&](const Tensor& row) { return leaked = exp(row); });
           return {leaked};
         }),
         "or from the body");
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           repeat(count, {x}, [](const Tensor&) { return Tensors(); });
           return {};
         }),
         "returns nothing");
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           return {repeat(count, {x}, [](const Tensor& row) { return row < 1; })[0]};
         }),
         "cannot add up bool");
  expect(refused([](const Tensor& x, const Tensor& count) -> Tensors {
           return {repeat(cast(count, DType::i32), {x}, [](const Tensor& row) { return row; })[0]};
         }),
         "one i64");
  // A function may catch what its body throws: the trace goes on where the body began.
  const graph::Graph graph = trace([](const Tensor& x, const Tensor& count) -> Tensors {
    try {
      repeat(count, {x}, [](const Tensor& row) { return matmul(row, row < 1); });
    } catch (const Error&) {
      return {exp(x)};
    }
    return {};
  });
  EXPECT_EQ(graph.nodes.size(), 1U);
}

TEST(RepeatGraph, VerifyFindsPlantedFaults) {
  const Tensor w = tensor({1, 2, 3}).require_grad();
  const graph::Graph good = trace([&](const Tensor& x, const Tensor& count) -> Tensors {
    return {accumulate(w, x, count)[0]};
  });
  const auto fault = [&](const auto& plant) {
    graph::Graph bad = good;
    auto body = std::make_shared<graph::Graph>(*bad.nodes[0].body);
    bad.nodes[0].body = body;
    plant(bad.nodes[0], *body);
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
  expect(fault([](graph::Node& node, graph::Graph&) { node.body = nullptr; }), "lost its body");
  expect(fault([](graph::Node&, graph::Graph& body) { std::swap(body.nodes[0], body.nodes[1]); }),
         "body of repeat");
  expect(fault([](graph::Node& node, graph::Graph&) { std::swap(node.inputs[0], node.inputs[1]); }),
         "its body takes");
  expect(fault([](graph::Node&, graph::Graph& body) { body.outputs.emplace_back(0); }),
         "do not fit a body");
}

TEST(RepeatGraph, TextErrorsNameTheLine) {
  const auto refused = [](const char* text) { return error_of([&] { graph::parse_graph(text); }); };
  const auto expect = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refused("input %0: f32[2] \"x\"\n%1: f32[2] = exp %0 [\nreturn\n]\nreturn %1\n"),
         "no other op, has a body");
  expect(refused("input %0: i64[] \"n\"\n%1: f32[] = repeat %0 {most=1} [\n  return\n"),
         "not closed");
  expect(
      refused("input %0: i64[] \"n\"\n%1: f32[] = repeat %0 {most=1} [\n  return %7\n]\nreturn\n"),
      "line 3");
}

}  // namespace
}  // namespace brrr
