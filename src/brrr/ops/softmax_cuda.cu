// Softmax and its relatives: a block has a row.
#include "brrr/ops/cross_entropy_call.h"
#include "brrr/ops/rows.cuh"
#include "brrr/ops/softmax_cuda.h"

namespace brrr {
namespace {

template <typename C>
constexpr C kLowest = -std::numeric_limits<C>::infinity();

template <typename Row>
__global__ void softmax_kernel(RowsOf x, RowsOf y, int64_t rows, int64_t cols, bool logarithm) {
  using C = typename Row::Value;
  for (int64_t r = Row::Team::index(); r < rows; r += Row::Team::count()) {
    Row row(x, r, cols);
    C largest = kLowest<C>;
    row.for_each([&](C& v, int, int) { largest = larger(largest, v); });
    largest = Row::Team::max(largest);
    C total = 0;
    // A cached row keeps the exponentials, so each is computed once.
    row.for_each([&](C& v, int, int) {
      const C e = exp(v - largest);
      total += e;
      if (Row::kCached && !logarithm) v = e;
    });
    total = Row::Team::sum(total);
    const C log_total = log(total);
    row.store(y, r, [&](C v, int, int) {
      if (logarithm) return v - largest - log_total;
      return (Row::kCached ? v : exp(v - largest)) / total;
    });
  }
}

// softmax: dx = y (dy - sum(dy y));  log_softmax: dx = dy - exp(y) sum(dy)
template <typename Row>
__global__ void softmax_backward_kernel(RowsOf y, RowsOf dy, RowsOf dx, int64_t rows, int64_t cols,
                                        bool logarithm) {
  using C = typename Row::Value;
  for (int64_t r = Row::Team::index(); r < rows; r += Row::Team::count()) {
    Row result(y, r, cols), grad(dy, r, cols);
    const int64_t grad_start = dy.rows.position(r);
    const auto grad_at = [&](int col, int place) {
      if constexpr (Row::kCached)
        return grad.values[place];
      else
        return dy.data.load<C>(grad_start + col * dy.stride);
    };
    C sum = 0;
    result.for_each([&](C& v, int col, int place) {
      const C g = grad_at(col, place);
      sum += logarithm ? g : g * v;
    });
    sum = Row::Team::sum(sum);
    result.store(dx, r, [&](C v, int col, int place) {
      const C g = grad_at(col, place);
      return logarithm ? g - exp(v) * sum : v * (g - sum);
    });
  }
}

void run_softmax(const CudaCall& call, bool logarithm) {
  const Operand &x = call.input(0), &y = call.output(0);
  if (y.count() == 0) return;
  const int64_t cols = y.shape().back(), rows = y.count() / cols;
  visit_rows(
      x.dtype, is_chunked(x) && is_chunked(y), cols, [&]<typename Row>(const RowLaunch& launch) {
        softmax_kernel<Row><<<blocks_for(rows, launch.teams), launch.threads, 0, call.stream>>>(
            RowsOf(x), RowsOf(y), rows, cols, logarithm);
      });
  cuda::check_launch(call.op.name);
}

void run_softmax_backward(const CudaCall& call, bool logarithm) {
  const Operand &y = call.input(0), &dy = call.input(1), &dx = call.output(0);
  if (dx.count() == 0) return;
  const int64_t cols = dx.shape().back(), rows = dx.count() / cols;
  const bool chunked = is_chunked(y) && is_chunked(dy) && is_chunked(dx);
  visit_rows(y.dtype, chunked, cols, [&]<typename Row>(const RowLaunch& launch) {
    softmax_backward_kernel<Row>
        <<<blocks_for(rows, launch.teams), launch.threads, 0, call.stream>>>(
            RowsOf(y), RowsOf(dy), RowsOf(dx), rows, cols, logarithm);
  });
  cuda::check_launch(call.op.name);
}

// ---- Cross-entropy. Rows are long (a vocabulary), so forward reads them once with a running maximum and
// sum a thread, and backward reads and writes them once.

struct EntropyRule {
  double label_smoothing, soft_cap, z_loss;
  int64_t classes;  // columns behind them are filling: no part in the loss, and no gradient
  int64_t ignored;
  bool ignores;
  EntropyRule(const CrossEntropyOptions& options, int64_t columns)
      : label_smoothing(options.label_smoothing),
        soft_cap(options.soft_cap),
        z_loss(options.z_loss),
        classes(class_count(options, columns)),
        ignored(options.ignore_index.value_or(0)),
        ignores(options.ignore_index.has_value()) {}
};

struct Targets {
  Elements data;
  int64_t stride;
  cuda::FaultNote note;
  // The class of a row; -1 where it does not count.
  __device__ int64_t of(int64_t row, const EntropyRule& rule) const {
    const auto target = data.load<int64_t>(row * stride);
    if (rule.ignores && target == rule.ignored) return -1;
    return note.accepts(target, rule.classes) ? target : -1;
  }
};

// Elements of a row, 16 bytes at a time where `T` says that it is whole chunks, else one by one (void).
// visit(values, first column) gets kWalked<T> values.
template <typename T>
constexpr int kWalked = kChunk<T>;
template <>
constexpr int kWalked<void> = 1;
template <typename T, typename C, typename Visit>
__device__ void walk_row(const RowsOf& x, int64_t start, int64_t cols, const Visit& visit) {
  C values[kWalked<T>];
  if constexpr (std::is_void_v<T>) {
    for (int64_t col = threadIdx.x; col < cols; col += blockDim.x) {
      values[0] = x.data.load<C>(start + col * x.stride);
      visit(values, col);
    }
  } else {
    const uint4* const chunks =
        reinterpret_cast<const uint4*>(reinterpret_cast<const T*>(x.data.base) + start);
#pragma unroll 4
    for (int64_t chunk = threadIdx.x; chunk < cols / kChunk<T>; chunk += blockDim.x) {
      const uint4 loaded = chunks[chunk];
      const T* const elements = reinterpret_cast<const T*>(&loaded);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) values[i] = convert_fast<C>(elements[i]);
      visit(values, chunk * kChunk<T>);
    }
  }
}

// 16-bit logits have fewer bits than the fast exponential gets wrong.
template <typename T, typename C>
__device__ C exp_of(C x) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return __expf(x);
  else
    return exp(x);
}

