// Products of matrices by cuBLASLt: what a call is, what may be done to the result on its way out, and which
// algorithm runs it.
//
// Algorithms are chosen by time: the first call of a kind runs the library's candidates on its own operands
// and keeps the fastest (kernels/cuda/gemm/gemm_choices.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "brrr/device/cuda/runtime.h"
#include "brrr/device/device.h"
#include "brrr/kernels/cuda/gemm/gemm_choices.h"
#include "brrr/tensor/dtype.h"

namespace brrr::kernels {

// A matrix where one of the two strides is 1.
struct GemmMatrix {
  void* data;
  DType dtype;
  int64_t row_stride, col_stride, batch_stride;  // batch_stride 0: the same for all
};
inline bool is_row_major(const GemmMatrix& x) { return x.col_stride == 1; }
inline int64_t leading(const GemmMatrix& x) {
  return is_row_major(x) ? x.row_stride : x.col_stride;
}

// What is done to the product before it is stored. gelu is the tanh form.
enum class GemmEpilogue : uint8_t {
  none,
  bias,             // + bias[n]
  gelu_aux,         // aux = product, result = gelu(product)
  bias_gelu_aux,    // aux = product + bias, result = gelu(aux)
  dgelu,            // product * gelu'(aux)
  dgelu_bias_grad,  // the same, and bias[n] = sums over rows
  bias_grad,        // bias[m] = sums of a over k: for dW = dY^T X it is db
  gelu,             // gelu(product)
  bias_gelu,        // gelu(product + bias)
};

// c[m, n] = scale * a[m, k] b[k, n] (+ c or addend), for each of `batch` matrices.
struct Gemm {
  int64_t m, n, k, batch = 1;
  GemmMatrix a, b, c;
  bool tf32 = false;             // f32 operands without their low 13 bits, on tensor cores
  bool accumulate = false;       // adds to what c holds
  const void* addend = nullptr;  // adds this, which lies like c and may be it
  GemmEpilogue epilogue = GemmEpilogue::none;
  void* bias = nullptr;
  DType bias_dtype = DType::f32;   // c's own; 8-bit products into f32 or bf16 take bf16
  void* aux = nullptr;             // [m, n] of c's dtype
  const float* a_scale = nullptr;  // 8-bit operands: one number on the device each
  const float* b_scale = nullptr;

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(batch);
  }
};
inline bool adds(const Gemm& gemm) { return gemm.accumulate || gemm.addend != nullptr; }
inline constexpr double kFlopsWorthTiming = 5e7;  // below, differences drown in the launch

// Bytes that a product may ask for. Fixed, so that graphs replay with one address.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t{32} << 20;
int64_t gemm_workspace_bytes(const Gemm& gemm);

// Whether cuBLASLt takes it: dtypes and strides. On a machine with a GPU and without cuBLASLt it takes nothing.
bool is_gemm_supported(const Gemm& gemm);
// Whether the library is there and the chip multiplies 8-bit operands: since compute capability 8.9.
bool has_f8_products(const Chip& chip);
// Whether it has an algorithm for it on the current device; nothing runs, addresses only show alignment.
bool has_gemm_algorithm(const Gemm& gemm);
void run_gemm_cuda(const Gemm& gemm, cuda::Stream stream, std::span<std::byte> workspace);

// ---- Choices.

// Those of this process.
GemmChoices& gemm_choices();
// What a checkpoint of a run on this device keeps; nothing on the cpu, which has one algorithm.
AlgorithmChoices algorithms_of_run(Device device);
// "H200 driver 13000 cublasLt 130100": choices belong to it.
std::string gemm_library_text(int device);

}  // namespace brrr::kernels
