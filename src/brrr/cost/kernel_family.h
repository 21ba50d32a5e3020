// Which rates price the arithmetic of a kernel. A kernel is one or several pieces of work, each of a
// family that brrr calibrate measured, at a place in the grid of that family.
#pragma once

#include "brrr/compiler/lower/kernel_list.h"

namespace brrr::cost {

struct FamilyWork {
  std::string family;              // "matmul.nt", "tile.exp", "layer_norm", "sum.column"
  SmallVector<double, 3> where{};  // coordinates in its grid
  double amount = 0;               // FLOPs of contractions, elements of the others
  bool per_thread = false;         // the rate is that of one thread
  // Families that go before `family`, where the rates have them.
  std::string own{};              // of a product with an epilogue: "matmul_gelu"
  std::string_view arithmetic{};  // what its factors or rows are, f32 apart: "matmul.nt.bf16"
};

struct KernelWork {
  std::vector<FamilyWork> parts;
  int64_t pieces = 1;  // that threads share; one piece runs in place, more wake the other threads
};

KernelWork work_of(const compiler::Kernel& kernel);

// "bf16", "f16", "fp8" by the first operand of a kernel, "tf32" where products of f32 are; empty: f32, or none.
std::string_view arithmetic_name(const compiler::Kernel& kernel);

// The name in a set of rates under which this very product or attention was measured by itself: op, attributes
// and how its operands lie. Empty for kernels of other kinds.
std::string kernel_signature(const compiler::Kernel& kernel);

// What a kernel is for people: where FLOPs and time go.
enum class KernelClass : uint8_t { contraction, normalisation, elementwise, other };
inline constexpr int kKernelClasses = 4;
std::string_view class_name(KernelClass kernel_class);
// Contractions; else reductions with what is fused to them (softmax, norms, losses, sums); else
// elementwise work, fused or not.
KernelClass class_of(const compiler::Kernel& kernel);

}  // namespace brrr::cost
