// Brings the operands of matmul and linear into the form of a library product: batches walked by one stride
// where the layouts allow it, operands copied only where neither stride is 1, 8-bit ones widened where no
// tensor core takes them (exactly: every f8 is a bf16). Results of other dtypes are rounded from f32.
#include "brrr/ops/matmul_cuda.h"

#if BRRR_HAS_CUDA

#include <algorithm>
#include <optional>

#include "brrr/ops/copy_cuda.h"
#include "brrr/ops/gemm_cuda.h"
#include "brrr/ops/loop_nest.h"

namespace brrr {
namespace {

int64_t whole_lines(int64_t bytes) { return (bytes + 255) / 256 * 256; }
bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

// A matrix operand with its batch axes, perhaps in scratch and in another dtype.
struct Factor {
  Operand operand;
  Layout layout;
  Layout original;  // where `copied`: how the elements lie that are copied
  bool copied = false;
  Factor(const Operand& x, const Layout& given) : operand(x), layout(given) {}
  Operand source(const Operand& given) const { return {given.base, &original, given.dtype}; }
  Operand target() const { return {operand.base, &layout, operand.dtype}; }
};

// The memory of the workspace, handed out from its start. Without memory it only counts.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> memory) : memory_(memory) {}
  std::byte* take(int64_t bytes) {
    std::byte* const start = memory_.data() ? memory_.data() + used_ : nullptr;
    used_ += whole_lines(bytes);
    return start;
  }
  std::span<std::byte> rest() const { return memory_.subspan(static_cast<size_t>(used_)); }
  int64_t used() const { return used_; }

 private:
  std::span<std::byte> memory_;
  int64_t used_ = 0;
};

bool is_library_matrix(const Layout& layout) {
  const int rank = layout.rank();
  const int64_t rows = layout.shape[rank - 2], cols = layout.shape[rank - 1],
                row_stride = layout.strides[rank - 2], col_stride = layout.strides[rank - 1];
  return (col_stride == 1 && row_stride >= cols) || (row_stride == 1 && col_stride >= rows);
}

// Strides of axes of one element mean nothing; these are what the library likes.
Layout with_useful_strides(Layout layout) {
  const int rank = layout.rank();
  const int64_t rows = layout.shape[rank - 2], cols = layout.shape[rank - 1];
  int64_t &row_stride = layout.strides[rank - 2], &col_stride = layout.strides[rank - 1];
  if (cols == 1) col_stride = rows > 1 && row_stride == 1 ? rows : 1;
  if (rows == 1) row_stride = col_stride == 1 ? cols : 1;
  return layout;
}

Layout batch_layout(const Layout& layout) {
  Layout batch = layout;
  batch.shape.resize(layout.rank() - 2);
  batch.strides.resize(layout.rank() - 2);
  return batch;
}

// What a call needs: both factors ready, where the product goes, and the products.
class Products {
 public:
  Products(const CudaCall& call, const Layout& b_layout)
      : call_(call),
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

