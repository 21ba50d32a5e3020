// How a generated kernel reaches the elements of an operand: pack by pack where they lie behind one another,
// else one by one, at positions computed from the flat index of the program.
#pragma once

#include <string>

#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cuda/codegen/elementwise_text.h"

namespace brrr::kernels {

inline constexpr int64_t kAccessBytes = 16;  // the widest that a thread has

// Where an operand's elements are, seen from the flat index of the program.
struct Access {
  enum class Kind : uint8_t {
    constant,  // one element
    packed,    // a pack lies behind one another, aligned
    repeated,  // a pack is one element
    single     // element by element
  } kind;
  LoopNest nest;
};
Access access_of(const TextOperand& operand, const Shape& shape, int pack);

LoopNest nest_of(const TextOperand& operand, const Shape& shape);
// Whether packs of this many elements stay inside rows and begin at aligned addresses.
bool can_pack(const TextOperand& operand, const LoopNest& nest, int pack);
// Whether a placed operand begins and ends between packs.
bool is_placed_by(const TextOperand& operand, int pack);

// The position of flat index `index` as an expression.
std::string position_text(const LoopNest& nest, const std::string& index);
// Whether an index of a placed operand is one of those in memory, as an expression.
std::string inside_text(const TextOperand& operand, const std::string& index);

}  // namespace brrr::kernels
