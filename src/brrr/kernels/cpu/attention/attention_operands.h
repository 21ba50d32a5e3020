// Operands of attention as its kernels read them: rows in the compute type, one after another with a
// stride, taken from the caller's memory where that is possible and from a converted copy elsewhere.
#pragma once

#include <atomic>
#include <vector>

#include "brrr/kernels/calls/attention_rule.h"

namespace brrr::kernels {

// Rows [batch, heads, rows] of `columns` elements.
template <typename T>
struct HeadRows {
  T* base;
  int64_t batch_stride, head_stride, row_stride;
  T* at(int64_t batch, int64_t head, int64_t row = 0) const {
    return base + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

// Hands out parts of a workspace, whole cache lines each. Without memory it only counts.
class Scratch {
 public:
  explicit Scratch(std::byte* memory = nullptr) : memory_(memory) {}
  std::byte* take(int64_t bytes) {
    std::byte* const here = memory_ ? memory_ + used_ : nullptr;
    used_ += (bytes + 63) / 64 * 64;
    return here;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* memory_;
  int64_t used_ = 0;
};

// The rows of an operand [batch, heads, rows, columns], or [batch, heads, rows] as one row a head.
// Where `padded_columns` is more than the columns, rows end in that many elements less of zeros. With
// scratch that only counts, nothing is read.
template <typename T>
HeadRows<const T> read_rows(const KernelCall& call, const Operand& operand, int64_t padded_columns,
                            Scratch& scratch);

// Where results go: the output itself where its elements are of the compute type, else scratch, which
// `finish_result` converts.
template <typename T>
HeadRows<T> result_rows(const Operand& output, Scratch& scratch);
template <typename T>
void finish_result(const KernelCall& call, const Operand& output, const HeadRows<T>& rows);

// What the queries of each batch see. Throws Error on lengths that are negative or more than the keys.
class Visibility {
 public:
  // `extra` is the position of the tensor of documents or lengths among the inputs.
  Visibility(const KernelCall& call, const AttentionSizes& sizes, int extra);
  VisibleKeys of(int64_t batch) const;

 private:
  AttentionRule rule_;
  AttentionSizes sizes_;
  std::vector<int64_t> values_;  // documents or lengths
};

// Scratch for the pieces that run at the same time, as many as there are threads. Which of them a piece
// gets does not matter for its results.
class ScratchSlots {
 public:
  ScratchSlots(const ThreadPool& pool, int64_t bytes, Scratch& scratch);
  // Calls body(memory) with a slot that nobody else has meanwhile.
  template <typename Body>
  void use(const Body& body) {
    const Claim claim(*this);
    body(memory_ + claim.slot * bytes_);
  }

 private:
  struct Claim {
    ScratchSlots& slots;
    int64_t slot;
    explicit Claim(ScratchSlots& all) : slots(all), slot(all.take()) {}
    ~Claim() { slots.taken_[static_cast<size_t>(slot)].clear(std::memory_order_release); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
  };
  int64_t take();

  int64_t bytes_;
  std::vector<std::atomic_flag> taken_;
  std::byte* memory_;
};

// Units of work in pieces of some each, cut by the size of the work alone.
struct WorkPieces {
  int64_t units, units_a_piece;
  int64_t count() const { return (units + units_a_piece - 1) / units_a_piece; }
  int64_t begin(int64_t piece) const { return std::min(units, piece * units_a_piece); }
};
WorkPieces cut_work(int64_t units, double flops);

}  // namespace brrr::kernels
