// Sorting by CUB's radix sort, which is stable and takes no atomics on floats. Every element becomes an
// integer that orders as the element does. Rows are sorted all at once: by key first, then, keeping that
// order, by row.
#include <cub/device/device_radix_sort.cuh>

#include "brrr/device/cuda/check.h"
#include "brrr/ops/index_cuda.h"
#include "brrr/ops/random_bits.cuh"

namespace brrr {
namespace {

int64_t whole_lines(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Keys and places, twice each: a pass reads one pair of buffers and writes the other.
template <typename Key>
struct SortBuffers {
  Key *keys, *sorted_keys;
  uint32_t *places, *sorted_places;

  static int64_t bytes(int64_t count) {
    return 2 * whole_lines(count * static_cast<int64_t>(sizeof(Key))) + 2 * whole_lines(count * 4);
  }
  SortBuffers(std::byte* memory, int64_t count) {
    const int64_t key_bytes = whole_lines(count * static_cast<int64_t>(sizeof(Key)));
    keys = reinterpret_cast<Key*>(memory);
    sorted_keys = reinterpret_cast<Key*>(memory + key_bytes);
    places = reinterpret_cast<uint32_t*>(memory + 2 * key_bytes);
    sorted_places = reinterpret_cast<uint32_t*>(memory + 2 * key_bytes + whole_lines(count * 4));
  }
};

int bits_below(int64_t size) {
  int bits = 1;
  while (bits < 63 && (int64_t{1} << bits) < size) ++bits;
  return bits;
}

template <typename Key>
int64_t cub_bytes(int64_t count) {
  // A plan made on a machine without a GPU: a second copy of the pairs and some for counts, as onesweep takes.
  if (cuda::gpu_count() == 0)
    return whole_lines(count * static_cast<int64_t>(sizeof(Key) + sizeof(uint32_t)) + (1 << 16));
  size_t bytes = 0;
  cuda::require(cub::DeviceRadixSort::SortPairs(
                    nullptr, bytes, static_cast<const Key*>(nullptr), static_cast<Key*>(nullptr),
                    static_cast<const uint32_t*>(nullptr), static_cast<uint32_t*>(nullptr), count),
                "cub::DeviceRadixSort (workspace)");
  return whole_lines(static_cast<int64_t>(bytes));
}

template <typename Key>
void sort_pairs(const CudaCall& call, std::byte* scratch, int64_t scratch_bytes,
                const SortBuffers<Key>& buffers, int64_t count, int bits) {
  auto bytes = static_cast<size_t>(scratch_bytes);
  cuda::require(cub::DeviceRadixSort::SortPairs(scratch, bytes, buffers.keys, buffers.sorted_keys,
                                                buffers.places, buffers.sorted_places, count, 0,
                                                bits, call.stream),
                "cub::DeviceRadixSort of ", count, " pairs for ", call.op.name);
}

void require_countable(const CudaCall& call, int64_t count) {
  check(count < INT32_MAX, call.op.name, ": ", count,
        " elements are too many to sort on a GPU; use fewer than 2^31");
}

// ---- Keys.

// Two's complement with the sign bit turned orders as unsigned numbers do.
__device__ uint64_t key_of(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}
// Negative floats grow downwards: all their bits turn. -0 + 0 is +0: they are equal. NaN is the largest.
__device__ uint64_t key_of(double value) {
  if (value != value) return UINT64_MAX;
  const auto bits = static_cast<uint64_t>(__double_as_longlong(value + 0.0));
  return bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63;
}

template <typename W>
struct MakeKeys {
  Elements x;
  Walk walk;        // rows along the last axis
  uint64_t turned;  // all ones to sort downwards
  uint64_t* keys;
  uint32_t* places;
  __device__ void operator()(int64_t i) const {
    keys[i] = key_of(x.load<W>(walk.position(i))) ^ turned;
    places[i] = static_cast<uint32_t>(i);
  }
};

struct MakeRowKeys {
  const uint32_t* places;
  uint32_t *rows, *copy;
  uint32_t cols;
  __device__ void operator()(int64_t i) const {
    rows[i] = places[i] / cols;
    copy[i] = places[i];
  }
};

template <typename Bits>
struct WriteSorted {
  const uint32_t* places;
  const Bits* x;
  Bits* values;
  int64_t* indices;
  Walk x_walk, value_walk, index_walk;
  int64_t cols, kept;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / kept;
    const uint32_t place = places[row * cols + i % kept];
    values[value_walk.position(i)] = x[x_walk.position(place)];
    indices[index_walk.position(i)] = place - row * cols;
  }
};

// Both passes share the memory of the larger one; the row pass needs its own places.
struct SortMemory {
  int64_t first, second, scratch;
  explicit SortMemory(int64_t count)
      : first(SortBuffers<uint64_t>::bytes(count)),
        second(SortBuffers<uint32_t>::bytes(count)),
        scratch(std::max(cub_bytes<uint64_t>(count), cub_bytes<uint32_t>(count))) {}
  int64_t total() const { return first + second + scratch; }
};

}  // namespace

int64_t sort_cuda_workspace(const CudaCall& call) {
  const int64_t count = call.input(0).count();
  return count == 0 || call.output(0).count() == 0 ? 0 : SortMemory(count).total();
}

void sort_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &values = call.output(0), &indices = call.output(1);
  if (values.count() == 0) return;
  const int64_t count = x.count();
  require_countable(call, count);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), call.op.name);
  const int64_t cols = x.shape()[axis], rows = count / cols;
  const Walk x_walk = walk_of(transpose_layout(*x.layout, axis, -1));
  const SortMemory memory(count);
  std::byte* const base = call.workspace.data();
  std::byte* const scratch = base + memory.first + memory.second;
  const SortBuffers<uint64_t> by_key(base, count);
  const SortBuffers<uint32_t> by_row(base + memory.first, count);
  const uint64_t turned = call.attrs.flag("descending") ? ~uint64_t{0} : 0;
  if (compute_type(x.dtype) == ComputeType::i64) {
    launch_for_each(call, count,
                    MakeKeys<int64_t>{Elements(x), x_walk, turned, by_key.keys, by_key.places});
  } else {
    launch_for_each(call, count,
                    MakeKeys<double>{Elements(x), x_walk, turned, by_key.keys, by_key.places});
  }
  sort_pairs(call, scratch, memory.scratch, by_key, count, 64);
  const uint32_t* places = by_key.sorted_places;
  if (rows > 1) {
    launch_for_each(call, count,
                    MakeRowKeys{places, by_row.keys, by_row.places, static_cast<uint32_t>(cols)});
    sort_pairs(call, scratch, memory.scratch, by_row, count, bits_below(rows));
    places = by_row.sorted_places;
  }
  const int64_t kept = values.shape()[axis];
  const Walk value_walk = walk_of(transpose_layout(*values.layout, axis, -1)),
             index_walk = walk_of(transpose_layout(*indices.layout, axis, -1));
  const auto write = [&]<typename Bits>() {
    launch_for_each(call, values.count(),
                    WriteSorted<Bits>{places, Elements(x).as<const Bits>(),
                                      Elements(values).as<Bits>(), Elements(indices).as<int64_t>(),
                                      x_walk, value_walk, index_walk, cols, kept});
  };
  switch (bit_size(x.dtype)) {
    case 8: return write.template operator()<uint8_t>();
    case 16: return write.template operator()<uint16_t>();
    case 32: return write.template operator()<uint32_t>();
    default: return write.template operator()<uint64_t>();
  }
}

