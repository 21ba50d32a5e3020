// The runner of passes: what it records, and what can be left out by name.
#include "brrr/compiler/pipeline.h"

#include <gtest/gtest.h>

#include "brrr/graph/print.h"
#include "support/error_of.h"

namespace brrr {
namespace {

constexpr const char* kText = R"(input %0: f32[4] "x"
%1: f32[4] = exp %0
%2: f32[4] = exp %0
%3: f32[4] = add %1 %2
return %3
)";

std::vector<std::string_view> names_of(const compiler::CompiledProgram& program) {
  std::vector<std::string_view> names;
  for (const compiler::PassRecord& pass : program.passes) names.push_back(pass.name);
  return names;
}

TEST(Pipeline, NamesAndTimesItsPasses) {
  const compiler::CompiledProgram program =
      compiler::run_pipeline(graph::parse_graph(kText), {}, thread_pool());
  const std::vector<std::string_view> names = names_of(program);
  EXPECT_EQ(names.front(), "trace");
  for (std::string_view name : {"simplify", "fuse", "lower", "select", "plan_memory"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  double total = 0;
  for (const compiler::PassRecord& pass : program.passes)
    total += pass.seconds + pass.verify_seconds;
  EXPECT_GT(total, 0);
  EXPECT_EQ(program.seconds(), total);
}

TEST(Pipeline, KeepsGraphsOnRequest) {
  const compiler::CompiledProgram quiet =
      compiler::run_pipeline(graph::parse_graph(kText), {}, thread_pool());
  for (const compiler::PassRecord& pass : quiet.passes) EXPECT_FALSE(pass.graph.has_value());
  const compiler::CompiledProgram program =
      compiler::run_pipeline(graph::parse_graph(kText), {.keep_graphs = true}, thread_pool());
  ASSERT_TRUE(program.passes.front().graph.has_value());
  EXPECT_EQ(graph::to_text(*program.passes.front().graph), kText);
  const auto simplified =
      std::find_if(program.passes.begin(), program.passes.end(),
                   [](const compiler::PassRecord& pass) { return pass.name == "simplify"; });
  ASSERT_TRUE(simplified != program.passes.end() && simplified->graph.has_value());
  EXPECT_EQ(simplified->graph->nodes.size(), 2U);
}

TEST(Pipeline, LeavesOutPassesByName) {
  for (std::string_view name : compiler::optimising_passes()) {
    const compiler::CompiledProgram program = compiler::run_pipeline(
        graph::parse_graph(kText), compiler::without({}, name), thread_pool());
    EXPECT_FALSE(program.kernels.list.kernels.empty()) << name;
  }
  const compiler::PipelineOptions options = compiler::without({}, "simplify,fuse");
  EXPECT_FALSE(options.runs("simplify"));
  EXPECT_FALSE(options.runs("fuse"));
  EXPECT_TRUE(options.runs("plan_memory"));
  EXPECT_EQ(compiler::run_pipeline(graph::parse_graph(kText), {}, thread_pool())
                .kernels.list.kernels.size(),
            1U);
  EXPECT_EQ(compiler::run_pipeline(graph::parse_graph(kText), options, thread_pool())
                .kernels.list.kernels.size(),
            3U);
  const std::string message = error_of([] { compiler::without({}, "fuze"); });
  EXPECT_NE(message.find("\"fuze\""), std::string::npos);
  EXPECT_NE(message.find("plan_memory"), std::string::npos);
}

TEST(Pipeline, VerifiesWhatItIsGiven) {
  graph::Graph graph = graph::parse_graph(kText);
  std::swap(graph.nodes[0], graph.nodes[2]);
  EXPECT_THROW(compiler::run_pipeline(std::move(graph), {}, thread_pool()), InternalError);
}

}  // namespace
}  // namespace brrr
