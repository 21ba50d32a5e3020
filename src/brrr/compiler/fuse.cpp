#include "brrr/compiler/fuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace brrr {
namespace {

// Regions while they grow: a union of nodes, with the regions that each reads from.
class Builder {
 public:
  Builder(const Graph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        parent_(graph.nodes.size()),
        members_(graph.nodes.size()),
        uses_(uses_of(graph)),
        visited_(graph.nodes.size(), 0) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (ValueId id : graph.outputs) kept_.insert(id.value);
    for (const StateSlot& state : graph.states) kept_.insert(state.after.value);
    for (size_t n = 0; n < members_.size(); ++n) members_[n] = {n};
  }

  std::vector<Region> run() {
    for (size_t n = 0; n < graph_.nodes.size() && options_.enabled; ++n) {
      if (is_tileable(graph_, graph_.nodes[n])) join_producers(n);
    }
    for (size_t n = 0; n < graph_.nodes.size() && options_.enabled; ++n) {
      if (find(n) == n && is_elementwise(n)) attach(n);
    }
    return in_order();
  }

 private:
  size_t find(size_t n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }

  std::optional<size_t> maker(ValueId id) const {
    const NodeId node = graph_.value(id).node;
    return node.valid() ? std::optional<size_t>(node.index()) : std::nullopt;
  }
  // Reshapes are nobody's work: what they show counts.
  std::optional<size_t> true_maker(ValueId id) const { return maker(behind_reshapes(graph_, id)); }

  void join_producers(size_t n) {
    const Node& node = graph_.nodes[n];
    for (ValueId input : node.inputs) {
      const std::optional<size_t> producer = maker(input);
      if (!producer || !is_tileable(graph_, graph_.nodes[*producer])) continue;
      if (shape_of(*producer) != shape_of(n)) continue;
      const size_t a = find(*producer), b = find(n);
      if (a != b && fits(a, b) && !depends_through_others(a, b)) merge(a, b);
    }
  }

  const Shape& shape_of(size_t n) const { return graph_.type(graph_.nodes[n].outputs[0]).shape; }

  bool fits(size_t a, size_t b) {
    if (static_cast<int>(members_[a].size() + members_[b].size()) > options_.max_nodes)
      return false;
    std::set<int32_t> inside, operands;
    for (size_t region : {a, b}) {
      for (size_t n : members_[region]) {
        for (ValueId id : graph_.nodes[n].outputs) inside.insert(id.value);
      }
    }
    for (size_t region : {a, b}) {
      for (size_t n : members_[region]) {
        for (ValueId id : graph_.nodes[n].inputs) {
          if (!inside.count(id.value)) operands.insert(id.value);
        }
      }
    }
    return static_cast<int>(operands.size()) + 4 <= options_.max_operands;
  }

  // Merging a into b would make a circle where b also reads a by way of a third region.
  bool depends_through_others(size_t a, size_t b) {
    ++round_;
    std::vector<size_t> pending;
    const auto visit_inputs = [&](size_t region, bool from_b) {
      for (size_t n : members_[region]) {
        for (ValueId input : graph_.nodes[n].inputs) {
          const std::optional<size_t> producer = true_maker(input);
          if (!producer) continue;
          const size_t next = find(*producer);
          if (next == b || next == region || visited_[next] == round_) continue;
          if (next == a && from_b) continue;  // the direct edge that the merge removes
          visited_[next] = round_;
          pending.push_back(next);
        }
      }
    };
    visit_inputs(b, true);
    while (!pending.empty()) {
      const size_t region = pending.back();
      pending.pop_back();
      if (region == a) return true;
      visit_inputs(region, false);
    }
    return false;
  }

  void merge(size_t a, size_t b) {
    parent_[a] = b;
    members_[b].insert(members_[b].end(), members_[a].begin(), members_[a].end());
    members_[a].clear();
  }

  // ---- cores ----
  struct Candidate {
    size_t core;
    Attached attached;
    bool is_epilogue;
    int64_t saved_bytes = 0;
  };

