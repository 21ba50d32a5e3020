// Order along one axis. NaN counts as larger than every number. Equal elements stay in the order they
// came in, so the indices are the same on every machine and for any number of threads.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

enum class Order : uint8_t { ascending, descending };
enum class Pick : uint8_t { largest, smallest };

struct Sorted {
  Tensor values;
  Tensor indices;  // i64: values[i] was at indices[i]
};

Sorted sort(const Tensor& x, int64_t axis = -1, Order order = Order::ascending);
Tensor argsort(const Tensor& x, int64_t axis = -1, Order order = Order::ascending);  // the indices
// The k largest (or smallest) elements, the most extreme first.
Sorted topk(const Tensor& x, int64_t k, int64_t axis = -1, Pick pick = Pick::largest);

}  // namespace brrr
