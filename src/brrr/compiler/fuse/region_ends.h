// What the program of a region reads from memory, and which of its results others want.
#pragma once

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/tiles/tile_program.h"

namespace brrr::compiler {

class RegionEnds {
 public:
  // Where kernels are generated, constants are in their text and not in memory.
  RegionEnds(const Graph& graph, bool is_generated);

  bool is_result(ValueId id) const {
    return is_result_[id.index()];
  }  // read when all nodes have run
  // By itself or as one of the region's own views of it.
  bool is_used_outside(ValueId id, const Region& region) const;
  // Of elementwise nodes of the region; `given` comes to them from its core.
  TileProgramEnds of(std::span<const NodeId> nodes, const Region& region, ValueId given) const;

 private:
  const Graph& graph_;
  bool is_generated_;
  std::vector<std::vector<NodeId>> uses_;
  std::vector<bool> is_result_;  // by value
};

}  // namespace brrr::compiler
