// From a traced graph to kernels with a place for every operand: the passes of the target's backend, one after the
// other, each named, timed and verified. An optimising pass can be left out by name; that is how a wrong result is
// traced to the pass that made it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/compiler/backend.h"
#include "brrr/compiler/fuse/epilogues.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/head/chunk_head.h"
#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/compiler/precision/precision.h"
#include "brrr/compiler/remat/rematerialize.h"

namespace brrr::compiler {

struct PipelineOptions {
  PrecisionOptions precision = {};
  ChunkHeadOptions head = {};
  RematOptions remat = {};
  EpilogueOptions epilogues = {};
  // Optimising passes that do not run: "simplify", "fuse", "plan_memory", ... (optimising_passes()).
  std::set<std::string, std::less<>> without = {};
  bool trace_twice = false;      // refuse a function whose second trace differs from the first
  bool keep_graphs = false;      // remember the graph after every pass
  std::optional<Device> device;  // where the program's tensors are; by default where its states are
  std::optional<Target> target;  // what it is compiled for; by default the device

  bool runs(std::string_view pass) const { return !without.contains(pass); }
};

// The names that `without` knows, of all backends.
std::vector<std::string_view> optimising_passes();
// The same options without these passes, given as "fuse" or "simplify,fuse". Throws Error on an unknown name, with the
// list.
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

}  // namespace brrr::compiler