  bool is_elementwise(size_t root) const {
    return !cores_.count(root) && is_tileable(graph_, graph_.nodes[members_[root].front()]);
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
      } else if (find(user.index()) != region) {
        ++readers;
      }
    }
    return readers;
  }

  void attach(size_t region) {
    std::optional<Candidate> best;
    const auto offer = [&](const std::optional<Candidate>& candidate) {
      if (candidate && (!best || candidate->saved_bytes > best->saved_bytes)) best = candidate;
    };
    for (size_t n : members_[region]) {
      for (ValueId input : graph_.nodes[n].inputs) offer(as_epilogue(region, input));
      for (NodeId user : uses_[graph_.nodes[n].outputs[0].index()])
        offer(as_prologue(region, graph_.nodes[n].outputs[0], user));
    }
    if (best) join_core(region, *best);
  }

  // The region behind the core that makes `input`.
  std::optional<Candidate> as_epilogue(size_t region, ValueId input) {
    const ValueId result = behind_reshapes(graph_, input);
    const std::optional<size_t> core = maker(result);
    if (!core || graph_.type(input).shape != shape_of(members_[region].front())) return {};
    const Node& node = graph_.nodes[*core];
    const int output = graph_.value(result).output;
    const bool streams = (node.op->streams.outputs >> output & 1U) != 0;
    // A result is rounded to its dtype before anybody sees it; the kernel has done that for these.
    if (!streams || !is_natural(graph_.type(result).dtype)) return {};
    const size_t root = find(*core);
    const auto known = cores_.find(root);
    if (known != cores_.end() && known->second.epilogue.is_used()) return {};
    if (reads_besides(region, root, input) || depends_through_others(root, region)) return {};
    const int64_t uses = readers_outside(result, region) == 0 ? 2 : 1;
    return Candidate{.core = *core,
                     .attached = {.nodes = {}, .operand = output, .value = input},
                     .is_epilogue = true,
                     .saved_bytes = uses * bytes_of(result)};
  }

  // The region before the core `user`, or before the one that reads it reshaped.
  std::optional<Candidate> as_prologue(size_t region, ValueId value, NodeId user) {
    const Node& node = graph_.node(user);
    if (node.op->view) {
      if (behind_reshapes(graph_, node.outputs[0]) != value) return {};
      std::optional<Candidate> best;
      for (NodeId next : uses_[node.outputs[0].index()]) {
        if (const auto candidate = as_prologue_of(region, value, next)) best = candidate;
      }
      return best;
    }
    return as_prologue_of(region, value, user);
  }

  std::optional<Candidate> as_prologue_of(size_t region, ValueId value, NodeId user) {
    const Node& node = graph_.node(user);
    int operand = -1, made_here = 0;
    for (int i = 0; i < node.inputs.size(); ++i) {
      const std::optional<size_t> producer = true_maker(node.inputs[i]);
      if (!producer || find(*producer) != region) continue;
      ++made_here;
      if (behind_reshapes(graph_, node.inputs[i]) == value) operand = i;
    }
    if (operand < 0 || made_here != 1 || (node.op->streams.inputs >> operand & 1U) == 0) return {};
    const size_t root = find(user.index());
    const auto known = cores_.find(root);
    if (known != cores_.end() && known->second.prologue.is_used()) return {};
    if (reads_of_region(root, region, user) || depends_through_others(region, root)) return {};
    const int64_t uses = readers_outside(value, root) == 0 ? 2 : 1;
    return Candidate{.core = user.index(),
                     .attached = {.nodes = {}, .operand = operand, .value = value},
                     .is_epilogue = false,
                     .saved_bytes = uses * bytes_of(value)};
  }

  // True when `reader` reads something made in `made`, leaving out one value or one node.
  bool reads_besides(size_t reader, size_t made, ValueId value) {
    return reads_where(reader, made, [&](size_t, ValueId input) { return input != value; });
  }
  bool reads_of_region(size_t reader, size_t made, NodeId but_for) {
    return reads_where(reader, made, [&](size_t n, ValueId) { return n != but_for.index(); });
  }
  template <typename Counts>
  bool reads_where(size_t reader, size_t made, const Counts& counts) {
    for (size_t n : members_[reader]) {
      if (graph_.nodes[n].op->view) continue;
      for (ValueId input : graph_.nodes[n].inputs) {
        const std::optional<size_t> producer = true_maker(input);
        if (producer && find(*producer) == made && counts(n, input)) return true;
      }
    }
    return false;
  }

  void join_core(size_t region, const Candidate& candidate) {
    Attached attached = candidate.attached;
    for (size_t n : members_[region]) attached.nodes.emplace_back(n);
    std::sort(attached.nodes.begin(), attached.nodes.end());
    const size_t root = find(candidate.core);
    absorb_reshapes(candidate.is_epilogue ? attached.value
                                          : graph_.nodes[candidate.core].inputs[attached.operand],
                    root);
    Region& core = cores_[root];
    core.core = NodeId(candidate.core);
    (candidate.is_epilogue ? core.epilogue : core.prologue) = std::move(attached);
    merge(region, root);
  }

  // The views between the core and what is attached to it belong to the region.
  void absorb_reshapes(ValueId id, size_t root) {
    while (behind_reshapes(graph_, id) != id) {
      const NodeId view = graph_.value(id).node;
      if (find(view.index()) != root) merge(find(view.index()), root);
      id = graph_.node(view).inputs[0];
    }
  }

  // Depth first from the nodes in their old order: everything that a region reads runs before it.
  std::vector<Region> in_order() {
    std::vector<Region> regions;
    std::vector<char> state(graph_.nodes.size(), 0);  // 1: being visited, 2: done
    for (size_t n = 0; n < graph_.nodes.size(); ++n) emit(find(n), state, regions);
    return regions;
  }

  void emit(size_t root, std::vector<char>& state, std::vector<Region>& regions) {
    struct Frame {
      size_t region;
      std::vector<size_t> reads;
      size_t next = 0;
    };
    if (state[root] != 0) return;
    std::vector<Frame> stack;
    const auto enter = [&](size_t region) {
      state[region] = 1;
      stack.push_back({region, regions_read(region)});
    };
    enter(root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.reads.size()) {
        const size_t read = frame.reads[frame.next++];
        invariant(state[read] != 1, "fuse: regions depend on each other in a circle");
        if (state[read] == 0) enter(read);
        continue;
      }
      state[frame.region] = 2;
      std::vector<size_t>& nodes = members_[frame.region];
      std::sort(nodes.begin(), nodes.end());
      Region region;
      if (const auto core = cores_.find(frame.region); core != cores_.end()) region = core->second;
      for (size_t n : nodes) region.nodes.emplace_back(n);
      regions.push_back(std::move(region));
      stack.pop_back();
    }
  }

  std::vector<size_t> regions_read(size_t region) {
    std::vector<size_t> reads;
    for (size_t n : members_[region]) {
      for (ValueId input : graph_.nodes[n].inputs) {
        if (const std::optional<size_t> producer = maker(input)) {
          const size_t read = find(*producer);
          if (read != region) reads.push_back(read);
        }
      }
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    return reads;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> members_;  // by root
  std::map<size_t, Region> cores_;            // by root: what is attached so far
  std::vector<std::vector<NodeId>> uses_;
  std::set<int32_t> kept_;  // values that are outputs or states
  std::vector<int> visited_;
  int round_ = 0;
};

}  // namespace

bool is_tileable(const Graph& graph, const Node& node) {
  const auto packed = [&](ValueId id) { return is_packed(graph.type(id).dtype); };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), packed) || packed(node.outputs[0]))
    return false;
  return node.op->tiles != nullptr || node.op->name == "cast" || node.op->name == "copy";
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
  return Builder(graph, options).run();
}

}  // namespace brrr
