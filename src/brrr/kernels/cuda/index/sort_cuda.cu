// Sorting by pairs of a key and a place (sort_pairs.cuh). Every element becomes an integer that orders as the element
// does. Rows are sorted all at once: by key first, then, keeping that
// order, by row.
#include "brrr/kernels/cuda/index/index_cuda.h"
#include "brrr/kernels/cuda/index/sort_pairs.cuh"
#include "brrr/kernels/cuda/random/random_bits.cuh"

namespace brrr::kernels {
namespace {

// ---- Keys.

// Two's complement with the sign bit turned orders as unsigned numbers do.
__device__ uint64_t key_of(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}
__device__ uint64_t key_of(uint64_t value) { return value; }
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

}  // namespace

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
  const auto make_keys = [&]<typename W>() {
    launch_for_each(call, count,
                    MakeKeys<W>{Elements(x), x_walk, turned, by_key.keys, by_key.places});
  };
  switch (compute_type(x.dtype)) {
    case ComputeType::u64: make_keys.template operator()<uint64_t>(); break;
    case ComputeType::i64: make_keys.template operator()<int64_t>(); break;
    case ComputeType::f32:
    case ComputeType::f64: make_keys.template operator()<double>(); break;
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

}  // namespace brrr::kernels
