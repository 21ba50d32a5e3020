// Programs of calibration that move rows about: windows of convolutional networks, and the routing of mixtures of
// experts. Each is one kernel of a family over `rows` x `row` elements.
#pragma once

#include <string>
#include <vector>

#include "brrr/runtime/compile.h"

namespace brrr::cost {

struct RowProgram {
  std::string family, op;  // op: of the kernel that is timed
  runtime::CompiledFunction::Function function;
  std::vector<Tensor> inputs;
};

// The largest of 2 x 2 pixels, and windows of 3 added up where they overlap. Results have as many elements as
// `rows` and `row` say.
std::vector<RowProgram> window_programs(int64_t rows, int64_t row);

// A token chooses experts, is numbered among those of its expert, moves there and comes back.
std::vector<RowProgram> routing_programs(int64_t rows, int64_t row);

}  // namespace brrr::cost
