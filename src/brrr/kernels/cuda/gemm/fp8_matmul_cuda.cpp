// Matmuls of 8-bit operands: by tensor cores with the scales in the matmul, or in f32 and scaled after it.
#include "brrr/kernels/calls/tensor_cores.h"
#include "brrr/kernels/cuda/gemm/fp8_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_operands.h"

namespace brrr::kernels {
namespace {

constexpr int64_t kScaleBytes = 256;  // keeps what follows in the workspace aligned

class ScaledProduct {
 public:
  explicit ScaledProduct(const CudaCall& call)
      : call_(call),
        whole_(contiguous_layout(call.output(0).shape())),
        wide_{nullptr, &whole_, DType::f32},
        wide_call_{call.op,        call.inputs, {&wide_, 1}, call.attrs,
                   call.workspace, call.stream, call.chip},
        is_direct_(takes_f8()) {}

  int64_t workspace_bytes() const {
    return is_direct_ ? placed_bytes() + product_cuda_workspace(call_, extras())
                      : wide_bytes() + product_cuda_workspace(wide_call_, {});
  }

  void run() {
    if (call_.output(0).count() == 0) return;
    if (is_direct_) return run_direct();
    wide_.base = call_.workspace.data();
    wide_call_.workspace = call_.workspace.subspan(static_cast<size_t>(wide_bytes()));
    run_product_cuda(wide_call_, {});
    scale_product_cuda(call_, reinterpret_cast<const float*>(wide_.base));
  }

 private:
  void run_direct() const {
    if (placed_bytes() == 0) return run_product_cuda(call_, extras());
    float* const placed = reinterpret_cast<float*>(call_.workspace.data());
    place_scales_cuda(call_, scale_at(2), scale_at(3), placed);
    ProductExtras with = extras();
    with.a_scale = placed;
    with.b_scale = placed + kScaleSpan;
    CudaCall call = call_;
    call.workspace = call_.workspace.subspan(static_cast<size_t>(kScaleBytes));
    run_product_cuda(call, with);
  }
  int64_t placed_bytes() const {
    const auto is_placed = [&](int i) { return call_.input(i).layout->offset % kScaleSpan == 0; };
    return is_placed(2) && is_placed(3) ? 0 : kScaleBytes;
  }

  int64_t wide_bytes() const { return whole_lines(numel(whole_.shape) * 4); }

  const float* scale_at(int i) const {
    const Operand& scale = call_.input(i);
    return reinterpret_cast<const float*>(
        byte_at(scale.base, storage_bytes(scale.dtype, scale.layout->offset)));
  }
  ProductExtras extras() const {
    const bool has_bias = call_.inputs.size() == 5;
    return {.epilogue = has_bias ? GemmEpilogue::bias : GemmEpilogue::none,
            .bias = has_bias ? &call_.inputs[4] : nullptr,
            .a_scale = scale_at(2),
            .b_scale = scale_at(3)};
  }

  // Both factors along k in rows of whole chunks, scales in f32, and hardware that multiplies them.
  bool takes_f8() const {
    const Operand &a = call_.input(0), &b = call_.input(1);
    if (!is_f8(a.dtype) || !is_f8(b.dtype) || call_.output(0).count() == 0) return false;
    if (call_.input(2).dtype != DType::f32 || call_.input(3).dtype != DType::f32) return false;
    Layout rows = *a.layout;
    if (rows.rank() > 2) {
      if (!rows.is_contiguous()) return false;
      const int64_t k = rows.shape.back();
      rows = {{numel(rows.shape) / k, k}, {k, 1}, rows.offset};
    }
    return f8_refusal({.a = rows,
                       .b = *b.layout,
                       .a_dtype = a.dtype,
                       .b_dtype = b.dtype,
                       .c_dtype = call_.output(0).dtype})
               .empty() &&
           is_aligned(rows, a.dtype) && is_aligned(*b.layout, b.dtype) &&
           has_f8_products(call_.chip);
  }

  const CudaCall& call_;
  const Layout whole_;
  Operand wide_;
  CudaCall wide_call_;
  bool is_direct_;
};

}  // namespace

void matmul_scaled_cuda(const CudaCall& call) { ScaledProduct(call).run(); }
int64_t matmul_scaled_cuda_workspace(const CudaCall& call) {
  return ScaledProduct(call).workspace_bytes();
}

}  // namespace brrr::kernels
