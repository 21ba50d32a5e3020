// Regions while fusing joins them: a union of nodes, and which of them may join without a circle.
#pragma once

#include <initializer_list>
#include <optional>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

class RegionSet {
 public:
  explicit RegionSet(const Graph& graph);  // every node by itself

  const Graph& graph() const { return graph_; }
  // The region of a node; regions are named by one of their nodes.
  size_t find(size_t node);
  bool is_root(size_t node) const { return parent_[node] == node; }
  const std::vector<size_t>& members(size_t region) const { return members_[region]; }
  void merge(size_t a, size_t into);
  // How many values these regions together read from elsewhere.
  int inputs_of(std::initializer_list<size_t> regions) const;

  std::optional<size_t> maker(ValueId id) const;       // the node that makes a value
  std::optional<size_t> true_maker(ValueId id) const;  // behind reshapes, which are nobody's work

  // True when b reads a by way of a third region: merging the two would make a circle.
  bool depends_through_others(size_t a, size_t b);
  // True when a node of `reader` reads a value made in `made`, of those that `counts(node, value)` counts.
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

  // The regions, each behind all that it reads, and a state's writer behind its readers where it can.
  std::vector<size_t> in_order();

 private:
  std::vector<size_t> regions_read(size_t region);
  void write_states_late(std::vector<size_t>& order);
  // The regions that read a value, by itself or through views of it.
  std::vector<size_t> readers_of(ValueId id, const std::vector<std::vector<NodeId>>& uses);
  bool is_update(size_t region) const;  // nothing else

  const Graph& graph_;
  std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> members_;  // by root
  std::vector<size_t> first_, last_;          // by root: the least and greatest member
  std::vector<int> visited_;
  int round_ = 0;
};

}  // namespace brrr::compiler
