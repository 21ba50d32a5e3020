#include "brrr/compiler/fuse/fuse.h"

#include <algorithm>

#include "brrr/compiler/fuse/fuse_cores.h"
#include "brrr/compiler/fuse/region_set.h"

namespace brrr::compiler {
namespace {

using Uses = std::vector<std::vector<NodeId>>;  // by value: its readers

// Few enough nodes, and few enough operands for one kernel.
bool fits(const RegionSet& regions, size_t a, size_t b, const FuseOptions& options) {
  const Graph& graph = regions.graph();
  if (static_cast<int>(regions.members(a).size() + regions.members(b).size()) > options.max_nodes)
    return false;
  const bool is_number = numel(graph.type(graph.nodes[b].outputs[0]).shape) == 1;
  return regions.inputs_of({a, b}) + 4 <= (is_number ? options.max_numbers : options.max_operands);
}

// Contractions whose results a node reads, of those that can go on behind the kernel that makes them.
template <typename Found>
void for_each_contraction(const RegionSet& regions, size_t n, StreamsOf streams,
                          const Found& found) {
  const Graph& graph = regions.graph();
  for (ValueId input : graph.nodes[n].inputs) {
    const std::optional<size_t> producer = regions.true_maker(input);
    if (producer && graph.nodes[*producer].op->kind == OpKind::contraction &&
        streams(graph, graph.nodes[*producer]).outputs != 0)
      found(*producer, input);
  }
}

// In p1 + p2 + p3, products one after the other that nobody else reads, each addition goes behind its own
// product, for the same traffic as one program that reads all of them in the end, and would hold them until
// then.
bool is_earlier_term(const RegionSet& regions, const Uses& uses, size_t producer, size_t reader,
                     StreamsOf streams) {
  bool is_behind_own = false, is_before_other = false;
  for_each_contraction(regions, producer, streams, [&](size_t, ValueId result) {
    is_behind_own |= uses[result.index()].size() == 1;
  });
  for_each_contraction(regions, reader, streams,
                       [&](size_t n, ValueId) { is_before_other |= n > producer; });
  return is_behind_own && is_before_other;
}

void join_producers(RegionSet& regions, const Uses& uses, size_t n, const FuseOptions& options) {
  const Graph& graph = regions.graph();
  for (ValueId input : graph.nodes[n].inputs) {
    const std::optional<size_t> producer = regions.maker(input);
    if (!producer || leaves_forward(graph.nodes[*producer], graph.nodes[n])) continue;
    if (!can_fuse(graph, graph.nodes[*producer], graph.nodes[n]) ||
        is_earlier_term(regions, uses, *producer, n, options.streams))
      continue;
    const size_t a = regions.find(*producer), b = regions.find(n);
    if (a != b && fits(regions, a, b, options) && !regions.depends_through_others(a, b))
      regions.merge(a, b);
  }
}

}  // namespace

bool is_tileable(const Graph& graph, const Node& node) {
  const auto packed = [&](ValueId id) { return is_packed(graph.type(id).dtype); };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), packed) || packed(node.outputs[0]))
    return false;
  return has_tiles(*node.op);
}

Streams declared_streams(const Graph&, const Node& node) { return node.op->streams; }

bool leaves_forward(const Node& producer, const Node& reader) {
  return producer.phase == Phase::forward && reader.phase != Phase::forward;
}

bool can_fuse(const Graph& graph, const Node& producer, const Node& reader) {
  return is_tileable(graph, producer) && is_tileable(graph, reader) &&
         graph.type(producer.outputs[0]).shape == graph.type(reader.outputs[0]).shape;
}

ValueId behind_reshapes(const Graph& graph, ValueId id) {
  while (graph.value(id).node.valid()) {
    const Node& node = graph.node(graph.value(id).node);
    if (!node.op->view) break;
    const ValueId source = node.inputs[0];
    const Layout whole = contiguous_layout(graph.type(source).shape);
    const Layout shown = node.op->view(whole, node.attrs);
    if (shown != contiguous_layout(graph.type(id).shape) ||
        numel(whole.shape) != numel(shown.shape))
      break;
    id = source;
  }
  return id;
}

std::vector<Region> fuse(const Graph& graph, const FuseOptions& options) {
  RegionSet regions(graph);
  std::map<size_t, Region> cores;
  if (options.enabled) {
    const Uses uses = graph::uses_of(graph);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (is_tileable(graph, graph.nodes[n])) join_producers(regions, uses, n, options);
    }
    cores = attach_to_cores(regions, options);
  }
  std::vector<Region> result;
  for (size_t root : regions.in_order()) {
    const auto core = cores.find(root);
    Region region = core == cores.end() ? Region() : core->second;
    for (size_t n : regions.members(root)) region.nodes.emplace_back(n);
    std::sort(region.nodes.begin(), region.nodes.end());
    result.push_back(std::move(region));
  }
  return result;
}

}  // namespace brrr::compiler
