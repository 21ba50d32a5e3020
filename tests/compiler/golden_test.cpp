// Golden tests: every file of tests/compiler/golden holds what goes into a pass and what must come out.
//
//   # What the case is about.
//   pass: simplify
//   --- given
//   input %0: ...
//   --- expected
//   input %0: ...
//
// `pass: trace NAME` has no given graph: NAME is one of the functions below. BRRR_REWRITE_GOLDEN=1 in the
// environment writes what came out into the files instead of comparing; read the difference with git.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/fuse/epilogues.h"
#include "brrr/compiler/head/chunk_head.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/rewrite/simplify.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/h200.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;

// ---- functions to trace --------------------------------------------------------------------------
Tensor given(graph::Tracer& tracer, const Shape& shape, DType dtype, const char* name) {
  return tracer.add_input({.shape = shape, .dtype = dtype}, Device::cpu(), name);
}

// One table read by rows and used again as the head: one state, one gradient, summed.
Tensors tied_embedding(graph::Tracer& tracer) {
  const Tensor table = empty({5, 3}).require_grad();
  const Tensor tokens = given(tracer, {4}, DType::i64, "tokens"),
               targets = given(tracer, {4}, DType::i64, "targets");
  tracer.name_state(table, "table");
  const Tensor rows = embedding(table, tokens);  // a statement each: C++ orders no arguments
  const Tensor head = transpose(table);
  const Tensor loss = cross_entropy(matmul(rows, head), targets);
  const Tensor gradient = grad(loss, {table})[0];
  NoGrad update;
  table.copy_from(table - gradient * 0.5);
  return {loss};
}

// x[:, 0] += 1
Tensors write_through_view(graph::Tracer& tracer) {
  const Tensor x = empty({2, 3});
  tracer.name_state(x, "x");
  const Tensor column = select(x, 1, 0);
  column.copy_from(column + 1.0);
  return {sum(x), column};
}

Tensors swapped_states(graph::Tracer& tracer) {
  const Tensor a = empty({2}), b = empty({2});
  tracer.name_state(a, "a");
  tracer.name_state(b, "b");
  const Tensor old = clone(a);
  a.copy_from(b);
  b.copy_from(old);
  return {};
}

Tensors returned_alias(graph::Tracer& tracer) {
  const Tensor x = empty({2, 3});
  tracer.name_state(x, "x");
  const Tensor row = x[1];
  x.copy_from(x * 2.0);
  return {x, row};
}

Tensors accumulated_gradient(graph::Tracer& tracer) {
  const Tensor x = given(tracer, {4, 2, 3}, DType::f32, "x"),
               count = given(tracer, {}, DType::i64, "count");
  const Tensor w = empty({3}).require_grad();
  const std::vector<Tensor> sums =
      repeat(count, {x}, [&](const Tensor& part) { return grad(sum(square(part * w)), {w}); });
  NoGrad update;
  tracer.name_state(w, "w");
  w.copy_from(w - sums[0] * 0.5);
  return {};
}

const std::map<std::string, std::function<Tensors(graph::Tracer&)>> kFunctions{
    {"tied_embedding", tied_embedding},
    {"write_through_view", write_through_view},
    {"swapped_states", swapped_states},
    {"returned_alias", returned_alias},
    {"accumulated_gradient", accumulated_gradient}};

// ---- what passes make, as text --------------------------------------------------------------------
std::string traced(const std::string& name) {
  const auto function = kFunctions.find(name);
  check(function != kFunctions.end(), "there is no function named ", name, " to trace");
  graph::Tracer tracer;
  const graph::Graph graph = tracer.finish(function->second(tracer));
  graph::verify(graph, "trace");
  return graph::to_text(graph);
}

std::string simplified(const graph::Graph& graph) {
  const graph::Graph result = compiler::simplify(graph);
  graph::verify(result, "simplify");
  return graph::to_text(result);
}

// Three rows a chunk.
std::string with_chunks(const graph::Graph& graph) {
  const graph::Graph result =
      compiler::chunk_heads(graph, {.chunk_bytes = 0, .min_rows = 3, .row_multiple = 1});
  graph::verify(result, "chunk_head");
  return graph::to_text(result);
}

// As for a GPU of which nothing more is known: no library is asked.
std::string with_epilogues(const std::string& pass, const graph::Graph& graph) {
  const compiler::EpilogueOptions any_size{
      .fewest_gelus = 0, .most_summed_bytes = std::numeric_limits<int64_t>::max()};
  const graph::Graph result =
      pass == "gelu_epilogue"  ? compiler::take_gelu_epilogues(graph, h200(), any_size)
      : pass == "sum_epilogue" ? compiler::take_sum_epilogues(graph, h200(), any_size)
                               : compiler::take_add_epilogues(graph, h200(), any_size);
  graph::verify(result, pass);
  return graph::to_text(result);
}

// A line a region: the values that its nodes make. Values of the given text are numbered in order.
std::string fused(const graph::Graph& graph) {
  std::string out;
  for (const compiler::Region& region : compiler::fuse(graph)) {
    std::string line = "region:";
    for (graph::NodeId id : region.nodes) {
      const graph::Node& node = graph.node(id);
      line += join_text(&node == &graph.node(region.nodes.front()) ? " " : ", ", "%",
                        node.outputs[0].value, " ", node.op->name);
    }
    out += line + "\n";
  }
  return out;
}

