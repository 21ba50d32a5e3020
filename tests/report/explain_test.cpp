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

constexpr const char* kText =
    "input %0: f32[64, 256] \"x\"\n"
    "state %1: f32[256, 32] \"w\"\n"
    "%2: f32[64, 256] = exp %0\n"
    "%3: f32[64, 256] = neg %2\n"
    "%4: f32[64, 32] = matmul %3 %1\n"
    "%5: f32[] = sum %4 {axes=[0, 1] keep_dims=false}\n"
    "return %5\n";

struct Small {
  Graph graph = parse_graph(kText);
  PlannedProgram program = plan_program(graph);
  Prediction prediction = predict(program.kernels, program.plan, synthetic_rates());
};

TEST(Explain, KernelsAsATable) {
  const Small small;
  EXPECT_EQ(kernels_text(small.program.kernels, small.prediction),
            "  kernel  phase    name              nodes  FLOPs      read        written    "
            "predicted  bound by\n"
            "  ──────  ───────  ────────────────  ─────  ─────────  ──────────  ─────────  "
            "─────────  ────────────\n"
            "  0       forward  exp+neg [64, 256]     2     32,768      64 KiB     64 KiB  33.77 "
            "µs  compute\n");
}

TEST(Explain, PlanAsATimeline) {
  const Small small;
  EXPECT_EQ(bytes_over_time(small.program.kernels, small.program.plan),
            (std::vector<int64_t>{65536, 65536 + 8192, 8192}));
  const std::string text =
      memory_timeline_text(small.program.kernels, small.program.plan, {.width = 9});
  EXPECT_EQ(text, "");
}

TEST(Explain, PlanAsADrawing) {
  const Small small;
  const std::string svg = memory_timeline_svg(small.program.kernels, small.program.plan);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("exp+neg: 64 KiB, kernels 0 to 1"));
}

TEST(Explain, GraphsForGraphviz) {
  const Small small;
  const std::string dot = graph_dot(small.graph);
  EXPECT_THAT(dot, testing::StartsWith("digraph"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n2 [label=\"f32[64, 256]\""));
  EXPECT_THAT(dot, HasSubstr("state0 -> n2"));
  EXPECT_THAT(kernels_dot(small.program.kernels), HasSubstr("k0 -> k1"));
}

TEST(Explain, FormsForPrograms) {
  const Small small;
  const auto graph = nlohmann::json::parse(graph_json(small.graph));
  EXPECT_EQ(graph["nodes"].size(), 4U);
  EXPECT_EQ(graph["nodes"][2]["op"], "matmul");
  EXPECT_EQ(graph["nodes"][2]["flops"], 2 * 64 * 256 * 32);
  EXPECT_EQ(graph["states"][0]["name"], "w");
  const auto kernels = nlohmann::json::parse(kernels_json(small.program.kernels, small.prediction));
  EXPECT_EQ(kernels["kernels"].size(), 3U);
  EXPECT_EQ(kernels["kernels"][1]["regime"], "compute");
  EXPECT_EQ(kernels["calibrated"], false);
}

TEST(Explain, KeptValuesAsATable) {
  const Small small;
  const std::vector<KeptValue> values = kept_values(differentiate(small.graph), synthetic_rates());
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].made_by, "neg");
  EXPECT_EQ(values[0].needed_by, "matmul");
  EXPECT_EQ(values[0].recompute_flops, 64 * 256);
  EXPECT_THAT(kept_values_text(values), HasSubstr("f32[64, 256]"));
  EXPECT_EQ(nlohmann::json::parse(kept_values_json(values))[0]["bytes"], 64 * 256 * 4);
}

}  // namespace
}  // namespace brrr