// ---- permutation: places in the order of their random bits.

namespace {

struct MakeRandomKeys {
  DeviceKey key;
  uint64_t* keys;
  uint32_t* places;
  int64_t count;
  __device__ void one(int64_t i, uint64_t bits) const {
    keys[i] = bits;
    places[i] = static_cast<uint32_t>(i);
  }
  __device__ void operator()(int64_t block) const {
    const DeviceKey::Pair bits = key.pair(block);
    one(2 * block, bits.first);
    if (2 * block + 1 < count) one(2 * block + 1, bits.second);
  }
};

struct Widen {
  const uint32_t* places;
  int64_t* wide;
  __device__ void operator()(int64_t i) const { wide[i] = places[i]; }
};

}  // namespace

int64_t permutation_cuda_workspace(const CudaCall& call) {
  const int64_t count = call.output(0).count();
  return count == 0 ? 0 : SortBuffers<uint64_t>::bytes(count) + cub_bytes<uint64_t>(count);
}

void permutation_cuda(const CudaCall& call) {
  const int64_t count = call.output(0).count();
  if (count == 0) return;
  require_countable(call, count);
  const SortBuffers<uint64_t> buffers(call.workspace.data(), count);
  launch_for_each(call, (count + 1) / 2,
                  MakeRandomKeys{DeviceKey(call.input(0)), buffers.keys, buffers.places, count});
  const int64_t used = SortBuffers<uint64_t>::bytes(count);
  sort_pairs(call, call.workspace.data() + used, static_cast<int64_t>(call.workspace.size()) - used,
             buffers, count, 64);
  launch_for_each(call, count,
                  Widen{buffers.sorted_places, Elements(call.output(0)).as<int64_t>()});
}

