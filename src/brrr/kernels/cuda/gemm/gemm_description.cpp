#include "brrr/kernels/cuda/gemm/gemm_description.h"

#if BRRR_HAS_CUDA

#include <algorithm>

#include "brrr/base/error.h"

namespace brrr::kernels {
namespace {

cudaDataType_t library_dtype(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::f32: return CUDA_R_32F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f8e4m3: return CUDA_R_8F_E4M3;
    case DType::f8e5m2: return CUDA_R_8F_E5M2;
    default: fail("cuda: the matrix library has no ", to_text(dtype));
  }
}

cublasLtEpilogue_t library_epilogue(const Gemm& gemm) {
  switch (gemm.epilogue) {
    case GemmEpilogue::none: return CUBLASLT_EPILOGUE_DEFAULT;
    case GemmEpilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case GemmEpilogue::gelu: return CUBLASLT_EPILOGUE_GELU;
    case GemmEpilogue::bias_gelu: return CUBLASLT_EPILOGUE_GELU_BIAS;
    case GemmEpilogue::gelu_aux: return CUBLASLT_EPILOGUE_GELU_AUX;
    case GemmEpilogue::bias_gelu_aux: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case GemmEpilogue::dgelu: return CUBLASLT_EPILOGUE_DGELU;
    case GemmEpilogue::dgelu_bias_grad: return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    // Columns of our product are rows of the library's, which computes the transpose: its second
    // operand is our first.
    case GemmEpilogue::bias_grad: return CUBLASLT_EPILOGUE_BGRADB;
  }
  fail("unknown epilogue");
}

cublasLtHandle_t handle() { return cuda::cublaslt_handle(cuda::current_device()); }

}  // namespace

void require_cublas(cublasStatus_t status, std::string_view call) {
  check(status == CUBLAS_STATUS_SUCCESS, "cuda: ", call, " failed: ",
        status == CUBLAS_STATUS_SUCCESS ? "" : cuda::cublaslt()->status_string(status));
}

template <typename Value>
void GemmDescription::set(cublasLtMatmulDescAttributes_t name, const Value& value) {
  require_cublas(lt_.desc_set(desc_, name, static_cast<const void*>(&value), sizeof(value)),
                 "cublasLtMatmulDescSetAttribute");
}

GemmDescription::GemmDescription(const Gemm& gemm) : lt_(*cuda::cublaslt()) {
  const bool wide = gemm.c.dtype == DType::f64;
  const cublasComputeType_t compute = wide        ? CUBLAS_COMPUTE_64F
                                      : gemm.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
  require_cublas(lt_.desc_create(&desc_, compute, wide ? CUDA_R_64F : CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
  // A row-major b[k, n] is a column-major [n, k]: no transpose. A column-major one is transposed.
  set(CUBLASLT_MATMUL_DESC_TRANSA, is_row_major(gemm.b) ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, is_row_major(gemm.a) ? CUBLAS_OP_N : CUBLAS_OP_T);
  set_epilogue(gemm);
  if (gemm.b_scale) set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, gemm.b_scale);
  if (gemm.a_scale) set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, gemm.a_scale);
  first_ = layout(gemm.b, is_row_major(gemm.b) ? gemm.n : gemm.k,
                  is_row_major(gemm.b) ? gemm.k : gemm.n, gemm.batch);
  second_ = layout(gemm.a, is_row_major(gemm.a) ? gemm.k : gemm.m,
                   is_row_major(gemm.a) ? gemm.m : gemm.k, gemm.batch);
  result_ = layout(gemm.c, gemm.n, gemm.m, gemm.batch);
}
GemmDescription::~GemmDescription() {
  for (cublasLtMatrixLayout_t matrix : {first_, second_, result_}) {
    if (matrix) lt_.layout_destroy(matrix);
  }
  if (desc_) lt_.desc_destroy(desc_);
}
void GemmDescription::set_epilogue(const Gemm& gemm) {
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(gemm));
  if (gemm.bias) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, gemm.bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, library_dtype(gemm.bias_dtype));
  }
  if (gemm.aux) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, gemm.aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gemm.n);
  }
}

cublasLtMatrixLayout_t GemmDescription::layout(const GemmMatrix& x, int64_t rows, int64_t cols,
                                               int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  require_cublas(lt_.layout_create(&made, library_dtype(x.dtype), static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(cols), std::max(leading(x), rows)),
                 "cublasLtMatrixLayoutCreate");
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    lt_.layout_set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    lt_.layout_set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x.batch_stride,
                   sizeof(x.batch_stride));
  }
  return made;
}

std::vector<cublasLtMatmulHeuristicResult_t> GemmDescription::candidates(int wanted,
                                                                         size_t workspace) const {
  cublasLtMatmulPreference_t preference = nullptr;
  require_cublas(lt_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  lt_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                     sizeof(workspace));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(wanted));
  int found = 0;
  const cublasStatus_t status = lt_.heuristic(handle(), desc_, first_, second_, result_, result_,
                                              preference, wanted, results.data(), &found);
  lt_.preference_destroy(preference);
  results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(found) : 0);
  std::erase_if(results, [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

cublasStatus_t GemmDescription::run(const Gemm& gemm, const cublasLtMatmulAlgo_t& algorithm,
                                    cuda::Stream stream, std::span<std::byte> workspace) const {
  const double one = 1, zero = 0;
  const float one_f = 1, zero_f = 0;
  const bool wide = gemm.c.dtype == DType::f64;
  const void* alpha = wide ? static_cast<const void*>(&one) : &one_f;
  const void* beta = adds(gemm) ? alpha : wide ? static_cast<const void*>(&zero) : &zero_f;
  const void* added = gemm.addend ? gemm.addend : gemm.c.data;
  return lt_.matmul(handle(), desc_, alpha, gemm.b.data, first_, gemm.a.data, second_, beta, added,
                    result_, gemm.c.data, result_, &algorithm, workspace.data(), workspace.size(),
                    stream);
}

}  // namespace brrr::kernels

#endif
