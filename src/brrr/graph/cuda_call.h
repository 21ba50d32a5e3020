// The kernels of ops on a CUDA GPU: what they see, and the table that says which op has one. Plain C++: every
// build knows which kernels exist and what scratch they need, so that a program can be planned for a GPU where
// there is none; only a build with CUDA can run them.
#pragma once

#include "brrr/device/chip.h"
#include "brrr/graph/op_def.h"

struct CUstream_st;  // CUDA's

namespace brrr {

// What a CUDA kernel sees: a KernelCall with device addresses. It puts its work on `stream` and waits for
// nothing, so that a run of calls can be captured as one graph.
struct CudaCall {
  const OpDef& op;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  const Attrs& attrs;
  std::span<std::byte>
      workspace;  // as many bytes as CudaKernel::workspace asked for, 256-byte aligned
  ::CUstream_st* stream;
  const Chip& chip;  // of the device, or of the target that a plan is for

  const Operand& input(int i) const { return inputs[static_cast<size_t>(i)]; }
  const Operand& output(int i) const { return outputs[static_cast<size_t>(i)]; }
};

// How one op runs on a GPU.
struct CudaKernel {
  void (*run)(const CudaCall&) = nullptr;  // null in a build without CUDA
  int64_t (*workspace)(const CudaCall&) =
      nullptr;  // bytes of scratch; operands may have no data yet
  // Bit i: the kernel writes result i with any strides but the last, which is 1 (compiler/lower/copy_elision.h).
  uint32_t strided_outputs = 0;
};

// A kernel of a .cu file; nothing where the build has no CUDA.
#if BRRR_HAS_CUDA
#define BRRR_CUDA_KERNEL(function) function
#else
#define BRRR_CUDA_KERNEL(function) nullptr
#endif

// nullptr: the op has none and runs as its composition. An elementwise op with an expression always has one.
// The table itself is backends/cuda/kernel_table.cpp.
const CudaKernel* find_cuda_kernel(const OpDef& op);
// Adds the kernel of an op from outside; both must outlive the program's use of them. Throws Error where the op
// has one already.
void register_cuda_kernel(const OpDef& op, const CudaKernel& kernel);

// Bytes of scratch for operands that may have no memory yet.
int64_t cuda_workspace_bytes(const OpDef& op, std::span<const Operand> inputs,
                             std::span<const Operand> outputs, const Attrs& attrs,
                             const Chip& chip);

}  // namespace brrr
