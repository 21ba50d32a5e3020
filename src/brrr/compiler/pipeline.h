// From a traced graph to kernels with a place for every operand: the passes, one after the other, each
// named, timed and verified. An optimising pass can be left out by name; that is how a wrong result is
// traced to the pass that made it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/compiler/chunk_head.h"
#include "brrr/compiler/epilogues.h"
#include "brrr/compiler/plan_memory.h"
#include "brrr/compiler/precision.h"
#include "brrr/compiler/rematerialize.h"

namespace brrr {

struct PipelineOptions {
  PrecisionOptions precision = {};
  bool simplify = true;
  bool chunk_head = true;  // false: logits of the whole batch are in memory at once
  ChunkHeadOptions head = {};
  bool rematerialize = true;  // false: everything that the backward part reads is kept
  RematOptions remat = {};
  bool join_losses = true;  // on a GPU: a loss and its gradient in one kernel
  // On a GPU: what products do to their results (compiler/epilogues.h).
  bool gelu_epilogue = true, sum_epilogue = true, add_epilogue = true;
  EpilogueOptions epilogues = {};
  bool fp8_products =
      true;  // on a GPU: 8-bit factors as its tensor cores want them (fp8_products.h)
  bool fuse = true;
  bool land_results = true;      // on a GPU: false copies heads into rows
  bool group_kernels = true;     // false: kernels that do not depend on each other run one by one
  bool plan_memory = true;       // false: every temporary has bytes of its own
  bool trace_twice = false;      // refuse a function whose second trace differs from the first
  bool keep_graphs = false;      // remember the graph after every pass
  std::optional<Device> device;  // where the program runs; by default where its tensors are
  bool generate = true;          // on a GPU: false without a compiler for generated kernels

  bool is_cuda() const { return device && device->kind == DeviceKind::cuda; }
  bool is_generated() const { return is_cuda() && generate; }
};

// The names that `without` knows: "simplify", "fuse", ...
std::vector<std::string_view> optimising_passes();
// The same options without these passes, given as "fuse" or "simplify,fuse". Throws Error on a name
// that is none, with the list.
PipelineOptions without(PipelineOptions options, std::string_view passes);

// One pass of a run.
struct PassRecord {
  std::string_view name;
  double seconds = 0;         // of the pass itself
  double verify_seconds = 0;  // of checking what it made
  std::optional<Graph>
      graph;  // what it made, where asked for; only passes from graph to graph have it
};

struct CompiledProgram {
  Graph graph;  // after the last pass from graph to graph
  std::vector<Region> regions;
  KernelProgram kernels;
  std::vector<PassRecord>
      passes;  // in the order in which they ran; "trace" is the graph as it came

  double seconds() const;
};

CompiledProgram run_pipeline(Graph graph, const PipelineOptions& options, ThreadPool& pool);

}  // namespace brrr