// ---- embedding_grad.

namespace {

struct MakeIdKeys {
  Elements ids;
  Walk walk;
  uint32_t *keys, *places;
  int64_t rows;
  cuda::FaultNote note;
  __device__ void operator()(int64_t i) const {
    const auto id = ids.load<int64_t>(walk.position(i));
    // A bad id sorts behind every row, where nobody reads it.
    keys[i] = static_cast<uint32_t>(note.accepts(id, rows) ? id : rows);
    places[i] = static_cast<uint32_t>(i);
  }
};

// starts[r] = the first place in the sorted keys that is not below r, for r in [0, rows].
struct FindStarts {
  const uint32_t* keys;
  uint32_t* starts;
  int64_t count, rows;
  __device__ void operator()(int64_t i) const {  // i in [0, count]: rows between two neighbours
    const int64_t from = i == 0 ? 0 : int64_t{keys[i - 1]} + 1, to = i == count ? rows : keys[i];
    for (int64_t row = from; row <= min(to, rows); ++row) starts[row] = static_cast<uint32_t>(i);
  }
};

// Elements that a thread sums side by side: 16 bytes of T; one where rows of dy are not whole chunks (void).
template <typename T>
constexpr int kChunkOf = 16 / static_cast<int>(sizeof(T));
template <>
constexpr int kChunkOf<void> = 1;

// dy: [ids, dim], y: [rows, dim].  A block has a row and kColumns chunks of columns; its kParts parts sum a
// share of the row's ids each, in order, and the shares are added in order.
constexpr int kParts = 8, kColumns = 32;
template <typename T, typename C>
__global__ void __launch_bounds__(kColumns* kParts)
    sum_rows_kernel(const uint32_t* starts, const uint32_t* places, Elements dy, Walk dy_rows,
                    int64_t dy_step, Elements y, int64_t dim) {
  constexpr int kChunk = kChunkOf<T>;
  __shared__ C parts[kParts][kColumns][kChunk];
  const int64_t row = blockIdx.x,
                first_col = (static_cast<int64_t>(blockIdx.y) * kColumns + threadIdx.x) * kChunk;
  const int64_t begin = starts[row], end = starts[row + 1];
  const int64_t part = (end - begin + kParts - 1) / kParts, first = begin + threadIdx.y * part,
                last = min(end, first + part);
  C sums[kChunk] = {};
  if (first_col < dim) {
#pragma unroll 4
    for (int64_t i = first; i < last; ++i) {
      const int64_t element = dy_rows.position(places[i]) + first_col * dy_step;
      if constexpr (std::is_void_v<T>) {
        sums[0] = add_wrapping(sums[0], dy.load<C>(element));
      } else {
        const uint4 loaded =
            *reinterpret_cast<const uint4*>(reinterpret_cast<const T*>(dy.base) + element);
        const T* const values = reinterpret_cast<const T*>(&loaded);
#pragma unroll
        for (int c = 0; c < kChunk; ++c) sums[c] += convert_fast<C>(values[c]);
      }
    }
  }
#pragma unroll
  for (int c = 0; c < kChunk; ++c) parts[threadIdx.y][threadIdx.x][c] = sums[c];
  __syncthreads();
  if (threadIdx.y != 0 || first_col >= dim) return;
  for (int p = 1; p < kParts; ++p) {
#pragma unroll
    for (int c = 0; c < kChunk; ++c) sums[c] = add_wrapping(sums[c], parts[p][threadIdx.x][c]);
  }
#pragma unroll
  for (int c = 0; c < kChunk; ++c) y.store<C>(row * dim + first_col + c, sums[c]);
}

// Whether rows of dy are whole 16-byte chunks of f32, bf16 or f16.
bool has_chunks(const Operand& dy) {
  const int64_t bytes = bit_size(dy.dtype) / 8;
  bool whole = is_float(dy.dtype) && bytes <= 4 && bytes >= 2 && dy.layout->strides.back() == 1 &&
               dy.shape().back() * bytes % 16 == 0 &&
               reinterpret_cast<uintptr_t>(Elements(dy).base) % 16 == 0;
  for (int axis = 0; axis + 1 < dy.layout->rank(); ++axis)
    whole = whole && dy.layout->strides[axis] * bytes % 16 == 0;
  return whole;
}

int64_t starts_bytes(const CudaCall& call) {
  return whole_lines((call.output(0).shape()[0] + 1) * 4);
}

}  // namespace

