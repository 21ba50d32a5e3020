#include "brrr/compiler/fuse/fuse_cores.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {
namespace {

// Operands past the bits of a mask stream nowhere: concat may read any number, repeat may make any.
bool has_bit(uint32_t bits, int i) { return i < 32 && (bits >> i & 1U) != 0; }

class CoreBuilder {
 public:
  CoreBuilder(RegionSet& regions, const FuseOptions& options)
      : graph_(regions.graph()),
        regions_(regions),
        options_(options),
        uses_(graph::uses_of(graph_)) {
    for (ValueId id : graph_.outputs) kept_.insert(id.value);
    for (const StateSlot& state : graph_.states) kept_.insert(state.after.value);
  }

  std::map<size_t, Region> run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (regions_.is_root(n) && is_elementwise(n)) attach(n);
    }
    return std::move(cores_);
  }

 private:
  struct Candidate {
    size_t core;
    Attached attached;
    bool is_epilogue;
    int64_t saved_bytes = 0;
  };

  bool is_elementwise(size_t root) const {
    return !cores_.count(root) && is_tileable(graph_, graph_.nodes[regions_.members(root).front()]);
  }

  int64_t bytes_of(ValueId id) const {
    return storage_bytes(graph_.type(id).dtype, numel(graph_.type(id).shape));
  }

  // How many nodes outside `region` read the value, by itself or reshaped.
  int64_t readers_outside(ValueId id, size_t region) {
    int64_t readers = kept_.count(id.value) ? 1 : 0;
    for (NodeId user : uses_[id.index()]) {
      const Node& node = graph_.node(user);
      if (node.op->view && behind_reshapes(graph_, node.outputs[0]) != node.outputs[0]) {
        readers += readers_outside(node.outputs[0], region);
      } else if (regions_.find(user.index()) != region) {
        ++readers;
      }
    }
    return readers;
  }

  // Sums of hundreds of numbers stay apart: the threads of a reduction would hold them all in registers.
  void attach(size_t region) {
    if (regions_.inputs_of({region}) > options_.max_operands) return;
    std::optional<Candidate> best;
    const auto offer = [&](const std::optional<Candidate>& candidate) {
      if (candidate && (!best || candidate->saved_bytes > best->saved_bytes)) best = candidate;
    };
    for (size_t n : regions_.members(region)) {
      for (ValueId input : graph_.nodes[n].inputs) offer(as_epilogue(region, input));
      for (NodeId user : uses_[graph_.nodes[n].outputs[0].index()])
        offer(as_prologue(region, graph_.nodes[n].outputs[0], user));
    }
    if (best) join_core(region, *best);
  }

  bool any_leaves_forward(const Node& core, size_t region) const {
    const std::vector<size_t>& members = regions_.members(region);
    return std::any_of(members.begin(), members.end(),
                       [&](size_t n) { return leaves_forward(core, graph_.nodes[n]); });
  }

  // True when the region reads something that is made after the core has run. As one kernel they would run
  // then, and hold the core's operands until there in place of its result.
  bool waits(size_t core, size_t region) {
    for (size_t n : regions_.members(region)) {
      for (ValueId input : graph_.nodes[n].inputs) {
        const std::optional<size_t> producer = regions_.true_maker(input);
        if (producer && *producer > core && regions_.find(*producer) != region) return true;
      }
    }
    return false;
  }

  // Of those that the program makes; its inputs and states are there anyhow.
  int64_t operand_bytes(const Node& node) const {
    int64_t bytes = 0;
    for (ValueId input : node.inputs) {
      if (regions_.true_maker(input)) bytes += bytes_of(behind_reshapes(graph_, input));
    }
    return bytes;
  }

  // The region behind the core that makes `input`.
  std::optional<Candidate> as_epilogue(size_t region, ValueId input) {
    const ValueId result = behind_reshapes(graph_, input);
    const std::optional<size_t> core = regions_.maker(result);
    if (!core || graph_.type(input).shape !=
                     graph_.type(graph_.nodes[regions_.members(region).front()].outputs[0]).shape)
      return {};
    const Node& node = graph_.nodes[*core];
    if (any_leaves_forward(node, region)) return {};
    const int output = graph_.value(result).output;
    const bool streams = has_bit(options_.streams(graph_, node).outputs, output);
    // A result is rounded to its dtype before anybody sees it; the kernel has done that for these.
    if (!streams || !is_natural(graph_.type(result).dtype)) return {};
    const size_t root = regions_.find(*core);
    const auto known = cores_.find(root);
    if (known != cores_.end() && known->second.epilogue.is_used()) return {};
    if (reads_besides(region, root, input) || regions_.depends_through_others(root, region))
      return {};
    if (waits(*core, region) && operand_bytes(node) > bytes_of(result)) return {};
    const int64_t uses = readers_outside(result, region) == 0 ? 2 : 1;
    return Candidate{.core = *core,
                     .attached = {.nodes = {}, .operand = output, .value = input},
                     .is_epilogue = true,
                     .saved_bytes = uses * bytes_of(result)};
  }

  // The region before the core `user`, or before the one that reads it reshaped, once or several times.
  std::optional<Candidate> as_prologue(size_t region, ValueId value, NodeId user) {
    const Node& node = graph_.node(user);
    if (node.op->view) {
      if (behind_reshapes(graph_, node.outputs[0]) != value) return {};
      std::optional<Candidate> best;
      for (NodeId next : uses_[node.outputs[0].index()]) {
        if (const auto candidate = as_prologue(region, value, next)) best = candidate;
      }
      return best;
    }
    return as_prologue_of(region, value, user);
  }

  std::optional<Candidate> as_prologue_of(size_t region, ValueId value, NodeId user) {
    const Node& node = graph_.node(user);
    const Node& maker = graph_.node(graph_.value(value).node);
    if (leaves_forward(maker, node)) return {};
    int operand = -1, made_here = 0;
    for (int i = 0; i < node.inputs.size(); ++i) {
      const std::optional<size_t> producer = regions_.true_maker(node.inputs[i]);
      if (!producer || regions_.find(*producer) != region) continue;
      ++made_here;
      if (behind_reshapes(graph_, node.inputs[i]) == value) operand = i;
    }
    if (operand < 0 || made_here != 1) return {};
    if (!has_bit(options_.streams(graph_, node).inputs, operand)) return {};
    const size_t root = regions_.find(user.index());
    const auto known = cores_.find(root);
    if (known != cores_.end() && known->second.prologue.is_used()) return {};
    if (reads_of_region(root, region, user) || regions_.depends_through_others(region, root))
      return {};
    const int64_t uses = readers_outside(value, root) == 0 ? 2 : 1;
    return Candidate{.core = user.index(),
                     .attached = {.nodes = {}, .operand = operand, .value = value},
                     .is_epilogue = false,
                     .saved_bytes = uses * bytes_of(value)};
  }

  // True when `reader` reads something made in `made`, leaving out one value or one node.
  bool reads_besides(size_t reader, size_t made, ValueId value) {
    return regions_.reads_where(reader, made,
                                [&](size_t, ValueId input) { return input != value; });
  }
  bool reads_of_region(size_t reader, size_t made, NodeId but_for) {
    return regions_.reads_where(reader, made,
                                [&](size_t n, ValueId) { return n != but_for.index(); });
  }

  void join_core(size_t region, const Candidate& candidate) {
    Attached attached = candidate.attached;
    for (size_t n : regions_.members(region)) attached.nodes.emplace_back(n);
    std::sort(attached.nodes.begin(), attached.nodes.end());
    const size_t root = regions_.find(candidate.core);
    absorb_reshapes(candidate.is_epilogue ? attached.value
                                          : graph_.nodes[candidate.core].inputs[attached.operand],
                    root);
    Region& core = cores_[root];
    core.core = NodeId(candidate.core);
    (candidate.is_epilogue ? core.epilogue : core.prologue) = std::move(attached);
    regions_.merge(region, root);
  }

  // The views between the core and what is attached to it belong to the region.
  void absorb_reshapes(ValueId id, size_t root) {
    while (behind_reshapes(graph_, id) != id) {
      const NodeId view = graph_.value(id).node;
      if (regions_.find(view.index()) != root) regions_.merge(regions_.find(view.index()), root);
      id = graph_.node(view).inputs[0];
    }
  }

  const Graph& graph_;
  RegionSet& regions_;
  const FuseOptions& options_;
  std::map<size_t, Region> cores_;  // by root: what is attached so far
  std::vector<std::vector<NodeId>> uses_;
  std::set<int32_t> kept_;  // values that are outputs or states
};

}  // namespace

std::map<size_t, Region> attach_to_cores(RegionSet& regions, const FuseOptions& options) {
  return CoreBuilder(regions, options).run();
}

}  // namespace brrr::compiler
