// Inputs for the sweep: fixed, varied, and small unless threads are to be tested.
#pragma once

#include <vector>

#include "brrr/graph/op_def.h"

namespace brrr {

// f64 values spread over (low, high) by a counter-based generator: the same on every machine.
Tensor sample_values(const Shape& shape, uint32_t seed, double low = -2, double high = 2);
// i64 values in [0, bound).
Tensor sample_indices(const Shape& shape, uint32_t seed, int64_t bound);
// bools.
Tensor sample_mask(const Shape& shape, uint32_t seed);

// Shapes an elementwise op must cope with: scalar, one element, empty, odd, and one of several pieces.
std::vector<Shape> elementwise_shapes();

std::vector<Sample> unary_samples(double low, double high);
std::vector<Sample> binary_samples(double low, double high);  // broadcasting among them

// The same as functions without arguments, to name in an OpDef.
std::vector<Sample> samples_any();             // (-3, 3)
std::vector<Sample> samples_positive();        // (0.1, 4)
std::vector<Sample> samples_away_from_zero();  // +-(0.2, 3), for kinks and poles
std::vector<Sample> samples_pairs();           // two operands in (-2, 2)

}  // namespace brrr
