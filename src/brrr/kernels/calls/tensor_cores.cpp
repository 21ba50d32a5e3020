#include "brrr/kernels/calls/tensor_cores.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/kernels/cuda/gemm/matmul_operands.h"

namespace brrr::kernels {
namespace {

constexpr int64_t kF8Multiple = 16;  // of m, n and k: what cuBLASLt asks of 8-bit products
constexpr std::array kAttentionWidths{32, 64, 96, 128, 192, 256};  // of heads in shared memory

std::string name_of(DType dtype) { return is_f8(dtype) ? "fp8" : to_text(dtype); }

// How far rows are apart in memory, or columns where those are contiguous. Factors that lie otherwise are
// copied into rows first.
int64_t leading(const Layout& matrix) {
  const Layout x = with_useful_strides(matrix);
  const int rank = x.rank();
  if (!is_library_matrix(x)) return x.shape[rank - 1];
  return x.strides[rank - 1] == 1 ? x.strides[rank - 2] : x.strides[rank - 1];
}

// 16-byte loads need rows that begin at multiples of 16 bytes; others are loaded in narrow pieces.
std::string misalignment(const ProductOperands& product, DType factor) {
  struct Rows {
    const char* of;
    int64_t elements;
    DType dtype;
  };
  const int64_t n = product.b.shape[product.b.rank() - 1];
  for (const Rows& rows : {Rows{"the first factor", leading(product.a), factor},
                           Rows{"the second factor", leading(product.b), factor},
                           Rows{"the result", n, product.c_dtype}}) {
    const int64_t multiple = kAddressAlignment / storage_bytes(rows.dtype, 1);
    if (rows.elements % multiple != 0)
      return join_text("rows of ", rows.of, " are ", rows.elements,
                       " elements apart, no multiple of ", multiple, " (", kAddressAlignment,
                       " bytes)");
  }
  return {};
}

// Empty: the GPU multiplies this type on tensor cores.
std::string generation_refusal(DType dtype, bool tf32, GpuGeneration gpu) {
  const auto needs = [&](int major, int minor) {
    return gpu.is_at_least(major, minor)
               ? std::string()
               : join_text("tensor cores take ", tf32 ? "tf32" : name_of(dtype),
                           " from compute capability ", major, ".", minor, " on, this is ",
                           gpu.major, ".", gpu.minor);
  };
  switch (dtype) {
    case DType::f16: return needs(7, 0);
    case DType::f64:  // data-centre GPUs alone
      return gpu.minor == 0 ? needs(8, 0) : std::string("f64 has them on data-centre GPUs alone");
    case DType::f8e4m3:
    case DType::f8e5m2: return needs(8, 9);
    default: return needs(8, 0);
  }
}

TensorCoreUse none_for(std::string arithmetic, std::string reason) {
  return {TensorCores::none, std::move(arithmetic), std::move(reason)};
}

}  // namespace

std::string TensorCoreUse::mark() const {
  if (how == TensorCores::none) return "no";
  return how == TensorCores::full ? arithmetic : join_text(arithmetic, ", slower");
}

std::string f8_refusal(const ProductOperands& product) {
  const Layout &a = product.a, &b = product.b;
  const int ra = a.rank(), rb = b.rank();
  const int64_t m = a.shape[ra - 2], k = a.shape[ra - 1], n = b.shape[rb - 1];
  if (!is_f8(product.a_dtype) || !is_f8(product.b_dtype))
    return "one factor has 8 bits and the other has not";
  if (product.a_dtype == DType::f8e5m2 && product.b_dtype == DType::f8e5m2)
    return "both factors are e5m2";
  if (m % kF8Multiple != 0 || n % kF8Multiple != 0 || k % kF8Multiple != 0)
    return join_text("sizes m ", m, ", n ", n, ", k ", k, " are not all multiples of ",
                     kF8Multiple);
  if (a.strides[ra - 1] != 1 || b.strides[rb - 2] != 1) return "a factor does not lie along k";
  if (!is_library_matrix(a) || !is_library_matrix(b)) return "a factor repeats its rows";
  return {};
}

TensorCoreUse product_tensor_cores(const ProductOperands& product, GpuGeneration gpu) {
  DType factor = product.a_dtype, other = product.b_dtype;
  std::string slower;
  if (is_f8(factor) || is_f8(other)) {
    slower = f8_refusal(product);
    if (!slower.empty()) {  // bf16 holds every f8 exactly
      slower = join_text("widened to bf16: ", slower);
      if (is_f8(factor)) factor = DType::bf16;
      if (is_f8(other)) other = DType::bf16;
    }
  }
  if (factor != other && !(is_f8(factor) && is_f8(other))) {
    return none_for(to_text(product.c_dtype),
                    join_text("plain kernel: factors are ", product.a_dtype, " and ",
                              product.b_dtype, ", and the library takes one type"));
  }
  if (!is_float(factor))
    return none_for(to_text(factor), join_text("plain kernel: the library has no ", factor));
  if (factor == DType::f32 && !product.tf32)
    return none_for("f32", "f32 products keep all bits (ieee); --matmul-precision tf32 drops 13");
  const bool is_tf32 = factor == DType::f32;
  if (std::string refusal = generation_refusal(factor, is_tf32, gpu); !refusal.empty())
    return none_for(to_text(factor), std::move(refusal));
  if (slower.empty()) slower = misalignment(product, factor);
  return {slower.empty() ? TensorCores::full : TensorCores::slower,
          is_tf32 ? std::string("tf32") : name_of(factor), std::move(slower)};
}

bool is_chunked_head(const Layout& heads) {
  const auto whole = [](int64_t elements) { return elements % 8 == 0; };  // of 16 bits
  const int64_t reach = std::abs(heads.strides[2]) * std::max<int64_t>(heads.shape[2], 1);
  return heads.strides[3] == 1 && whole(heads.strides[0]) && whole(heads.strides[1]) &&
         whole(heads.strides[2]) && whole(heads.offset) && reach < std::numeric_limits<int>::max();
}

int attention_kernel_width(int64_t dim) {
  if (dim <= 0 || dim % 8 != 0) return 0;
  const auto* const width = std::ranges::lower_bound(kAttentionWidths, dim);
  return width == kAttentionWidths.end() ? 0 : *width;
}

TensorCoreUse attention_tensor_cores(const AttentionOperands& heads) {
  const int64_t dim = heads.q.shape[3], value_dim = heads.v.shape[3];
  const auto plain = [&](std::string_view reason) {
    return none_for(to_text(heads.dtype), join_text("plain arithmetic: ", reason));
  };
  if (heads.dtype != DType::bf16 && heads.dtype != DType::f16)
    return plain(join_text("tensor cores multiply bf16 and f16 heads, not ", heads.dtype));
  if (value_dim != dim)
    return plain(join_text("queries have ", dim, " numbers and values ", value_dim));
  if (attention_kernel_width(dim) == 0)
    return plain(join_text("heads of ", dim, "; kernels take multiples of 8 up to ",
                           kAttentionWidths.back()));
  if (heads.q.shape[0] > UINT16_MAX || heads.q.shape[1] > UINT16_MAX)
    return plain("more than 65535 sequences or heads");
  if (!(heads.scale > 0)) return plain("the scale of scores is not positive");
  if (!is_chunked_head(heads.q) || !is_chunked_head(heads.k) || !is_chunked_head(heads.v))
    return plain("rows of heads are not whole chunks of 16 bytes, or reach over 2^31 elements");
  return {TensorCores::full, to_text(heads.dtype), {}};
}

}  // namespace brrr::kernels
