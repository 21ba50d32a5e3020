// Norms over the last axis: a block has a row. Backward gives a block several rows in order, cut by shape
// alone; each thread sums the weights' gradients of its own columns over them, and the blocks' sums are added
// in order afterwards.
#include "brrr/ops/norm_cuda.h"
#include "brrr/ops/rows.cuh"

namespace brrr {
namespace {

// A vector over the columns.
struct Columns {
  Elements data;
  int64_t stride;
  explicit Columns(const Operand& x) : data(x), stride(x.layout->strides[0]) {}
  // f32 and bf16 in order are what training has; the test is the same for all threads.
  template <typename C>
  __device__ C at(int64_t col) const {
    if (stride == 1 && data.dtype == DType::f32)
      return static_cast<C>(reinterpret_cast<const float*>(data.base)[col]);
    if (stride == 1 && data.dtype == DType::bf16)
      return static_cast<C>(reinterpret_cast<const bf16*>(data.base)[col].to_float());
    return data.load<C>(col * stride);
  }
};

template <typename Row, bool centered>
__global__ void norm_kernel(RowsOf x, Columns weight, Columns bias, RowsOf y, Elements means,
                            Elements inverses, int64_t rows, int64_t cols, double eps) {
  using C = typename Row::Value;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    Row row(x, r, cols);
    C mean = 0;
    if constexpr (centered) {
      row.for_each([&](C& v, int, int) { mean += v; });
      mean = block_sum(mean) / static_cast<C>(cols);
    }
    C square = 0;
    row.for_each([&](C& v, int, int) { square += (v - mean) * (v - mean); });
    const C inverse = C(1) / sqrt(block_sum(square) / static_cast<C>(cols) + static_cast<C>(eps));
    row.store(y, r, [&](C v, int col, int) {
      const C scaled = (v - mean) * inverse * weight.at<C>(col);
      return centered ? scaled + bias.at<C>(col) : scaled;
    });
    if (threadIdx.x == 0) {
      if (centered) means.store<C>(r, mean);
      inverses.store<C>(r, inverse);
    }
  }
}

struct BackwardCall {
  RowsOf x, dy, dx;
  Columns weight;
  Elements means, inverses;
  Walk mean_walk, inverse_walk;
  int64_t rows, cols, rows_per_block;
  void* partials;  // [blocks][2][cols]: sums of dy x_hat, and of dy
};

// dx = (g - mean(g) - x_hat mean(g x_hat)) inverse,  g = dy weight; without mean(g) for rms_norm
template <typename Row, bool centered>
__global__ void norm_backward_kernel(BackwardCall call) {
  using C = typename Row::Value;
  constexpr int kPlaces = [] {
    if constexpr (Row::kCached)
      return static_cast<int>(sizeof(Row::values) / sizeof(C));
    else
      return 1;
  }();
  C weight_sums[kPlaces] = {}, bias_sums[kPlaces] = {};
  C* const partials = static_cast<C*>(call.partials) + blockIdx.x * 2 * call.cols;
  const int64_t first = blockIdx.x * call.rows_per_block,
                end = min(call.rows, first + call.rows_per_block);
  for (int64_t r = first; r < end; ++r) {
    Row row(call.x, r, call.cols), grad(call.dy, r, call.cols);
    const int64_t grad_start = call.dy.rows.position(r);
    const C mean = centered ? call.means.load<C>(call.mean_walk.position(r)) : C(0);
    const C inverse = call.inverses.load<C>(call.inverse_walk.position(r));
    const auto grad_at = [&](int col, int place) {
      if constexpr (Row::kCached)
        return grad.values[place];
      else
        return call.dy.data.load<C>(grad_start + col * call.dy.stride);
    };
    C sum = 0, along = 0;
    row.for_each([&](C& v, int col, int place) {
      const C d = grad_at(col, place), x_hat = (v - mean) * inverse, g = d * call.weight.at<C>(col);
      sum += g;
      along += g * x_hat;
      if constexpr (Row::kCached) {
        weight_sums[place] += d * x_hat;
        bias_sums[place] += d;
      } else {  // this thread alone has this column
        const bool starts = r == first;
        C* const own = partials + col;
        own[0] = (starts ? C(0) : own[0]) + d * x_hat;
        own[call.cols] = (starts ? C(0) : own[call.cols]) + d;
      }
    });
    const C n = static_cast<C>(call.cols);
    const C mean_g = centered ? block_sum(sum) / n : C(0), mean_along = block_sum(along) / n;
    row.store(call.dx, r, [&](C v, int col, int place) {
      const C x_hat = (v - mean) * inverse, g = grad_at(col, place) * call.weight.at<C>(col);
      return (g - mean_g - x_hat * mean_along) * inverse;
    });
  }
  if constexpr (Row::kCached) {
    Row any(call.x, first, call.cols);  // only its columns are asked for
    any.for_each([&](C&, int col, int place) {
      partials[col] = weight_sums[place];
      partials[call.cols + col] = bias_sums[place];
    });
  }
}

// A warp has 32 columns of one sum; its lanes are columns, and blocks are added in order.
template <typename C>
struct SumPartials {
  const C* partials;
  Elements dweight, dbias;
  int64_t blocks, cols;
  bool has_bias;
  __device__ void operator()(int64_t i) const {
    const bool is_bias = i >= cols;
    if (is_bias && !has_bias) return;
    C sum = 0;
    for (int64_t block = 0; block < blocks; ++block) sum += partials[block * 2 * cols + i];
    is_bias ? dbias.store<C>(i - cols, sum) : dweight.store<C>(i, sum);
  }
};

constexpr int64_t kMaxNormBlocks = 1024;

int64_t rows_per_block(int64_t rows) {
  return std::max<int64_t>(1, (rows + kMaxNormBlocks - 1) / kMaxNormBlocks);
}
int64_t block_count(int64_t rows) {
  const int64_t each = rows_per_block(rows);
  return (rows + each - 1) / each;
}
int64_t row_count(const Operand& x) {
  return x.shape().back() == 0 ? 0 : x.count() / x.shape().back();
}

template <bool centered>
void run_norm(const CudaCall& call) {
  const Operand &x = call.input(0), &y = call.output(0);
  const int64_t cols = x.shape().back(), rows = row_count(x);
  if (rows == 0) return;
  const double eps = call.attrs.number("eps");
  visit_rows(x.dtype, is_chunked(x) && is_chunked(y), cols, [&]<typename Row>(int threads) {
    norm_kernel<Row, centered><<<blocks_for(rows, 1), threads, 0, call.stream>>>(
        RowsOf(x), Columns(call.input(1)), Columns(call.input(centered ? 2 : 1)), RowsOf(y),
        Elements(call.output(1)), Elements(call.output(centered ? 2 : 1)), rows, cols, eps);
  });
  cuda::check_launch(call.op.name);
}

template <bool centered>
void run_norm_backward(const CudaCall& call) {
  const Operand &x = call.input(0), &dy = call.input(centered ? 4 : 3), &dx = call.output(0);
  const Operand &mean = call.input(2), &inverse = call.input(centered ? 3 : 2);
  const int64_t cols = x.shape().back(), rows = row_count(x), blocks = block_count(rows);
  if (cols == 0) return;
  const BackwardCall backward{RowsOf(x),
                              RowsOf(dy),
                              RowsOf(dx),
                              Columns(call.input(1)),
                              Elements(mean),
                              Elements(inverse),
                              walk_of(*mean.layout),
                              walk_of(*inverse.layout),
                              rows,
                              cols,
                              rows_per_block(rows),
                              call.workspace.data()};
  const bool chunked = is_chunked(x) && is_chunked(dy) && is_chunked(dx);
  if (rows > 0) {
    visit_rows(x.dtype, chunked, cols, [&]<typename Row>(int threads) {
      norm_backward_kernel<Row, centered>
          <<<static_cast<unsigned>(blocks), threads, 0, call.stream>>>(backward);
    });
    cuda::check_launch(call.op.name);
  }
  const Elements dweight(call.output(1)), dbias(call.output(centered ? 2 : 1));
  const auto finish = [&]<typename C>() {
    launch_for_each(call, 2 * cols,
                    SumPartials<C>{reinterpret_cast<const C*>(call.workspace.data()), dweight,
                                   dbias, blocks, cols, centered});
  };
  x.dtype == DType::f64 ? finish.template operator()<double>()
                        : finish.template operator()<float>();
}

}  // namespace

void layer_norm_cuda(const CudaCall& call) { run_norm<true>(call); }
void rms_norm_cuda(const CudaCall& call) { run_norm<false>(call); }
void layer_norm_backward_cuda(const CudaCall& call) { run_norm_backward<true>(call); }
void rms_norm_backward_cuda(const CudaCall& call) { run_norm_backward<false>(call); }

int64_t norm_backward_cuda_workspace(const CudaCall& call) {
  const Operand& x = call.input(0);
  return block_count(row_count(x)) * 2 * x.shape().back() * 8;
}

}  // namespace brrr
