// Calling an op: check, type, run, and put it on the tape where a gradient is wanted.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>

#include "brrr/graph/op_def.h"

namespace brrr {

Tensors call_op(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs = {});

inline Tensor call_one(const OpDef& op, std::initializer_list<Tensor> inputs,
                       const Attrs& attrs = {}) {
  Tensors outputs = call_op(op, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
  return std::move(outputs[0]);
}

// Runs the kernel of a one-output op into elements that exist already, and marks them written.
// Shapes must match exactly; nothing is recorded.
void call_into(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
               const Tensor& output);

// Counts the cost of every op that this thread calls while it lives (on any device, null included):
//   CostCounter counter;  matmul(x, w);  counter.total().flops
class CostCounter {
 public:
  CostCounter();
  ~CostCounter();
  CostCounter(const CostCounter&) = delete;
  CostCounter& operator=(const CostCounter&) = delete;

  const Cost& total() const { return total_; }
  int64_t calls() const { return calls_; }
  Cost contractions() const { return contractions_; }  // the part of matmuls
  void add(const OpDef& op, const Cost& cost);

 private:
  Cost total_, contractions_;
  int64_t calls_ = 0;
  CostCounter* outer_;
};

}  // namespace brrr
