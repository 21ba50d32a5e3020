// Brings the operands of matmul and linear into the form of a library product: batches walked by one stride
// where the layouts allow it, operands copied only where neither stride is 1, 8-bit ones widened where no
// tensor core takes them (exactly: every f8 is a bf16). Results of other dtypes are rounded from f32.
#include "brrr/kernels/cuda/gemm/matmul_cuda.h"

#include <algorithm>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/kernels/calls/tensor_cores.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_operands.h"

namespace brrr::kernels {
namespace {

// What a call needs: both factors ready, where the product goes, and the products.
class Products {
 public:
  Products(const CudaCall& call, const Layout& b_layout, const ProductExtras& extras)
      : call_(call),
        extras_(extras),
        a_(call.input(0), matrix_of(*call.input(0).layout)),
        b_(call.input(1), b_layout),
        c_layout_(matrix_of(*call.output(0).layout)),
        scratch_(call.workspace) {
    if (b_.layout.rank() == 2) join_rows();
    prepare(a_);
    prepare(b_);
    place_result();
  }

  // Whether the library multiplies; otherwise the plain kernel does, straight from the operands.
  bool is_library() const { return is_library_; }
  int64_t workspace_bytes() const {
    return is_library_ ? scratch_.used() + gemm_workspace_bytes(product_at(0)) : 0;
  }

  // Whether it multiplies the operands as they lie, without preparing any.
  bool is_direct() const { return is_library_ && !a_.copied && !b_.copied && copies_.empty(); }
  bool has_algorithm() const { return is_direct() && has_gemm_algorithm(product_at(0)); }

  void run() {
    check(is_library_ || !extras_.is_epilogue(), call_.op.name, ": cuBLASLt does not take ",
          call_.input(0).dtype, call_.input(0).shape(), " @ ", call_.input(1).shape(),
          " with an epilogue; run the product and what follows it as ops of their own");
    invariant(!extras_.a_scale || (is_library_ && is_f8(a_.operand.dtype)), call_.op.name,
              ": scales are the library's, of 8-bit factors");
    if (!is_library_) return run_plain();
    // Copies read the operand by the layout that it had before it was prepared.
    if (a_.copied) copy_elements_cuda(call_, a_.source(call_.input(0)), a_.target());
    if (b_.copied) copy_elements_cuda(call_, b_.source(call_.input(1)), b_.target());
    for (const CopiedOperand& copy : copies_)
      copy_elements_cuda(call_, copy.from, {copy.base, &copy.layout, copy.dtype});
    const int64_t outer = batches() / inner_batches();
    for (int64_t i = 0; i < outer; ++i)
      run_gemm_cuda(product_at(i * inner_batches()), call_.stream, scratch_.rest());
    if (result_dtype_ == call_.output(0).dtype) return;
    const Layout whole = contiguous_layout(call_.output(0).shape());
    copy_elements_cuda(call_, {result_, &whole, result_dtype_}, call_.output(0));
  }

 private:
  static Layout matrix_of(Layout layout) {
    while (layout.rank() < 2) {  // linear of a vector: one row
      layout.shape.insert(0, 1);
      layout.strides.insert(0, 0);
    }
    return layout;
  }

  // Rows of all batches as one tall matrix, where they lie one stride apart. Epilogues know no batches:
  // for them rows are brought together.
  void join_rows() {
    if (a_.layout.rank() == 2 && c_layout_.rank() == 2) return;
    Layout rows = row_layout();
    if (extras_.is_epilogue() && nest_of(rows).rank > 1) {
      copy(a_, a_.operand.dtype);
      rows = row_layout();
    }
    const LoopNest nest = nest_of(rows);
    if (nest.rank > 1) return;
    const int64_t count = numel(rows.shape);
    a_.layout = {{count, a_.layout.shape.back()},
                 {nest.rank == 0 ? 1 : nest.strides[0][0], a_.layout.strides.back()},
                 a_.layout.offset};
    c_layout_ = contiguous_layout({count, c_layout_.shape.back()});
  }
  Layout row_layout() const {
    Layout rows = a_.layout;
    rows.shape.pop_back();
    rows.strides.pop_back();
    return rows;
  }
  static LoopNest nest_of(const Layout& rows) {
    const Layout* const layout = &rows;
    return make_nest(rows.shape, {&layout, 1});
  }

