// What the checks of the sweep share: samples in every dtype, oracles, and comparison with reasons.
#pragma once

#include <string>
#include <vector>

#include "brrr/graph/op_def.h"

namespace brrr::sweep {

// A sample in a certain dtype, with words for error messages.
struct Case {
  const OpDef* op;
  int index;
  Tensors inputs;
  Attrs attrs;
  DType dtype;
  // Which inputs are f64 in the sample and so have `dtype` here. The others, masks, ids and keys, stay
  // what they are whatever the dtype.
  std::vector<bool> takes_dtype = {};
};
std::string to_text(const Case& c);
Tensors run_case(const Case& c);
bool is_large(const Case& c);  // so large that threads share it

// The samples of an op with their f64 operands cast to `dtype`.
std::vector<Case> cases_of(const OpDef& op, DType dtype);

// What the op should give, computed in f64 from the same (rounded) inputs by its definition.
Tensors oracle(const Case& c);

// Relative error that a result of this dtype may have: a few units in its last place.
double tolerance_of(DType dtype);

// Throws Error unless every element agrees: |a - b| <= tolerance * (largest magnitude).
void require_close(const Case& c, std::string_view what, const Tensor& got, const Tensor& expected,
                   double tolerance);
// Throws Error unless all bits agree.
void require_same_bits(const Case& c, std::string_view what, const Tensor& got,
                       const Tensor& expected);

bool is_differentiable(const OpDef& op);

}  // namespace brrr::sweep
