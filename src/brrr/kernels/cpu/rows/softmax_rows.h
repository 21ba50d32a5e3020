// Softmax and what comes with it, one contiguous row at a time, for the CPU that this runs on.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/cpu/rows/row_store.h"

namespace brrr::kernels {

// Rows are `count` elements of the compute type. A row is read once from memory: later passes find it
// in the cache, or tile by tile in registers.
struct SoftmaxRows {
  // y = exp(x - max) / sum. `work` holds the exponentials: y itself, or a row of scratch.
  void (*softmax)(const void* x, void* work, void* y, int64_t count, RowStore store);
  // y = (x - max) - ln sum exp(x - max)
  void (*log_softmax)(const void* x, void* y, int64_t count, RowStore store);
  // dx = y * (dy - sum(dy * y))
  void (*softmax_backward)(const void* y, const void* dy, void* dx, int64_t count, RowStore store);
  // dx = dy - exp(y) * sum(dy)
  void (*log_softmax_backward)(const void* y, const void* dy, void* dx, int64_t count,
                               RowStore store);
};
SoftmaxRows find_softmax_rows(ComputeType type);  // f32 or f64

// What the loss of one row is made of.
struct LogitTotals {
  double logsumexp;
  double sum;     // of the logits; 0 unless asked for
  double target;  // the logit of the target
};
struct CrossEntropyForward {
  const void* logits;
  int64_t count;
  int64_t target;
  double soft_cap;  // logits become cap * tanh(logits / cap); 0: they stay
  bool wants_sum;
};
// d logits = slope * (probability * softmax - share - onehot(target) * hit), slope that of the cap.
struct CrossEntropyBackward {
  const void* logits;
  void* gradient;
  int64_t count;
  int64_t target;
  double soft_cap;
  double logsumexp;
  double probability, share, hit;
  RowStore store;
};
struct CrossEntropyRows {
  LogitTotals (*forward)(const CrossEntropyForward&);
  void (*backward)(const CrossEntropyBackward&);
};
CrossEntropyRows find_cross_entropy_rows(ComputeType type);  // f32 or f64

}  // namespace brrr::kernels
