// Rows and columns on both devices, and ops of them compared.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/view/views.h"
#include "cuda/gpu.h"

namespace brrr {

inline const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

inline Tensor values(const Shape& shape, DType dtype, uint32_t draw) {
  return cast(normal(shape, RandomKey{.seed = 12, .stream = 4, .draw = draw}), dtype);
}

// The same view of the same numbers on both devices.
struct Both {
  Tensor here, there;
  Both(const Tensor& x) : here(x), there(to(x, kGpu)) {}  // NOLINT(google-explicit-constructor)
  template <typename Fn>
  Both(const Tensor& whole, const Fn& view) : here(view(whole)), there(view(to(whole, kGpu))) {}
};

enum class View : uint8_t { whole, aligned, unaligned, blocks, permuted };

// Rows of `cols` elements, `rows` of them or some more.
inline Both rows_of(int64_t rows, int64_t cols, DType dtype, View view, uint32_t draw) {
  switch (view) {
    case View::whole: break;
    case View::aligned:
      return {values({rows, cols + 16}, dtype, draw), [&](const Tensor& x) {
                return slice(x, 1, {16, cols + 16});
              }};
    case View::unaligned:
      return {values({rows, cols + 1}, dtype, draw), [&](const Tensor& x) {
                return slice(x, 1, {1, cols + 1});
              }};
    case View::blocks:
      return {values({2, rows + 3, cols}, dtype, draw), [&](const Tensor& x) {
                return slice(x, 1, {2, rows + 2});
              }};
    case View::permuted:
      return {values({2, rows, 3, cols}, dtype, draw),
              [&](const Tensor& x) { return transpose(x, 0, 2); }};
  }
  return {values({rows, cols}, dtype, draw)};
}

inline double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 4 * finfo(dtype).eps;
}

// Relative to the largest element.
inline void expect_close(const Tensor& cpu, const Tensor& gpu, double tolerance) {
  const std::vector<double> a = cpu.to_vector<double>(),
                            b = to(gpu, Device::cpu()).to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  double scale = 1e-30;
  for (double value : a) scale = std::max(scale, std::isfinite(value) ? std::abs(value) : 0.0);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * scale) << i << ": " << a[i] << " " << b[i];
  }
}

inline Tensors expect_op(const OpDef& op, const std::vector<Both>& inputs, const Attrs& attrs,
                         double tolerance) {
  SCOPED_TRACE(op.name);
  NoGrad no_tape;
  std::vector<Tensor> here, there;
  for (const Both& x : inputs) here.push_back(x.here), there.push_back(x.there);
  const Tensors expected = call_op(op, here, attrs), got = call_op(op, there, attrs),
                again = call_op(op, there, attrs);
  for (int i = 0; i < expected.size(); ++i) {
    expect_close(expected[i], got[i], tolerance);
    expect_close(to(got[i], Device::cpu()), again[i], 0);
  }
  return expected;
}

struct RowCase {
  int64_t rows, cols;
};
// Also one row, rows that do not fill the last team, and widths a chunk above what a kind of team takes.
inline constexpr RowCase kRowCases[] = {{37, 8},    {9, 33},    {100, 264}, {7, 520},   {300, 768},
                                        {1, 768},   {6, 776},   {65, 1000}, {40, 1024}, {21, 1025},
                                        {5, 1032},  {19, 1536}, {4, 1544},  {11, 2048}, {9, 2056},
                                        {40, 4096}, {1, 4096},  {3, 4104},  {7, 5000},  {5, 8192},
                                        {3, 8200},  {5, 12288}, {3, 16384}, {3, 50304}, {2, 50257}};
inline constexpr DType kRowDTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
inline constexpr View kViews[] = {View::whole, View::aligned, View::unaligned, View::blocks,
                                  View::permuted};

// Calls body(rows, cols, dtype, view): every view of short rows, long ones whole and unaligned.
template <typename Body>
void for_each_case(const Body& body) {
  for (DType dtype : kRowDTypes) {
    for (View view : kViews) {
      for (const auto& [rows, cols] : kRowCases) {
        if (cols > 2048 && view != View::whole && view != View::unaligned) continue;
        SCOPED_TRACE(
            join_text(to_text(dtype), " ", rows, " x ", cols, " view ", static_cast<int>(view)));
        body(rows, cols, dtype, view);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace brrr