int64_t embedding_grad_cuda_workspace(const CudaCall& call) {
  const int64_t count = call.input(1).count();
  return count == 0 ? 0
                    : SortBuffers<uint32_t>::bytes(count) + starts_bytes(call) +
                          cub_bytes<uint32_t>(count);
}

void embedding_grad_cuda(const CudaCall& call) {
  const Operand &dy = call.input(0), &ids = call.input(1), &y = call.output(0);
  if (y.count() == 0) return;
  const int64_t count = ids.count(), rows = y.shape()[0], dim = y.shape()[1];
  if (count == 0) {
    return cuda::fill_zero(Elements(y).base, static_cast<size_t>(storage_bytes(y.dtype, y.count())),
                           call.stream);
  }
  require_countable(call, std::max(count, rows));
  const SortBuffers<uint32_t> buffers(call.workspace.data(), count);
  launch_for_each(call, count,
                  MakeIdKeys{Elements(ids), walk_of(*ids.layout), buffers.keys, buffers.places,
                             rows, fault_note(call)});
  const int64_t buffer_bytes = SortBuffers<uint32_t>::bytes(count);
  auto* const starts = reinterpret_cast<uint32_t*>(call.workspace.data() + buffer_bytes);
  const int64_t used = buffer_bytes + starts_bytes(call);
  sort_pairs(call, call.workspace.data() + used, static_cast<int64_t>(call.workspace.size()) - used,
             buffers, count, bits_below(rows + 1));
  launch_for_each(call, count + 1, FindStarts{buffers.sorted_keys, starts, count, rows});
  const Layout first_column = select_layout(*dy.layout, -1, 0);
  const Walk dy_rows = walk_of(Layout{first_column.shape, first_column.strides, 0});
  const auto sum = [&]<typename T, typename C>() {
    const int64_t columns = kColumns * kChunkOf<T>;
    const dim3 grid(static_cast<unsigned>(rows),
                    static_cast<unsigned>((dim + columns - 1) / columns));
    sum_rows_kernel<T, C><<<grid, dim3(kColumns, kParts), 0, call.stream>>>(
        starts, buffers.sorted_places, Elements(dy), dy_rows, dy.layout->strides.back(),
        Elements(y), dim);
  };
  const bool chunks = has_chunks(dy);
  if (chunks && dy.dtype == DType::f32) {
    sum.template operator()<float, float>();
  } else if (chunks && dy.dtype == DType::bf16) {
    sum.template operator()<bf16, float>();
  } else if (chunks && dy.dtype == DType::f16) {
    sum.template operator()<f16, float>();
  } else {
    visit_compute(compute_type(dy.dtype),
                  [&]<typename C>() { sum.template operator()<void, C>(); });
  }
  cuda::check_launch(call.op.name);
}

}  // namespace brrr
