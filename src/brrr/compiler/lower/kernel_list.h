// A program as kernels over buffers: what is left when views are layouts and fused nodes are one call.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/tiles/tile_program.h"

namespace brrr::compiler {

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
  ValueId value;  // whose elements it was made for; none for workspaces and copies at the end
};

// An operand that is part of what is read, with zeros around it: the gradient of a slice, never written out.
struct Placement {
  int axis = -1;  // none: the operand is all of it
  int64_t start = 0;
  Shape shape = {};  // with the zeros
  bool is_used() const { return axis >= 0; }
};

struct OperandRef {
  BufferId buffer;
  Layout layout;
  DType dtype;
  Placement placed = {};
};

struct KernelProgram;    // plan_memory.h
struct GeneratedKernel;  // codegen_cuda.h

// An operand of the op of a kernel that has more fused to it.
struct CoreOperand {
  int index = -1;       // which of the kernel's inputs or outputs; -1: nowhere in memory
  int attachment = -1;  // the program that makes it, or goes on with it; -1: none
  Layout layout;
  DType dtype = DType::f32;
};

// A tile program fused before or behind the op of a kernel.
struct Attachment {
  std::shared_ptr<const TileProgram> program;
  std::vector<int> inputs, outputs;  // which of the kernel's
  int landing = -1;                  // which of `outputs` lies where the op's own result is
};

// A node that runs in a kernel, with the elements that it goes over: those of its largest operand.
struct KernelPart {
  const OpDef* op;
  int64_t elements;
};

struct Kernel;

// A kernel that runs side by side with others, in the launches of all of them (compiler/lower/group.h). Its
// operands are those of the joined kernel from these on, which passes may still rename.
struct Member {
  std::shared_ptr<const Kernel> kernel;  // without inputs and outputs
  size_t first_input, inputs;
  size_t first_output, outputs;
};

// One of four: an op, alone or with attachments; a program; programs side by side, as attachments; on a GPU
// reductions side by side, as members.
struct Kernel {
  const OpDef* op = nullptr;
  std::shared_ptr<const TileProgram> program;
  Attrs attrs;
  std::vector<OperandRef> inputs, outputs;  // all memory that the kernel touches
  std::vector<CoreOperand> core_inputs,
      core_outputs;  // empty: the op has inputs and outputs as they are
  std::vector<Attachment> attachments;
  std::vector<Member> members;
  BufferId workspace;  // none where the kernel asks for no scratch
  Phase phase = Phase::forward;
  Cost cost;         // bytes: those between the kernel and memory
  std::string name;  // "matmul", "mul+add+gelu"
  // Of a repeat: what it runs, and the kernels that this becomes. Their memory is its workspace.
  std::shared_ptr<const Graph> body_graph;
  std::shared_ptr<const KernelProgram> body;
  std::vector<KernelPart> parts;
  std::shared_ptr<const GeneratedKernel>
      generated;  // on a GPU: how it runs, unless by its op's kernel

  OpRole role() const { return op ? op->role : OpRole::none; }
};

// A member with its operands, as if it ran alone.
Kernel alone(const Kernel& joined, const Member& member);

// True when the kernel may write an output into the bytes of an operand that nobody reads after it:
// element i of the result is computed from element i of the operand, or later than all its reads.
bool may_overwrite(const Kernel& kernel, size_t input, size_t output);

struct KernelList {
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<TensorType> outputs;
};

// The kernels of a graph whose nodes run in these regions. Written states are computed in place where
// nobody reads the old value any more; otherwise they are copied at the end, all at once in effect.
struct LowerOptions {
  bool group = true;       // join kernels that do not depend on each other
  bool generated = false;  // every elementwise kernel is a program, and numbers are in its text
  // Bit i of the answer: the kernel of the op writes result i with any strides but the last, which is 1. Such results
  // lie where they would be copied to (compiler/lower/copy_elision.h). Null: no kernel does.
  uint32_t (*strided_outputs)(const OpDef& op) = nullptr;
};
KernelList lower(const Graph& graph, const std::vector<Region>& regions,
                 const LowerOptions& options = {});

// What the op of a kernel has as inputs, or as outputs.
std::vector<CoreOperand> core_operands(const std::vector<CoreOperand>& fused,
                                       const std::vector<OperandRef>& refs);

// Asks every kernel for its scratch, now that operands are known, and adds it as a buffer.
void add_workspaces(KernelList& list, const std::function<int64_t(const Kernel&)>& bytes);
// Scratch of the CPU's kernels.
int64_t cpu_workspace_bytes(const Kernel& kernel, ThreadPool& pool);

}  // namespace brrr::compiler