template <bool Capped, typename C>
__device__ C capped(C logit, C cap) {
  return Capped ? cap * tanh(logit / cap) : logit;
}

template <typename T, typename C, bool Capped>
__global__ void cross_entropy_kernel(RowsOf logits, Targets targets, Elements loss, Elements total,
                                     int64_t rows, int64_t cols, EntropyRule rule) {
  const C cap = static_cast<C>(rule.soft_cap);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int64_t target = targets.of(r, rule), start = logits.rows.position(r);
    if (target < 0) {  // the same for all threads of the block
      if (threadIdx.x == 0) loss.store<C>(r, 0), total.store<C>(r, 0);
      continue;
    }
    C largest = kLowest<C>, sum = 0, plain_sum = 0;
    walk_row<T, C>(logits, start, cols, [&](C(&values)[kWalked<T>], int64_t col) {
      C chunk_largest = kLowest<C>;
#pragma unroll
      for (int i = 0; i < kWalked<T>; ++i) {
        values[i] = col + i < rule.classes ? capped<Capped>(values[i], cap) : kLowest<C>;
        chunk_largest = larger(chunk_largest, values[i]);
      }
      if (!(chunk_largest <= largest)) {  // also where it is NaN, which then stays
        sum = largest == kLowest<C> ? sum : sum * exp_of<T>(largest - chunk_largest);
        largest = chunk_largest;
      }
      // Elements of -inf add nothing, and -inf - -inf would be NaN.
      const C base = largest == kLowest<C> ? C(0) : largest;
      C chunk_sum = 0, chunk_plain = 0;
#pragma unroll
      for (int i = 0; i < kWalked<T>; ++i) {
        chunk_sum += exp_of<T>(values[i] - base);
        chunk_plain += col + i < rule.classes ? values[i] : C(0);
      }
      sum += chunk_sum;
      plain_sum += chunk_plain;
    });
    const C shift = BlockTeam::max(largest);
    const C all = BlockTeam::sum(largest == kLowest<C> ? sum : sum * exp(largest - shift));
    const C mean_logit =
        rule.label_smoothing != 0 ? BlockTeam::sum(plain_sum) / static_cast<C>(rule.classes) : 0;
    if (threadIdx.x != 0) continue;
    const C log_total = shift + log(all), s = static_cast<C>(rule.label_smoothing);
    const C chosen = capped<Capped>(logits.data.load<C>(start + target * logits.stride), cap);
    loss.store<C>(r, log_total - (1 - s) * chosen - s * mean_logit +
                         static_cast<C>(rule.z_loss) * log_total * log_total);
    total.store<C>(r, log_total);
  }
}

struct RowNumbers {  // one number a row
  Elements data;
  int64_t stride;
  explicit RowNumbers(const Operand& x) : data(x), stride(x.layout->strides[0]) {}
  template <typename C>
  __device__ C at(int64_t row) const {
    return data.load<C>(row * stride);
  }
};