std::string place_text(const compiler::KernelProgram& program, compiler::BufferId id) {
  const compiler::Buffer& buffer = program.list.buffers[id.index()];
  const int64_t offset = program.plan.offsets[id.index()];
  switch (buffer.place) {
    case compiler::Place::temporary:
      return join_text("arena[", offset, ", ", offset + buffer.bytes, ")");
    case compiler::Place::input: return join_text("input ", buffer.index);
    case compiler::Place::state: return join_text("state ", buffer.index);
    case compiler::Place::output: return join_text("output ", buffer.index);
  }
  return "";
}

// A line a kernel: what it reads and writes, by place and by byte.
std::string planned(const compiler::KernelProgram& program, const std::string& indent = "") {
  std::string out;
  for (const compiler::Kernel& kernel : program.list.kernels) {
    out += indent + kernel.name + ":";
    for (const compiler::OperandRef& ref : kernel.inputs)
      out += join_text(" ", place_text(program, ref.buffer));
    out += " ->";
    for (const compiler::OperandRef& ref : kernel.outputs)
      out += join_text(" ", place_text(program, ref.buffer));
    if (kernel.workspace.valid()) out += join_text(" with ", place_text(program, kernel.workspace));
    out += "\n";
    if (kernel.body) out += planned(*kernel.body, indent + "  ");
  }
  return out + join_text(indent, "arena of ", program.plan.arena_bytes, " bytes, at least ",
                         program.plan.lower_bound, "\n");
}

std::string run_pass(const std::string& pass, const std::string& text) {
  if (pass.starts_with("trace ")) return traced(pass.substr(6));
  const graph::Graph graph = graph::parse_graph(text);
  if (pass == "simplify") return simplified(graph);
  if (pass == "chunk_head") return with_chunks(graph);
  if (pass.ends_with("_epilogue")) return with_epilogues(pass, graph);
  if (pass == "fuse") return fused(graph);
  if (pass == "plan_memory")
    return planned(compiler::run_pipeline(graph, {.without = {"simplify"}}, thread_pool()).kernels);
  fail("there is no pass named \"", pass, "\" in golden tests");
}

// ---- files ----------------------------------------------------------------------------------------
struct Golden {
  std::string about;  // the comment lines
  std::string pass, given, expected;
};

Golden read_golden(const fs::path& path) {
  std::ifstream file(path);
  Golden golden;
  std::string* section = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line == "--- given" || line == "--- expected") {
      section = line == "--- given" ? &golden.given : &golden.expected;
    } else if (section) {
      *section += line + "\n";
    } else if (line.starts_with("#")) {
      golden.about += line + "\n";
    } else if (line.starts_with("pass: ")) {
      golden.pass = line.substr(6);
    }
  }
  check(!golden.about.empty() && !golden.pass.empty(), path.string(),
        " needs a comment and a line `pass: NAME`");
  return golden;
}

void write_golden(const fs::path& path, const Golden& golden) {
  std::ofstream file(path);
  file << golden.about << "pass: " << golden.pass << "\n";
  if (!golden.given.empty()) file << "--- given\n" << golden.given;
  file << "--- expected\n" << golden.expected;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Lines that only one side has, marked, between those that both begin and end with.
std::string difference(const std::string& expected, const std::string& found) {
  const std::vector<std::string> a = lines_of(expected), b = lines_of(found);
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  while (tail < std::min(a.size(), b.size()) - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  std::string out;
  for (size_t i = 0; i < head; ++i) out += join_text("    ", a[i], "\n");
  for (size_t i = head; i < a.size() - tail; ++i) out += join_text("  - ", a[i], "\n");
  for (size_t i = head; i < b.size() - tail; ++i) out += join_text("  + ", b[i], "\n");
  for (size_t i = a.size() - tail; i < a.size(); ++i) out += join_text("    ", a[i], "\n");
  return out;
}

std::vector<fs::path> golden_files() {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(BRRR_SOURCE_DIR) / "tests/compiler/golden"))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class GoldenFile : public testing::TestWithParam<fs::path> {};

TEST_P(GoldenFile, ComesOutAsWritten) {
  Golden golden = read_golden(GetParam());
  const std::string found = run_pass(golden.pass, golden.given);
  if (std::getenv("BRRR_REWRITE_GOLDEN")) {
    golden.expected = found;
    write_golden(GetParam(), golden);
    GTEST_SKIP() << "rewritten";
  }
  EXPECT_EQ(found, golden.expected) << GetParam().filename().string() << ", - expected, + found:\n"
                                    << difference(golden.expected, found);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFile, testing::ValuesIn(golden_files()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(GoldenFiles, EveryPassHasSome) {
  std::map<std::string, int> passes;
  for (const fs::path& path : golden_files()) {
    const std::string pass = read_golden(path).pass;
    ++passes[pass.substr(0, pass.find(' '))];
  }
  for (const char* pass : {"trace", "simplify", "chunk_head", "gelu_epilogue", "sum_epilogue",
                           "add_epilogue", "fuse", "plan_memory"})
    EXPECT_GT(passes[pass], 0) << pass;
}

TEST(GoldenFiles, DifferencesAreMarked) {
  EXPECT_EQ(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "    a\n  - b\n  + x\n  + y\n    c\n");
}

}  // namespace
}  // namespace brrr
