// Copies and fills. Three ways for a copy: bytes in order go to the copy engine; elements that keep their
// dtype move as bits, whatever they mean; the rest converts element by element. Transposed matrices go
// through tiles in shared memory, so that both sides are read and written in order.
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"

namespace brrr::kernels {
namespace {

template <typename Bits>
struct CopyBits {
  const Bits* from;
  Bits* to;
  Walk from_walk, to_walk;
  __device__ void operator()(int64_t i) const {
    to[to_walk.position(i)] = from[from_walk.position(i)];
  }
};

template <typename C>
struct Convert {
  Elements from, to;
  Walk from_walk, to_walk;
  __device__ void operator()(int64_t i) const {
    to.store<C>(to_walk.position(i), from.load<C>(from_walk.position(i)));
  }
};

// A nibble as every store of a packed dtype makes it: floats saturate, integers wrap.
template <typename C>
__device__ int nibble_of(C value, DType dtype) {
  if constexpr (std::integral<C>) {
    return static_cast<int>(value & 15);
  } else {
    const int64_t low = dtype == DType::i4 ? -8 : 0, high = dtype == DType::i4 ? 7 : 15;
    const auto whole = convert_element<int64_t>(value);
    return static_cast<int>((whole < low ? low : whole > high ? high : whole) & 15);
  }
}

// One thread writes all nibbles of a byte: those of elements [2 byte - odd, 2 byte - odd + 2), where the
// result begins in the middle of a byte if `odd`.
template <typename C>
struct Pack {
  Elements from, to;
  Walk from_walk;
  int64_t count, odd;
  __device__ void operator()(int64_t byte) const {
    uint8_t* const target = reinterpret_cast<uint8_t*>(to.base) + (to.offset >> 1) + byte;
    int pair = *target;
    for (int half = 0; half < 2; ++half) {
      const int64_t i = 2 * byte + half - odd;
      if (i < 0 || i >= count) continue;
      const int nibble = nibble_of(from.load<C>(from_walk.position(i)), to.dtype);
      pair = (pair & ~(15 << (4 * half))) | nibble << (4 * half);
    }
    *target = static_cast<uint8_t>(pair);
  }
};

// The same where the places have gaps: one thread for all, since any two may share a byte.
template <typename C>
__global__ void pack_strided_kernel(Elements from, Elements to, Walk from_walk, Walk to_walk,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = to.offset + to_walk.position(i);
    uint8_t& pair = reinterpret_cast<uint8_t*>(to.base)[place >> 1];
    const int shift = static_cast<int>(place & 1) * 4;
    const int nibble = nibble_of(from.load<C>(from_walk.position(i)), to.dtype);
    pair = static_cast<uint8_t>((pair & ~(15 << shift)) | nibble << shift);
  }
}

// from: [batch][cols][rows] in memory, read as [batch][rows][cols]; to: rows of `to_stride`.
// A block moves a tile of 32 x 32; the column of padding keeps its columns in different banks.
constexpr int kTile = 32, kTileRows = 8;
struct TransposeShape {
  int64_t rows, cols;
  int64_t from_row, from_col, to_row, to_col;  // strides: from_row == 1 == to_col
  int64_t from_batch, to_batch;
};
template <typename Bits>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_kernel(const Bits* from, Bits* to, TransposeShape shape) {
  __shared__ Bits tile[kTile][kTile + 1];
  from += blockIdx.z * shape.from_batch;
  to += blockIdx.z * shape.to_batch;
  const int64_t first_col = static_cast<int64_t>(blockIdx.x) * kTile,
                first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  for (int c = threadIdx.y; c < kTile; c += kTileRows) {
    const int64_t row = first_row + threadIdx.x, col = first_col + c;
    if (row < shape.rows && col < shape.cols)
      tile[c][threadIdx.x] = from[row + col * shape.from_col];
  }
  __syncthreads();
  for (int r = threadIdx.y; r < kTile; r += kTileRows) {
    const int64_t row = first_row + r, col = first_col + threadIdx.x;
    if (row < shape.rows && col < shape.cols) to[row * shape.to_row + col] = tile[threadIdx.x][r];
  }
}

// A nest of [batch,] rows, cols where the source runs along rows and the target along columns.
bool as_transpose(const LoopNest& nest, TransposeShape& shape, int64_t& batch) {
  if (nest.rank < 2 || nest.rank > 3) return false;
  const size_t last = static_cast<size_t>(nest.rank) - 1;
  const auto &from = nest.strides[0], &to = nest.strides[1];
  const bool fits = from[last - 1] == 1 && to[last] == 1 && from[last] > 1 && to[last - 1] > 1 &&
                    nest.sizes[last] >= 16 && nest.sizes[last - 1] >= 16;
  batch = nest.rank == 3 ? nest.sizes[0] : 1;
  if (!fits || batch > 65535 || nest.sizes[last - 1] > int64_t{65535} * kTile) return false;
  shape = {.rows = nest.sizes[last - 1],
           .cols = nest.sizes[last],
           .from_row = 1,
           .from_col = from[last],
           .to_row = to[last - 1],
           .to_col = 1,
           .from_batch = nest.rank == 3 ? from[0] : 0,
           .to_batch = nest.rank == 3 ? to[0] : 0};
  return true;
}

template <typename Bits>
bool copy_transposed(const CudaCall& call, const Operand& from, const Operand& to,
                     const LoopNest& nest) {
  TransposeShape shape{};
  int64_t batch = 1;
  if (!as_transpose(nest, shape, batch)) return false;
  const dim3 grid(static_cast<unsigned>((shape.cols + kTile - 1) / kTile),
                  static_cast<unsigned>((shape.rows + kTile - 1) / kTile),
                  static_cast<unsigned>(batch));
  transpose_kernel<Bits><<<grid, dim3(kTile, kTileRows), 0, call.stream>>>(
      Elements(from).as<const Bits>(), Elements(to).as<Bits>(), shape);
  cuda::check_launch(call.op.name);
  return true;
}

// Whole runs of elements that both sides have in order move as chunks of up to 16 bytes.
void copy_bits(const CudaCall& call, const Operand& from, const Operand& to) {
  const Elements source(from), target(to);
  Layout read = *from.layout, write = *to.layout;
  read.offset = write.offset = 0;
  if (read.shape != write.shape) read = expand_layout(read, write.shape);
  const int64_t element_bytes = bit_size(to.dtype) / 8;
  const ChunkOperand operands[] = {{source.base, &read}, {target.base, &write}};
  const int64_t bytes = chunk_bytes_of(operands, element_bytes), factor = bytes / element_bytes;
  if (factor > 1) read = in_chunks(read, factor), write = in_chunks(write, factor);
  const Layout* const layouts[] = {&read, &write};
  const LoopNest nest = make_nest(write.shape, layouts);
  visit_chunk(bytes, [&]<typename Bits>() {
    launch_for_each(call, numel(write.shape),
                    CopyBits<Bits>{source.as<const Bits>(), target.as<Bits>(), walk_of(nest, 0),
                                   walk_of(nest, 1)});
  });
}

template <typename C>
void pack(const CudaCall& call, const Operand& from, const Operand& to, const LoopNest& nest) {
  const Elements source(from), target(to);
  if (nest.is_flat(1)) {
    const int64_t odd = target.offset & 1, bytes = (to.count() + odd + 1) / 2;
    launch_for_each(call, bytes, Pack<C>{source, target, walk_of(nest, 0), to.count(), odd});
  } else {
    pack_strided_kernel<C>
        <<<1, 1, 0, call.stream>>>(source, target, walk_of(nest, 0), walk_of(nest, 1), to.count());
    cuda::check_launch(call.op.name);
  }
}

void copy_same_dtype(const CudaCall& call, const Operand& from, const Operand& to,
                     const LoopNest& nest) {
  if (nest.is_flat(0) && nest.is_flat(1)) {
    return cuda::copy_on_device(Elements(to).base, Elements(from).base,
                                static_cast<size_t>(storage_bytes(to.dtype, to.count())),
                                call.stream);
  }
  bool transposed = false;
  visit_chunk(bit_size(to.dtype) / 8, [&]<typename Bits>() {
    if constexpr (sizeof(Bits) <= 8) transposed = copy_transposed<Bits>(call, from, to, nest);
  });
  if (!transposed) copy_bits(call, from, to);
}

}  // namespace

