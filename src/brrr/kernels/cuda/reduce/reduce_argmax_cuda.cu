// Places of extremes, and running sums, on the GPU.
#include "brrr/kernels/cuda/reduce/reduce.cuh"

namespace brrr::kernels {
namespace {

using namespace reduction;

template <typename C>
struct Candidate {
  C value;
  int64_t place;  // -1: none
};

// NaN beats all, then the larger (smaller) value, then the first place.
template <bool largest, typename C>
__device__ bool beats(const Candidate<C>& a, const Candidate<C>& b) {
  if (a.place < 0 || b.place < 0) return b.place < 0 && a.place >= 0;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan || b_nan) return a_nan && (!b_nan || a.place < b.place);
  if (a.value == b.value) return a.place < b.place;
  return largest ? a.value > b.value : a.value < b.value;
}

template <bool largest, typename C>
__global__ void __launch_bounds__(kBlockThreads) find_place_kernel(Plan plan) {
  __shared__ Candidate<C> candidates[kBlockThreads];
  for (int64_t output = blockIdx.x; output < plan.outputs; output += gridDim.x) {
    const int64_t start = plan.kept.position(output);
    Candidate<C> best{C(0), -1};
    for (int64_t i = threadIdx.x; i < plan.length; i += kBlockThreads) {
      const Candidate<C> next{plan.x.load<C>(start + plan.reduced.position(i)), i};
      if (beats<largest>(next, best)) best = next;
    }
    candidates[threadIdx.x] = best;
    for (int half = kBlockThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half &&
          beats<largest>(candidates[threadIdx.x + half], candidates[threadIdx.x]))
        candidates[threadIdx.x] = candidates[threadIdx.x + half];
    }
    if (threadIdx.x == 0) plan.y.store<int64_t>(output, candidates[0].place);
    __syncthreads();
  }
}

template <bool largest>
void find_places(const CudaCall& call) {
  const Plan plan = plan_of(call);
  if (plan.outputs == 0) return;
  visit_compute(compute_type(plan.x.dtype), [&]<typename C>() {
    find_place_kernel<largest, C>
        <<<blocks_for(plan.outputs, 1), kBlockThreads, 0, call.stream>>>(plan);
  });
  cuda::check_launch(call.op.name);
}

// ---- Running sums: a warp walks a row, 32 elements at a time, and carries the sum on.

template <typename W>
__global__ void __launch_bounds__(kBlockThreads)
    cumsum_kernel(Elements x, Elements y, Walk rows_x, int64_t col_stride, int64_t rows,
                  int64_t cols, bool from_end) {
  const int lane = threadIdx.x % 32;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kBlockThreads / 32);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
       row < rows; row += step) {
    const int64_t start = rows_x.position(row);
    W carried = 0;
    for (int64_t first = 0; first < cols; first += 32) {
      const int64_t i = first + lane, col = from_end ? cols - 1 - i : i;
      W value = i < cols ? x.load<W>(start + col * col_stride) : W(0);
      for (int distance = 1; distance < 32; distance *= 2) {
        const W before = __shfl_up_sync(0xffffffffu, value, distance);
        if (lane >= distance) value = add_wrapping(value, before);
      }
      value = add_wrapping(value, carried);
      if (i < cols) y.store<W>(row * cols + col, value);
      carried = __shfl_sync(0xffffffffu, value, 31);
    }
  }
}

}  // namespace

void argmax_cuda(const CudaCall& call) { find_places<true>(call); }
void argmin_cuda(const CudaCall& call) { find_places<false>(call); }

void cumsum_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &y = call.output(0);
  if (y.count() == 0) return;
  Layout outer = *x.layout;
  const int64_t cols = outer.shape.back(), stride = outer.strides.back(), rows = y.count() / cols;
  outer.shape.pop_back();
  outer.strides.pop_back();
  const bool from_end = call.attrs.flag("from_end");
  const unsigned blocks = blocks_for(rows, kBlockThreads / 32);
  if (is_float(y.dtype)) {
    cumsum_kernel<double><<<blocks, kBlockThreads, 0, call.stream>>>(
        Elements(x), Elements(y), walk_of(outer), stride, rows, cols, from_end);
  } else {
    cumsum_kernel<int64_t><<<blocks, kBlockThreads, 0, call.stream>>>(
        Elements(x), Elements(y), walk_of(outer), stride, rows, cols, from_end);
  }
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels
