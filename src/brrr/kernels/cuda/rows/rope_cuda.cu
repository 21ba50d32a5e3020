// Rotary embeddings. A thread turns the pairs of two chunks of 16 bytes where halves of a head are whole chunks, and one
// pair, or copies one element, anywhere else.
#include "brrr/kernels/cuda/device/rows.cuh"
#include "brrr/kernels/cuda/rows/rope_cuda.h"

namespace brrr::kernels {
namespace {

// cos t and sin t of one position and pair, t in f64 as on the cpu.
struct FillTable {
  Elements positions;
  Walk walk;
  Elements table;  // [rows, 2, pairs]
  int64_t pairs;
  double base;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / pairs, pair = i % pairs;
    const double frequency = pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
    const double angle =
        static_cast<double>(positions.load<int64_t>(walk.position(row))) * frequency;
    table.store<double>(row * 2 * pairs + pair, cos(angle));
    table.store<double>((row * 2 + 1) * pairs + pair, sin(angle));
  }
};

struct Turn {
  Elements x, table, y;
  int64_t x_strides[4], y_strides[3];  // of batch, head, position; columns of y lie in order
  int64_t table_strides[4];            // of batch, position, [cos, sin], pair
  int heads, seq, columns, pairs;
  bool interleaved, inverse;

  struct Place {
    int64_t x, table, y;  // where the row begins
  };
  __device__ Place place(int64_t row) const {
    const int64_t t = row % seq, head = row / seq % heads, batch = row / seq / heads;
    return {batch * x_strides[0] + head * x_strides[1] + t * x_strides[2],
            batch * table_strides[0] + t * table_strides[1],
            batch * y_strides[0] + head * y_strides[1] + t * y_strides[2]};
  }
};

// Thread i has a pair of a row, or one of the elements behind the pairs.
template <typename C>
struct TurnOne : Turn {
  __device__ void operator()(int64_t i) const {
    const int units = columns - pairs, unit = static_cast<int>(i % units);
    const Place at = place(i / units);
    const auto load = [&](int col) { return x.load<C>(at.x + col * x_strides[3]); };
    if (unit >= pairs) {
      const int col = unit + pairs;
      return y.store<C>(at.y + col, load(col));
    }
    const int left = interleaved ? 2 * unit : unit, right = interleaved ? left + 1 : unit + pairs;
    const int64_t angle = at.table + unit * table_strides[3];
    const C cosine = table.load<C>(angle), turn = table.load<C>(angle + table_strides[2]),
            sine = inverse ? -turn : turn, a = load(left), b = load(right);
    y.store<C>(at.y + left, a * cosine - b * sine);
    y.store<C>(at.y + right, b * cosine + a * sine);
  }
};

// Thread i has the chunks of columns [c, c + kChunk) and as many from `pairs` + c on.
template <typename T>
struct TurnChunks : Turn {
  __device__ void operator()(int64_t i) const {
    const int chunks = pairs / kChunk<T>, col = static_cast<int>(i % chunks) * kChunk<T>;
    const Place at = place(i / chunks);
    const T* const from = reinterpret_cast<const T*>(x.base) + at.x + col;
    T* const to = reinterpret_cast<T*>(y.base) + at.y + col;
    const float* const cosines = reinterpret_cast<const float*>(table.base) + at.table + col;
    float a[kChunk<T>], b[kChunk<T>], left[kChunk<T>], right[kChunk<T>];
    unpack_chunk<T>(*reinterpret_cast<const uint4*>(from), a);
    unpack_chunk<T>(*reinterpret_cast<const uint4*>(from + pairs), b);
#pragma unroll
    for (int e = 0; e < kChunk<T>; ++e) {
      const float cosine = cosines[e], turn = cosines[table_strides[2] + e],
                  sine = inverse ? -turn : turn;
      left[e] = a[e] * cosine - b[e] * sine;
      right[e] = b[e] * cosine + a[e] * sine;
    }
    *reinterpret_cast<uint4*>(to) = pack_chunk<T>(left);
    *reinterpret_cast<uint4*>(to + pairs) = pack_chunk<T>(right);
  }
};

Turn turn_of(const CudaCall& call) {
  const Operand &x = call.input(0), &table = call.input(1), &y = call.output(0);
  const Layout &from = *x.layout, &to = *y.layout, &angles = *table.layout;
  const bool shared = angles.rank() == 3;  // by all batches
  const auto angle_stride = [&](int axis) { return angles.strides[axis - (shared ? 1 : 0)]; };
  return {.x = Elements(x),
          .table = Elements(table),
          .y = Elements(y),
          .x_strides = {from.strides[0], from.strides[1], from.strides[2], from.strides[3]},
          .y_strides = {to.strides[0], to.strides[1], to.strides[2]},
          .table_strides = {shared ? 0 : angles.strides[0], angle_stride(1), angle_stride(2),
                            angle_stride(3)},
          .heads = static_cast<int>(from.shape[1]),
          .seq = static_cast<int>(from.shape[2]),
          .columns = static_cast<int>(from.shape[3]),
          .pairs = static_cast<int>(angles.shape.back()),
          .interleaved = call.attrs.flag("interleaved"),
          .inverse = call.attrs.flag("inverse")};
}

// Whole chunks on both sides: halves of a head, in order, at multiples of 16 bytes.
template <typename T>
bool is_chunked(const CudaCall& call, const Turn& turn) {
  const auto whole = [](int64_t elements) { return elements % kChunk<T> == 0; };
  const bool is_whole_row = whole(turn.x_strides[0]) && whole(turn.x_strides[1]) &&
                            whole(turn.x_strides[2]) && whole(turn.y_strides[0]) &&
                            whole(turn.y_strides[1]) && whole(turn.y_strides[2]);
  return !turn.interleaved && turn.columns == 2 * turn.pairs && whole(turn.pairs) &&
         turn.x_strides[3] == 1 && is_whole_row &&
         reinterpret_cast<uintptr_t>(turn.x.base) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(turn.y.base) % 16 == 0 && call.input(1).dtype == DType::f32 &&
         turn.table_strides[3] == 1;
}

}  // namespace

void rope_table_cuda(const CudaCall& call) {
  const Operand &positions = call.input(0), &table = call.output(0);
  launch_for_each(call, table.count() / 2,
                  FillTable{Elements(positions), walk_of(*positions.layout), Elements(table),
                            table.shape().back(), call.attrs.number("base")});
}

void rope_cuda(const CudaCall& call) {
  const Turn turn = turn_of(call);
  const int64_t rows = call.output(0).count() / std::max(turn.columns, 1);
  const bool done = visit_chunked_dtype(call.input(0).dtype, [&]<typename T>() {
    if (!is_chunked<T>(call, turn)) return false;
    launch_for_each(call, rows * (turn.pairs / kChunk<T>), TurnChunks<T>{turn});
    return true;
  });
  if (done) return;
  const int64_t units = rows * (turn.columns - turn.pairs);
  call.input(0).dtype == DType::f64 ? launch_for_each(call, units, TurnOne<double>{turn})
                                    : launch_for_each(call, units, TurnOne<float>{turn});
}

}  // namespace brrr::kernels
