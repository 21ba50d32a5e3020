// What cuBLASLt takes and the scratch that it gets: rules over dtypes, sizes and strides, without the library, so that a
// program is planned the same where there is no GPU.
#include <cstdint>

#include "brrr/device/cuda/runtime.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_operands.h"

namespace brrr::kernels {
namespace {

// Without a GPU programs are planned for one with the library.
bool has_library() { return cuda::gpu_count() == 0 || cuda::has_cublaslt(); }

bool has_unit_stride(const GemmMatrix& x) { return x.col_stride == 1 || x.row_stride == 1; }

// The library wants the leading axis to cover the other one; a stride of 0 repeats elements.
bool is_matrix(const GemmMatrix& x, int64_t rows, int64_t cols) {
  if (!has_unit_stride(x)) return false;
  return is_row_major(x) ? x.row_stride >= cols : x.col_stride >= rows;
}

bool are_dtypes_supported(const Gemm& gemm) {
  const DType a = gemm.a.dtype, b = gemm.b.dtype, c = gemm.c.dtype;
  if (is_f8(a) || is_f8(b)) {
    const bool mixed = is_f8(a) && is_f8(b) && !(a == DType::f8e5m2 && b == DType::f8e5m2);
    const bool aligned = gemm.m % 16 == 0 && gemm.n % 16 == 0 && gemm.k % 16 == 0;
    // 8-bit products exist for operands that both run along k.
    const bool along_k = is_row_major(gemm.a) && !is_row_major(gemm.b);
    return mixed && aligned && along_k && (c == DType::bf16 || c == DType::f16 || c == DType::f32);
  }
  if (a != b) return false;
  if (a == DType::f64 || a == DType::f32) return c == a;
  return (a == DType::bf16 || a == DType::f16) && (c == a || c == DType::f32);
}

}  // namespace

int64_t gemm_workspace_bytes(const Gemm& gemm) {
  return gemm.flops() < kFlopsWorthTiming ? int64_t{1} << 20 : kGemmWorkspaceBytes;
}

bool is_gemm_supported(const Gemm& gemm) {
  return has_library() && gemm.m > 0 && gemm.n > 0 && gemm.k > 0 && gemm.batch > 0 &&
         gemm.batch <= INT32_MAX && gemm.m <= INT32_MAX && gemm.n <= INT32_MAX &&
         gemm.k <= INT32_MAX && is_matrix(gemm.a, gemm.m, gemm.k) &&
         is_matrix(gemm.b, gemm.k, gemm.n) && is_row_major(gemm.c) && are_dtypes_supported(gemm);
}

bool has_f8_products(const Chip& chip) { return has_library() && chip.is_at_least(8, 9); }

}  // namespace brrr::kernels
