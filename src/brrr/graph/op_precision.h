// How an op takes its float operands in mixed precision: a part of its definition (OpDef::precision), so that an op from
// outside the tree can say it too. Ops that say nothing go by their kind (compiler/precision/precision_table.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace brrr {

enum class Take : uint8_t {
  low,     // operands in the low type, results too; products may store their f32 sums as they are
  stored,  // operands as they are stored: the kernel widens them and computes in f32
  follow,  // low where an operand is stored low and a reader of the result takes it low, else f32
  table,   // rows of a parameter: low where a reader takes them low
  wide     // operands and results f32
};

struct PrecisionRule {
  Take take = Take::follow;
  uint32_t factors = 0;      // bit i: operand i is multiplied in a product (tf32, fp8)
  uint32_t wide_inputs = 0;  // bit i: operand i is f32 whatever the others are
  bool stores_sums = false;  // has an attribute `dtype` for results in f32
  bool takes_fp8 = false;    // under fp8 the factors are 8-bit
  std::string_view reason = {};

  // Operands past the bits of a mask are in neither: concat may have any number.
  bool is_factor(int i) const { return i < 32 && (factors >> i & 1U) != 0; }
  bool is_wide(int i) const { return i < 32 && (wide_inputs >> i & 1U) != 0; }
};

// Rules that ops of several files share.
inline constexpr PrecisionRule kExactInEveryType{.take = Take::follow,
                                                 .reason = "exact in every type, or f32 inside"};
inline constexpr PrecisionRule kWideResults{.take = Take::wide,
                                            .reason = "losses and sums are f32"};

}  // namespace brrr
