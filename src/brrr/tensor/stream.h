// std::cout << x: the text of to_text(x).
#pragma once

#include <ostream>

#include "brrr/tensor/tensor.h"

namespace brrr {

inline std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_text(x); }
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << to_text(dtype); }
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << to_text(shape);
}

}  // namespace brrr