  void prepare(Factor& factor) {
    factor.layout = with_useful_strides(factor.layout);
    const bool widened = is_f8(factor.operand.dtype) && !takes_f8();
    const bool misaligned =
        extras_.is_epilogue() && !is_aligned(factor.layout, factor.operand.dtype);
    if (factor.copied || (is_library_matrix(factor.layout) && !widened && !misaligned)) return;
    copy(factor, widened ? DType::bf16 : factor.operand.dtype);
  }

  void copy(Factor& factor, DType dtype) {
    factor.copied = true;
    factor.original = factor.layout;
    factor.operand.dtype = dtype;
    factor.layout = with_useful_strides(contiguous_layout(factor.layout.shape));
    factor.written = factor.layout;
    factor.operand.base = scratch_.take(storage_bytes(dtype, numel(factor.layout.shape)));
  }

  bool takes_f8() const {
    return has_f8_products(call_.chip) && f8_refusal({.a = a_.layout,
                                                      .b = plain_b_,
                                                      .a_dtype = call_.input(0).dtype,
                                                      .b_dtype = call_.input(1).dtype,
                                                      .c_dtype = call_.output(0).dtype})
                                              .empty();
  }

  void place_result() {
    const DType wanted = call_.output(0).dtype;
    result_dtype_ = wanted;
    result_ = byte_at(call_.output(0).base, storage_bytes(wanted, call_.output(0).layout->offset));
    is_library_ = call_.output(0).count() > 0 && is_gemm_supported(product_at(0));
    if (!is_library_ && !extras_.is_epilogue() && is_float(wanted) && wanted != DType::f64) {
      result_dtype_ = DType::f32;
      result_ = scratch_.take(call_.output(0).count() * 4);
      is_library_ = call_.output(0).count() > 0 && is_gemm_supported(product_at(0));
    }
    if (is_library_) place_extras();
  }

  // The library adds a bias of the result's dtype, in order; 8-bit products add one of 16 bits.
  void place_extras() {
    bias_dtype_ = !is_f8(a_.operand.dtype)      ? result_dtype_
                  : result_dtype_ == DType::f16 ? DType::f16
                                                : DType::bf16;
    if (extras_.bias) bias_data_ = in_order(*extras_.bias, bias_dtype_);
    if (extras_.sums) bias_data_ = in_order(*extras_.sums, result_dtype_);
    if (extras_.aux) aux_data_ = in_order(*extras_.aux, result_dtype_);
    if (extras_.addend) addend_data_ = in_order(*extras_.addend, result_dtype_);
  }

  // Where the elements lie one behind the other in this dtype: outputs do.
  std::byte* in_order(const Operand& x, DType dtype) {
    const int64_t offset = storage_bytes(x.dtype, x.layout->offset);
    if (x.dtype == dtype && x.layout->is_contiguous() && offset % kAddressAlignment == 0)
      return x.base + offset;
    std::byte* const base = scratch_.take(storage_bytes(dtype, x.count()));
    copies_.push_back({x, contiguous_layout(x.shape()), base, dtype});
    return base;
  }

  Shape batch_shape() const {
    Shape shape = c_layout_.shape;
    shape.resize(c_layout_.rank() - 2);
    return shape;
  }
  LoopNest batch_nest() const {
    const Layout a = batch_layout(a_.layout), b = batch_layout(b_.layout),
                 c = batch_layout(contiguous_layout(c_layout_.shape));
    const Layout* const all[] = {&a, &b, &c};
    return make_nest(batch_shape(), all);
  }
  int64_t batches() const { return numel(batch_shape()); }
  int64_t inner_batches() const { return std::max<int64_t>(1, batch_nest().inner_size()); }

  static GemmMatrix matrix_at(const Factor& factor, int64_t start, int64_t batch_stride) {
    const int rank = factor.layout.rank();
    return {byte_at(factor.operand.base,
                    storage_bytes(factor.operand.dtype, factor.layout.offset + start)),
            factor.operand.dtype, factor.layout.strides[rank - 2], factor.layout.strides[rank - 1],
            batch_stride};
  }

