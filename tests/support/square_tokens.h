// Tokens that a small model learns by heart: the squares of 0, 1, 2 ... modulo a number, each with the next as target.
#pragma once

#include <vector>

#include "brrr/ops/create/creation.h"

namespace brrr {

struct SquareTokens {
  Tensor tokens, targets;

  explicit SquareTokens(const Shape& shape, int64_t modulus = 61) {
    std::vector<int64_t> squares, next;
    for (int64_t i = 0; i < numel(shape); ++i) {
      squares.push_back(i * i % modulus);
      next.push_back((i + 1) * (i + 1) % modulus);
    }
    tokens = from_values(squares, shape), targets = from_values(next, shape);
  }
};

}  // namespace brrr
