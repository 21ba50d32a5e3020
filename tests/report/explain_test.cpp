// A small graph at every stage, as the texts that people read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/graph/print.h"
#include "brrr/report/graph_views.h"
#include "brrr/report/memory_timeline.h"
#include "brrr/runtime/stages.h"
#include "support/synthetic_rates.h"

namespace brrr {
namespace {

using testing::HasSubstr;

// `source` is "input" or "state": what the weight is.
std::string text_with(const std::string& source) {
  return "input %0: f32[64, 256] \"x\"\n" + source +
         " %1: f32[256, 32] \"w\"\n"
         "%2: f32[64, 256] = exp %0\n"
         "%3: f32[64, 256] = neg %2\n"
         "%4: f32[64, 32] = matmul %3 %1\n"
         "%5: f32[] = sum %4 {axes=[0, 1] keep_dims=false}\n"
         "return %5\n";
}

struct Small {
  graph::Graph graph = graph::parse_graph(text_with("input"));
  runtime::PlannedProgram program = runtime::plan_program(graph);
  cost::Prediction prediction = cost::predict(program.kernels, program.plan, synthetic_rates());
};

TEST(Explain, KernelsAsATable) {
  const Small small;
  EXPECT_EQ(
      report::kernels_text(small.program.kernels, small.prediction),
      R"(  kernel  phase    name               nodes      FLOPs     read  written  predicted  bound by
  ──────  ───────  ─────────────────  ─────  ─────────  ───────  ───────  ─────────  ────────────
  0       forward  exp+neg [64, 256]      2     32,768   64 KiB   64 KiB   33.77 µs  compute
  1       forward  matmul [64, 32]        1  1,048,576   96 KiB    8 KiB   11.49 µs  compute
  2       forward  sum []                 1      2,048    8 KiB      4 B   3.048 µs  compute
  ──────  ───────  ─────────────────  ─────  ─────────  ───────  ───────  ─────────  ────────────
  all              3 kernels              4  1,083,392  168 KiB   72 KiB    48.3 µs  uncalibrated
)");
}

TEST(Explain, PlanAsATimeline) {
  const Small small;
  EXPECT_EQ(compiler::bytes_over_time(small.program.kernels, small.program.plan),
            (std::vector<int64_t>{65536, 65536 + 8192, 8192 + 16}));  // 16: what sum asks for
  EXPECT_EQ(report::memory_timeline_text(small.program.kernels, small.program.plan, {.width = 9}),
            R"(  kernels  phase    bytes taken  of the arena  largest at
  ───────  ───────  ───────────  ────────────  ───────────────
  0        forward       64 KiB  ████████·     exp+neg
  1        forward       72 KiB  █████████     matmul  <- peak
  2        forward       8208 B  █········     sum

  held at the peak   bytes  from kernel  to kernel
  ────────────────  ──────  ───────────  ─────────
  exp+neg           64 KiB            0          1
  matmul             8 KiB            1          2
)");
}

TEST(Explain, PlanAsADrawing) {
  const Small small;
  const std::string svg = report::memory_timeline_svg(small.program.kernels, small.program.plan);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("exp+neg: 64 KiB, kernels 0 to 1"));
}

TEST(Explain, GraphsForGraphviz) {
  const Small small;
  const std::string dot = report::graph_dot(small.graph);
  EXPECT_THAT(dot, testing::StartsWith("digraph"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n2 [label=\"f32[64, 256]\""));
  EXPECT_THAT(dot, HasSubstr("input1 -> n2"));
  EXPECT_THAT(report::kernels_dot(small.program.kernels), HasSubstr("k0 -> k1"));
}

TEST(Explain, FormsForPrograms) {
  const Small small;
  const auto graph = nlohmann::json::parse(report::graph_json(small.graph));
  EXPECT_EQ(graph["nodes"].size(), 4U);
  EXPECT_EQ(graph["nodes"][2]["op"], "matmul");
  EXPECT_EQ(graph["nodes"][2]["flops"], 2 * 64 * 256 * 32);
  EXPECT_EQ(graph["inputs"][1]["name"], "w");
  const auto kernels =
      nlohmann::json::parse(report::kernels_json(small.program.kernels, small.prediction));
  EXPECT_EQ(kernels["kernels"].size(), 3U);
  EXPECT_EQ(kernels["kernels"][1]["regime"], "compute");
  EXPECT_EQ(kernels["calibrated"], false);
}

TEST(Explain, KeptValuesAsATable) {
  const graph::Graph joint = runtime::differentiate(graph::parse_graph(text_with("state")));
  const std::vector<compiler::KeptValue> values =
      compiler::kept_values(joint, runtime::remat_rates(synthetic_rates()));
  ASSERT_EQ(values.size(), 1U);
  EXPECT_THAT(values[0].name, testing::StartsWith("neg"));
  EXPECT_THAT(report::kept_values_text(joint, values), HasSubstr("f32[64, 256]"));
  const auto json = nlohmann::json::parse(report::kept_values_json(joint, values));
  EXPECT_EQ(json[0]["bytes"], 64 * 256 * 4);
  EXPECT_THAT(json[0]["needed_by"].get<std::string>(), testing::StartsWith("matmul (node"));
}

}  // namespace
}  // namespace brrr
