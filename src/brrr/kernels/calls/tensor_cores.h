// Which products and attentions run on tensor cores, and why the others do not: rules over dtypes, sizes and
// layouts, without a GPU. kernels/cuda/gemm/matmul_cuda.cpp and the kernels of attention decide by them, `brrr profile` tells them.
#pragma once

#include <string>

#include "brrr/tensor/layout.h"
#include "brrr/tensor/tensor.h"

namespace brrr::kernels {

struct GpuGeneration {
  int major = 9, minor = 0;  // compute capability: 8.0 Ampere, 8.9 Ada, 9.0 Hopper
  bool is_at_least(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};

enum class TensorCores : uint8_t {
  full,    // at the rate of the factors' own type
  slower,  // used, though not as fast as the factors' type would allow
  none
};

struct TensorCoreUse {
  TensorCores how = TensorCores::full;
  std::string arithmetic;    // what is multiplied: "bf16", "tf32"; "f32" where there are none
  std::string reason;        // why not, or why slower; empty where they are used in full
  std::string mark() const;  // "bf16", "bf16, slower", "no"
};

// c[.., m, n] = a[.., m, k] b[.., k, n]; b of a linear is the transpose of its weight.
struct ProductOperands {
  Layout a, b;
  DType a_dtype, b_dtype, c_dtype;
  bool tf32 = false;  // of f32 factors
};

// Why tensor cores do not multiply these 8-bit factors as they are; empty: they do.
std::string f8_refusal(const ProductOperands& product);

TensorCoreUse product_tensor_cores(const ProductOperands& product, GpuGeneration gpu);

// q, k and v are [batch, heads, rows, size]; addresses are taken for aligned.
struct AttentionOperands {
  Layout q, k, v;
  DType dtype;
  double scale = 1;
};
TensorCoreUse attention_tensor_cores(const AttentionOperands& heads);
// Which kernel takes heads of `dim` numbers: the narrowest of 32, 64, 96, 128, 192 and 256 that holds them. It fills rows
// up with zeros in shared memory. 0: none, since rows are no whole chunks of 16 bytes (8 numbers), or too long.
int attention_kernel_width(int64_t dim);
// Contiguous numbers in rows of whole 16-byte chunks, the last of which begins within 2^31 elements.
bool is_chunked_head(const Layout& heads);

}  // namespace brrr::kernels
