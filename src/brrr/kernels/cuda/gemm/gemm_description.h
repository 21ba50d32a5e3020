// A product as cuBLASLt wants it described, in its column-major words: c^T[n, m] = b^T a^T. Only where CUDA is built in.
#pragma once

#if BRRR_HAS_CUDA

#include <vector>

#include "brrr/device/cuda/cublaslt.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"

namespace brrr::kernels {

class GemmDescription {
 public:
  explicit GemmDescription(const Gemm& gemm);
  ~GemmDescription();
  GemmDescription(const GemmDescription&) = delete;
  GemmDescription& operator=(const GemmDescription&) = delete;

  // Algorithms that the library's heuristic names, the best first.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(int wanted, size_t workspace) const;
  // Of the product that was described, or one that differs in its addresses only.
  cublasStatus_t run(const Gemm& gemm, const cublasLtMatmulAlgo_t& algorithm, cuda::Stream stream,
                     std::span<std::byte> workspace) const;

 private:
  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t name, const Value& value);
  void set_epilogue(const Gemm& gemm);
  cublasLtMatrixLayout_t layout(const GemmMatrix& x, int64_t rows, int64_t cols, int64_t batch);

  const cuda::CublasLt& lt_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

// Throws Error, with the library's words, unless the call was a success.
void require_cublas(cublasStatus_t status, std::string_view call);

}  // namespace brrr::kernels

#endif
