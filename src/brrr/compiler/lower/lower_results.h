// What stays when all kernels have run: results that the caller gets, and states with their new values.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/lower/kernel_list.h"

namespace brrr::compiler {

BufferId add_buffer(KernelList& list, const TensorType& type, Place place, int index);
// A kernel that copies, behind those that are there.
void add_copy(KernelList& list, const OperandRef& from, const OperandRef& to);

// Gives results buffers of their own, computes states in place where nobody reads the old value any more,
// and copies the others at the end. `where`: by value of the graph.
void finish_results(const Graph& graph, std::vector<OperandRef>& where, KernelList& list);

}  // namespace brrr::compiler
