// Kernels of a program as CUDA C++, written for their operands: sizes, strides and dtypes are constants of
// the text. Elementwise programs, programs side by side, and reductions with the program that makes what
// they reduce. Everything else runs by the kernel of its op.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/device/chip.h"
#include "brrr/device/cuda/nvrtc.h"

namespace brrr::compiler {

// What a pointer of a launch shows.
struct KernelPointer {
  enum class From : uint8_t { input, output, workspace } from;
  int index = 0;  // which of the kernel's inputs or outputs; where in the workspace, in bytes
};

// One entry point of a source. Its first parameter is a struct of `pointers`, or the address of a table in
// device memory that holds them; its second, where `more` is not empty, a struct of those.
struct GeneratedLaunch {
  std::string entry;
  int64_t blocks;
  int threads;
  std::vector<KernelPointer> pointers, more;
  bool is_table = false;
};

struct GeneratedKernel {
  cuda::SourceText source;
  std::vector<GeneratedLaunch> launches;  // in this order
  int64_t workspace_bytes = 0;
};

// Null where the kernel runs by the kernel of its op.
std::shared_ptr<const GeneratedKernel> generate_kernel(const Kernel& kernel, const Chip& chip);

// Generates every kernel of the list that has none yet, bodies of repeats included.
void generate_kernels(KernelList& list, const Chip& chip);

// What generated kernels take from programs fused to them, or hand on: operand and result of a reduction
// over neighbouring axes. Kernels that come with ops take nothing.
Streams generated_streams(const Graph& graph, const Node& node);

// All sources of a program, each with its launches, for people.
std::string generated_text(const KernelList& list);

}  // namespace brrr::compiler
