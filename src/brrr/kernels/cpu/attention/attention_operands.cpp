#include "brrr/kernels/cpu/attention/attention_operands.h"

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"

namespace brrr::kernels {
namespace {

constexpr double kPieceFlops = 4e6;  // about 25 us: worth waking a thread

// [batch, heads, rows] as [batch, heads, 1, rows].
Layout with_four_axes(Layout layout) {
  if (layout.rank() == 3) {
    layout.shape.insert(2, 1);
    layout.strides.insert(2, 0);
  }
  return layout;
}

template <typename T>
HeadRows<T> rows_of(std::byte* base, const Layout& layout) {
  return {reinterpret_cast<T*>(base) + layout.offset, layout.strides[0], layout.strides[1],
          layout.strides[2]};
}

}  // namespace

template <typename T>
HeadRows<const T> read_rows(const KernelCall& call, const Operand& operand, int64_t padded_columns,
                            Scratch& scratch) {
  const Layout layout = with_four_axes(*operand.layout);
  const int64_t columns = layout.shape[3];
  const bool in_order = layout.strides[3] == 1 || columns <= 1;
  if (is_natural(operand.dtype) && in_order && padded_columns == columns)
    return rows_of<const T>(operand.base, layout);
  Shape shape = layout.shape;
  shape[3] = padded_columns;
  Layout copy = contiguous_layout(shape);
  const int64_t bytes = numel(shape) * static_cast<int64_t>(sizeof(T));
  std::byte* const memory = scratch.take(bytes);
  if (memory && numel(layout.shape) > 0) {
    if (padded_columns > columns) std::fill_n(memory, bytes, std::byte{0});
    copy.shape[3] = columns;
    const Operand source{operand.base, &layout, operand.dtype};
    const Operand target{memory, &copy, natural_dtype(compute_type(operand.dtype))};
    run_copy({call.op, {&source, 1}, {&target, 1}, call.attrs, {}, call.pool});
  }
  return rows_of<const T>(memory, copy);
}

template <typename T>
HeadRows<T> result_rows(const Operand& output, Scratch& scratch) {
  const Layout layout = contiguous_layout(output.shape());
  if (is_natural(output.dtype)) return rows_of<T>(output.base, *output.layout);
  return rows_of<T>(scratch.take(output.count() * static_cast<int64_t>(sizeof(T))), layout);
}

template <typename T>
void finish_result(const KernelCall& call, const Operand& output, const HeadRows<T>& rows) {
  if (is_natural(output.dtype)) return;
  const Layout layout = contiguous_layout(output.shape());
  const Operand computed{reinterpret_cast<std::byte*>(rows.base), &layout,
                         natural_dtype(compute_type(output.dtype))};
  run_copy({call.op, {&computed, 1}, {&output, 1}, call.attrs, {}, call.pool});
}

template HeadRows<const float> read_rows(const KernelCall&, const Operand&, int64_t, Scratch&);
template HeadRows<const double> read_rows(const KernelCall&, const Operand&, int64_t, Scratch&);
template HeadRows<float> result_rows(const Operand&, Scratch&);
template HeadRows<double> result_rows(const Operand&, Scratch&);
template void finish_result(const KernelCall&, const Operand&, const HeadRows<float>&);
template void finish_result(const KernelCall&, const Operand&, const HeadRows<double>&);

Visibility::Visibility(const KernelCall& call, const AttentionSizes& sizes, int extra)
    : rule_(attention_rule(call.attrs)), sizes_(sizes) {
  if (!rule_.documents && !rule_.lengths) return;
  const Operand& operand = call.input(extra);
  values_.resize(static_cast<size_t>(operand.count()));
  if (values_.empty()) return;
  const Layout layout = contiguous_layout(operand.shape());
  const Operand target{reinterpret_cast<std::byte*>(values_.data()), &layout, DType::i64};
  run_copy({call.op, {&operand, 1}, {&target, 1}, call.attrs, {}, call.pool});
  if (!rule_.lengths) return;
  for (size_t batch = 0; batch < values_.size(); ++batch) {
    check(values_[batch] >= 0 && values_[batch] <= sizes.keys, call.op.name, ": length ",
          values_[batch], " of batch ", batch, " is out of range; there are ", sizes.keys, " keys");
  }
}

VisibleKeys Visibility::of(int64_t batch) const {
  const int64_t length = rule_.lengths ? values_[static_cast<size_t>(batch)] : sizes_.keys;
  const int64_t* documents = rule_.documents ? values_.data() + batch * sizes_.keys : nullptr;
  return visible_keys(rule_, sizes_, length, documents);
}

ScratchSlots::ScratchSlots(const ThreadPool& pool, int64_t bytes, Scratch& scratch)
    : bytes_((bytes + 63) / 64 * 64), taken_(static_cast<size_t>(pool.threads())) {
  memory_ = scratch.take(bytes_ * pool.threads());
}

int64_t ScratchSlots::take() {
  for (size_t slot = 0;; slot = (slot + 1) % taken_.size()) {
    if (!taken_[slot].test_and_set(std::memory_order_acquire)) return static_cast<int64_t>(slot);
  }
}

WorkPieces cut_work(int64_t units, double flops) {
  const double each = flops / static_cast<double>(std::max<int64_t>(1, units));
  return {units, std::clamp<int64_t>(static_cast<int64_t>(kPieceFlops / std::max(each, 1.0)), 1,
                                     std::max<int64_t>(1, units))};
}

}  // namespace brrr::kernels