template <typename T, typename C, bool Capped>
__global__ void cross_entropy_backward_kernel(RowsOf logits, Targets targets, RowNumbers total,
                                              RowNumbers dloss, RowNumbers dtotal, bool has_dtotal,
                                              RowsOf grad, int64_t rows, int64_t cols,
                                              EntropyRule rule) {
  const C cap = static_cast<C>(rule.soft_cap), s = static_cast<C>(rule.label_smoothing);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int64_t target = targets.of(r, rule), start = logits.rows.position(r),
                  to = grad.rows.position(r);
    const bool counts = target >= 0;
    const C log_total = total.at<C>(r), d = dloss.at<C>(r);
    const C factor = d * (1 + 2 * static_cast<C>(rule.z_loss) * log_total) +
                     (has_dtotal ? dtotal.at<C>(r) : C(0));
    const C share = d * s / static_cast<C>(rule.classes), hit = d * (1 - s);
    const auto gradient = [&](C logit, int64_t col) {
      if (!counts || col >= rule.classes) return C(0);
      const C t = Capped ? tanh(logit / cap) : C(0);
      const C value = exp_of<T>((Capped ? cap * t : logit) - log_total) * factor - share -
                      (col == target ? hit : C(0));
      return value * (1 - t * t);
    };
    if constexpr (std::is_void_v<T>) {
      walk_row<T, C>(logits, start, cols, [&](const C(&values)[1], int64_t col) {
        grad.data.store<C>(to + col * grad.stride, gradient(values[0], col));
      });
    } else {
      const uint4* const from =
          reinterpret_cast<const uint4*>(reinterpret_cast<const T*>(logits.data.base) + start);
      uint4* const out = reinterpret_cast<uint4*>(reinterpret_cast<T*>(grad.data.base) + to);
#pragma unroll 2
      for (int64_t chunk = threadIdx.x; chunk < cols / kChunk<T>; chunk += blockDim.x) {
        uint4 loaded = from[chunk];
        T* const elements = reinterpret_cast<T*>(&loaded);
#pragma unroll
        for (int i = 0; i < kChunk<T>; ++i)
          elements[i] =
              convert_fast<T>(gradient(convert_fast<C>(elements[i]), chunk * kChunk<T> + i));
        out[chunk] = loaded;
      }
    }
  }
}

// Calls body.template operator()<T, C, Capped>() with T void where rows are not whole chunks, or are capped.
template <typename Body>
void visit_logits(const CudaCall& call, bool chunked, const Body& body) {
  const DType dtype = call.input(0).dtype;
  if (options_of(call.attrs).soft_cap > 0) {
    return dtype == DType::f64 ? body.template operator()<void, double, true>()
                               : body.template operator()<void, float, true>();
  }
  if (dtype == DType::f64) return body.template operator()<void, double, false>();
  if (chunked && dtype == DType::f32) return body.template operator()<float, float, false>();
  if (chunked && dtype == DType::bf16) return body.template operator()<bf16, float, false>();
  if (chunked && dtype == DType::f16) return body.template operator()<f16, float, false>();
  body.template operator()<void, float, false>();
}

int entropy_threads(int64_t cols) { return cols <= 256 ? 32 : cols <= 4096 ? 128 : 512; }

}  // namespace

void softmax_cuda(const CudaCall& call) { run_softmax(call, false); }
void log_softmax_cuda(const CudaCall& call) { run_softmax(call, true); }
void softmax_backward_cuda(const CudaCall& call) { run_softmax_backward(call, false); }
void log_softmax_backward_cuda(const CudaCall& call) { run_softmax_backward(call, true); }

void cross_entropy_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  visit_logits(call, is_chunked(logits), [&]<typename T, typename C, bool Capped>() {
    cross_entropy_kernel<T, C, Capped>
        <<<blocks_for(rows, 1), entropy_threads(cols), 0, call.stream>>>(
            RowsOf(logits),
            Targets{Elements(targets), targets.layout->strides[0], fault_note(call)},
            Elements(call.output(0)), Elements(call.output(1)), rows, cols,
            EntropyRule(options_of(call.attrs), cols));
  });
  cuda::check_launch(call.op.name);
}

void cross_entropy_backward_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1), &grad = call.output(0);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  const bool has_dtotal = call.inputs.size() > 4;
  visit_logits(call, is_chunked(logits) && is_chunked(grad),
               [&]<typename T, typename C, bool Capped>() {
                 cross_entropy_backward_kernel<T, C, Capped>
                     <<<blocks_for(rows, 1), entropy_threads(cols), 0, call.stream>>>(
                         RowsOf(logits),
                         Targets{Elements(targets), targets.layout->strides[0], fault_note(call)},
                         RowNumbers(call.input(2)), RowNumbers(call.input(3)),
                         RowNumbers(call.input(has_dtotal ? 4 : 3)), has_dtotal, RowsOf(grad), rows,
                         cols, EntropyRule(options_of(call.attrs), cols));
               });
  cuda::check_launch(call.op.name);
}

}  // namespace brrr
