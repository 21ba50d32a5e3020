// From functions that a block runs to entry points of a source: of one kernel, or of many side by side in the
// launches of one. Both call the same functions with the same constants, so the bits are the same.
#pragma once

#include <string>
#include <vector>

#include "brrr/compiler/codegen/codegen_cuda.h"

namespace brrr::compiler {

// One launch of a kernel, which runs `void function(unsigned block, const First& first)`, or with one parameter
// more, `const More& more`; both are structs of pointers.
struct LaunchText {
  std::string function, first, more;  // `more` is empty where there is none
  int64_t blocks;
  std::vector<KernelPointer> pointers, more_pointers;  // what is in them
};

struct KernelText {
  std::string functions;             // with the types of their parameters
  std::vector<LaunchText> launches;  // in this order
  int64_t workspace_bytes = 0;
};

// The kernel by itself. `name` is an identifier, `comment` the first line of the source.
GeneratedKernel kernel_of(const KernelText& text, const std::string& name,
                          const std::string& comment);

// A kernel whose operands and workspace begin at these of the joined one.
struct PlacedText {
  KernelText text;
  int first_input = 0, first_output = 0;
};
// All in as many launches as the longest of them has: a block finds its kernel by its number. Kernels of equal
// text share a function.
GeneratedKernel joined_kernel(const std::vector<PlacedText>& parts, const std::string& name,
                              const std::string& comment);

}  // namespace brrr::compiler