void copy_elements_cuda(const CudaCall& call, const Operand& from, const Operand& to) {
  if (to.count() == 0) return;
  const Layout* const layouts[] = {from.layout, to.layout};
  const LoopNest nest = make_nest(to.shape(), layouts);
  const ComputeType type = compute_type(from.dtype);
  if (is_packed(to.dtype)) {
    return visit_compute(type, [&]<typename C>() { pack<C>(call, from, to, nest); });
  }
  if (from.dtype == to.dtype) return copy_same_dtype(call, from, to, nest);
  const Walk from_walk = walk_of(nest, 0), to_walk = walk_of(nest, 1);
  visit_compute(type, [&]<typename C>() {
    launch_for_each(call, to.count(), Convert<C>{Elements(from), Elements(to), from_walk, to_walk});
  });
}

void run_copy_cuda(const CudaCall& call) {
  copy_elements_cuda(call, call.input(0), call.output(0));
}

namespace {

template <typename C>
struct Fill {
  Elements to;
  Walk walk;
  C value;
  __device__ void operator()(int64_t i) const { to.store<C>(walk.position(i), value); }
};

struct Progression {
  Elements to;
  double start, step;
  __device__ void operator()(int64_t i) const {
    to.store<double>(i, start + static_cast<double>(i) * step);
  }
};

}  // namespace

void fill_elements_cuda(const CudaCall& call, const Operand& to, double value) {
  launch_for_each(call, to.count(), Fill<double>{Elements(to), walk_of(*to.layout), value});
}

void full_cuda(const CudaCall& call) {
  const Operand& to = call.output(0);
  const double value = call.attrs.number("value");
  if (value == 0 && !std::signbit(value)) {
    return cuda::fill_zero(Elements(to).base,
                           static_cast<size_t>(storage_bytes(to.dtype, to.count())), call.stream);
  }
  fill_elements_cuda(call, to, value);
}

void arange_cuda(const CudaCall& call) {
  launch_for_each(
      call, call.output(0).count(),
      Progression{Elements(call.output(0)), call.attrs.number("start"), call.attrs.number("step")});
}

void number_cuda(const CudaCall& call) {
  const Operand& to = call.output(0);
  const Walk walk = walk_of(*to.layout);
  if (to.dtype == DType::f64) {
    launch_for_each(call, 1, Fill<double>{Elements(to), walk, call.attrs.number("value")});
  } else {
    launch_for_each(call, 1, Fill<int64_t>{Elements(to), walk, call.attrs.integer("value")});
  }
}

}  // namespace brrr::kernels
