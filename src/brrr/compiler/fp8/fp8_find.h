// Finds what the precision pass wrote for 8-bit operands, as compiler/fp8/fp8_matmuls.h puts other ops in its place.
#pragma once

#include <map>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/rewrite/matmul_graph.h"

namespace brrr::compiler {

// cast(x * scale), and max |x| where it is taken beside it.
struct QuantizedFactor {
  size_t at;  // the node that it stands in place of
  ValueId x, scale;
  ValueId amax;            // none: nobody wants it, or it is taken elsewhere
  int64_t columns = 0;     // of the matrix that is transposed
  bool is_factor = false;  // of a product that tensor cores take
  bool plain = false, turned = false;
};

// A product with both factors in 8 bits along k, and what is done to its result.
struct ScaledProduct {
  Product product;
  bool turned_a = false, turned_b = false;  // which factors are read as they lie transposed
  ValueIds scales;                          // two, or none: the result is scaled elsewhere
  ValueId bias, result;
};

struct Fp8Products {
  std::map<ValueId, QuantizedFactor> quantized;  // by 8-bit value
  std::map<size_t, ScaledProduct> at_node;       // by the last node that a product stands for
};
Fp8Products find_fp8_products(const Graph& graph);

}  // namespace brrr::compiler
