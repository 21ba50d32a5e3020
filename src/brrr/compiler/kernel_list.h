// A program as kernels over buffers: what is left when views are layouts and fused nodes are one call.
#pragma once

#include <memory>
#include <string>

#include "brrr/compiler/fuse.h"
#include "brrr/compiler/tile_program.h"

namespace brrr {

using BufferId = StrongId<struct BufferTag>;

// Where the bytes of a buffer come from.
enum class Place : uint8_t {
  temporary,  // the arena, while it is needed
  input,      // given by the caller
  state,      // a tensor that outlives the call
  output      // new at every call, returned to the caller
};

struct Buffer {
  int64_t bytes = 0;
  Place place = Place::temporary;
  int index = 0;  // which input, state or output
};

struct OperandRef {
  BufferId buffer;
  Layout layout;
  DType dtype;
};

// A node that runs in a kernel, with the elements that it goes over: those of its largest operand.
struct KernelPart {
  const OpDef* op;
  int64_t elements;
};

struct Kernel {
  const OpDef* op = nullptr;                   // one op, or
  std::shared_ptr<const TileProgram> program;  // several, fused
  Attrs attrs;
  std::vector<OperandRef> inputs, outputs;
  BufferId workspace;  // none where the kernel asks for no scratch
  Phase phase = Phase::forward;
  Cost cost;         // bytes: those between the kernel and memory
  std::string name;  // "matmul", "mul+add+gelu"
  std::vector<KernelPart> parts;
};

struct KernelList {
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<TensorType> outputs;
};

// The kernels of a graph whose nodes run in these regions. Written states are computed in place where
// nobody reads the old value any more; otherwise they are copied at the end, all at once in effect.
KernelList lower(const Graph& graph, const std::vector<Region>& regions);

// Asks every kernel for its scratch, now that operands are known, and adds it as a buffer.
void select_workspaces(KernelList& list, ThreadPool& pool);

}  // namespace brrr
