// One kernel by itself: made for operands of given types as lowering makes it, without a graph, and timed on a GPU
// over random operands. Random, since zeros take less power and so run at a higher clock.
#pragma once

#include <optional>

#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/device/device.h"

namespace brrr::cost {

compiler::OperandRef operand(DType dtype, const Shape& shape);  // in order
compiler::OperandRef operand(DType dtype, const Layout& layout);

// Results have the types that the op infers and lie in order.
compiler::Kernel make_kernel(const OpDef& op, std::vector<compiler::OperandRef> inputs,
                             const Attrs& attrs = {});

struct AloneOptions {
  int rounds = 5;         // medians count
  int64_t ids_below = 1;  // of integer operands
};
// Seconds of one call inside a captured run of calls, the gap to the next with it. Nothing where its operands do not
// fit the free memory, or the op has no kernel of its own on a GPU.
std::optional<double> seconds_alone(const compiler::Kernel& kernel, Device device,
                                    const AloneOptions& options = {});

}  // namespace brrr::cost