  void run() {
    if (!is_library_) return run_plain();
    // Copies read the operand by the layout that it had before it was prepared.
    if (a_.copied) copy_elements_cuda(call_, a_.source(call_.input(0)), a_.target());
    if (b_.copied) copy_elements_cuda(call_, b_.source(call_.input(1)), b_.target());
    if (bias_) copy_elements_cuda(call_, call_.input(2), *bias_);
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

  // Rows of all batches as one tall matrix, where they lie one stride apart.
  void join_rows() {
    Layout rows = a_.layout;
    rows.shape.pop_back();
    rows.strides.pop_back();
    const Layout* const layout = &rows;
    const LoopNest nest = make_nest(rows.shape, {&layout, 1});
    if (nest.rank > 1 || c_layout_.rank() == 2) return;
    const int64_t count = numel(rows.shape);
    a_.layout = {{count, a_.layout.shape.back()},
                 {nest.rank == 0 ? 1 : nest.strides[0][0], a_.layout.strides.back()},
                 a_.layout.offset};
    c_layout_ = contiguous_layout({count, c_layout_.shape.back()});
  }

  void prepare(Factor& factor) {
    factor.layout = with_useful_strides(factor.layout);
    const bool widened = is_f8(factor.operand.dtype) && !takes_f8();
    if (is_library_matrix(factor.layout) && !widened) return;
    factor.copied = true;
    factor.original = factor.layout;
    if (widened) factor.operand.dtype = DType::bf16;
    factor.layout = with_useful_strides(contiguous_layout(factor.layout.shape));
    factor.operand.base =
        scratch_.take(storage_bytes(factor.operand.dtype, numel(factor.layout.shape)));
  }

  // 8-bit tensor cores want sizes of 16 and both factors along k.
  bool takes_f8() const {
    const Layout &a = a_.layout, &b = plain_b_;
    const int ra = a.rank(), rb = b.rank();
    const bool both_e5m2 =
        call_.input(0).dtype == DType::f8e5m2 && call_.input(1).dtype == DType::f8e5m2;
    return !both_e5m2 && a.strides[ra - 1] == 1 && b.strides[rb - 2] == 1 &&
           a.shape[ra - 2] % 16 == 0 && a.shape[ra - 1] % 16 == 0 && b.shape[rb - 1] % 16 == 0 &&
           is_library_matrix(a) && is_library_matrix(b);
  }

  void place_result() {
    const DType wanted = call_.output(0).dtype;
    result_dtype_ = wanted;
    result_ = call_.output(0).base + storage_bytes(wanted, call_.output(0).layout->offset);
    is_library_ = call_.output(0).count() > 0 && is_gemm_supported(product_at(0));
    if (!is_library_ && is_float(wanted) && wanted != DType::f64) {
      result_dtype_ = DType::f32;
      result_ = scratch_.take(call_.output(0).count() * 4);
      is_library_ = call_.output(0).count() > 0 && is_gemm_supported(product_at(0));
    }
    if (is_library_ && call_.inputs.size() == 3) place_bias();
  }

  // The library adds a bias of the result's dtype, in order; 8-bit products add one of 16 bits.
  void place_bias() {
    const Operand& bias = call_.input(2);
    bias_dtype_ = !is_f8(a_.operand.dtype)      ? result_dtype_
                  : result_dtype_ == DType::f16 ? DType::f16
                                                : DType::bf16;
    bias_layout_ = contiguous_layout(bias.shape());
    bias_data_ = bias.base + storage_bytes(bias.dtype, bias.layout->offset);
    if (bias.dtype == bias_dtype_ && bias.layout->is_contiguous()) return;
    bias_data_ = scratch_.take(storage_bytes(bias_dtype_, bias.count()));
    bias_ = Operand{bias_data_, &bias_layout_, bias_dtype_};
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
    return {factor.operand.base + storage_bytes(factor.operand.dtype, factor.layout.offset + start),
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
    Gemm gemm{
        .m = m,
        .n = n,
        .k = a_.layout.shape.back(),
        .batch = inner_batches(),
        .a = matrix_at(a_, starts[0], strides[0]),
        .b = matrix_at(b_, starts[1], strides[1]),
        .c = {result_ + storage_bytes(result_dtype_, starts[2]), result_dtype_, n, 1, strides[2]},
        .tf32 = call_.attrs.has("tf32") && call_.attrs.flag("tf32")};
    if (bias_data_) {
      gemm.epilogue = GemmEpilogue::bias;
      gemm.bias = bias_data_;
      gemm.bias_dtype = bias_dtype_;
    }
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
                                .bias = call_.inputs.size() == 3 ? &call_.inputs[2] : nullptr});
    }
  }

  static Layout last_two(const Layout& layout) {
    const int rank = layout.rank();
    return {{layout.shape[rank - 2], layout.shape[rank - 1]},
            {layout.strides[rank - 2], layout.strides[rank - 1]},
            layout.offset};
  }

  const CudaCall& call_;
  Factor a_, b_;
  Layout c_layout_;
  Layout plain_b_ = b_.layout;  // before it was prepared
  Scratch scratch_;
  std::byte* result_ = nullptr;
  DType result_dtype_ = DType::f32;
  bool is_library_ = false;
  Layout bias_layout_;
  std::byte* bias_data_ = nullptr;
  DType bias_dtype_ = DType::f32;
  std::optional<Operand> bias_;  // a copy to be made
};

// linear's weight is [out, in]: its transpose is the second factor.
Layout second_factor(const CudaCall& call, bool is_linear) {
  const Layout& b = *call.input(1).layout;
  return is_linear ? transpose_layout(b, 0, 1) : b;
}

bool is_linear(const CudaCall& call) { return call.op.name == "linear"; }

}  // namespace

void matmul_cuda(const CudaCall& call) { Products(call, second_factor(call, false)).run(); }
void linear_cuda(const CudaCall& call) { Products(call, second_factor(call, true)).run(); }

int64_t matmul_cuda_workspace(const CudaCall& call) {
  return Products(call, second_factor(call, is_linear(call))).workspace_bytes();
}

}  // namespace brrr

#endif
