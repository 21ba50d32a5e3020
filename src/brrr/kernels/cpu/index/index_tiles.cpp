#include "brrr/kernels/cpu/index/index_tiles.h"

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"

namespace brrr::kernels {
namespace {

Shape place_in(const Shape& shape, int64_t flat) {
  Shape place(shape.size(), 0);
  for (int axis = shape.size() - 1; axis >= 0; --axis) {
    place[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return place;
}

}  // namespace

void load_tile(const LoopNest& nest, int o, const Operand& operand, int64_t begin, int64_t count,
               ComputeType type, void* out) {
  auto* next = static_cast<std::byte*>(out);
  for_each_run(nest, o, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
    load_elements(operand.dtype, operand.base, operand.layout->offset + position, stride, run, type,
                  next);
    next += run * compute_bytes(type);
  });
}
void fill_positions(const LoopNest& nest, int o, int64_t begin, int64_t count, int64_t* out) {
  for_each_run(nest, o, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
    for (int64_t i = 0; i < run; ++i) *out++ = position + i * stride;
  });
}

void check_indices(const KernelCall& call, const Operand& index, const Shape& shape, int axis,
                   std::string_view noun) {
  const LoopNest nest = nest_of(index.shape(), {index.layout});
  const int64_t size = shape[axis];
  for_each_tile(call.pool, index.count(), [&](int64_t begin, int64_t count) {
    int64_t values[kTileElements];
    load_tile(nest, 0, index, begin, count, ComputeType::i64, values);
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) inside &= values[i] >= 0 && values[i] < size;
    if (inside) return;
    for (int64_t i = 0; i < count; ++i) {
      check(values[i] >= 0 && values[i] < size, call.op.name, ": ", noun, " ", values[i],
            " at position ", place_in(index.shape(), begin + i), " is out of range for axis ", axis,
            " of shape ", shape, "; use 0 <= ", noun, " < ", size);
    }
  });
}

}  // namespace brrr::kernels