  // The product that begins at batch `first` and takes all of the innermost batch axis.
  Gemm product_at(int64_t first) const {
    const LoopNest nest = batch_nest();
    std::array<int64_t, 3> starts{}, strides{};
    for (int o = 0; o < 3; ++o) {
      const auto operand = static_cast<size_t>(o);
      for_each_run(nest, o, first, 1,
                   [&](int64_t position, int64_t, int64_t) { starts[operand] = position; });
      strides[operand] =
          nest.rank == 0 ? 0 : nest.strides[operand][static_cast<size_t>(nest.rank - 1)];
    }
    const int rank = c_layout_.rank();
    const int64_t m = c_layout_.shape[rank - 2], n = c_layout_.shape[rank - 1];
    Gemm gemm{.m = m,
              .n = n,
              .k = a_.layout.shape.back(),
              .batch = inner_batches(),
              .a = matrix_at(a_, starts[0], strides[0]),
              .b = matrix_at(b_, starts[1], strides[1]),
              .c = {byte_at(result_, storage_bytes(result_dtype_, starts[2])), result_dtype_, n, 1,
                    strides[2]},
              .tf32 = call_.attrs.has("tf32") && call_.attrs.flag("tf32")};
    gemm.epilogue = extras_.epilogue;
    gemm.bias = bias_data_;
    gemm.bias_dtype = bias_dtype_;
    gemm.aux = aux_data_;
    gemm.addend = addend_data_;
    gemm.a_scale = extras_.a_scale;
    gemm.b_scale = extras_.b_scale;
    return gemm;
  }

  void run_plain() {
    const Operand& output = call_.output(0);
    if (output.count() == 0) return;
    const Layout a = matrix_of(*call_.input(0).layout), c = matrix_of(*output.layout);
    const Layout batch_a = batch_layout(a), batch_b = batch_layout(plain_b_),
                 batch_c = batch_layout(c);
    const Layout* const all[] = {&batch_a, &batch_b, &batch_c};
    const LoopNest nest = make_nest(batch_c.shape, all);
    for (int64_t i = 0; i < numel(batch_c.shape); ++i) {
      std::array<Layout, 3> matrices{last_two(a), last_two(plain_b_), last_two(c)};
      for (int o = 0; o < 3; ++o) {
        for_each_run(nest, o, i, 1, [&](int64_t position, int64_t, int64_t) {
          matrices[static_cast<size_t>(o)].offset += position;
        });
      }
      run_plain_product(call_, {.a = {call_.input(0).base, matrices.data(), call_.input(0).dtype},
                                .b = {call_.input(1).base, &matrices[1], call_.input(1).dtype},
                                .c = {output.base, &matrices[2], output.dtype},
                                .bias = extras_.bias});
    }
  }

  static Layout last_two(const Layout& layout) {
    const int rank = layout.rank();
    return {{layout.shape[rank - 2], layout.shape[rank - 1]},
            {layout.strides[rank - 2], layout.strides[rank - 1]},
            layout.offset};
  }

  const CudaCall& call_;
  const ProductExtras extras_;
  Factor a_, b_;
  Layout c_layout_;
  Layout plain_b_ = b_.layout;  // before it was prepared
  ProductScratch scratch_;
  std::byte* result_ = nullptr;
  DType result_dtype_ = DType::f32;
  bool is_library_ = false;
  std::byte *bias_data_ = nullptr, *aux_data_ = nullptr, *addend_data_ = nullptr;
  DType bias_dtype_ = DType::f32;
  std::vector<CopiedOperand> copies_;
};

ProductExtras bias_of(const CudaCall& call) {
  if (call.inputs.size() < 3) return {};
  return {.epilogue = GemmEpilogue::bias, .bias = &call.inputs[2]};
}

// linear's weight is [out, in]: its transpose is the second factor.
Products products_of(const CudaCall& call) {
  const bool is_linear = call.op.role == OpRole::linear;
  const Layout& b = *call.input(1).layout;
  return {call, is_linear ? transpose_layout(b, 0, 1) : b, bias_of(call)};
}

}  // namespace

void matmul_cuda(const CudaCall& call) { products_of(call).run(); }
void linear_cuda(const CudaCall& call) { products_of(call).run(); }
int64_t matmul_cuda_workspace(const CudaCall& call) { return products_of(call).workspace_bytes(); }

void run_product_cuda(const CudaCall& call, const ProductExtras& extras) {
  Products(call, *call.input(1).layout, extras).run();
}
int64_t product_cuda_workspace(const CudaCall& call, const ProductExtras& extras) {
  return Products(call, *call.input(1).layout, extras).workspace_bytes();
}
bool has_product_cuda(const CudaCall& call, const ProductExtras& extras) {
  const Products products(call, *call.input(1).layout, extras);
  return call.stream ? products.has_algorithm() : products.is_direct();
}

}  // namespace brrr::kernels
