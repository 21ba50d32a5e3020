#include "brrr/kernels/cpu/index/pool_cpu.h"

#include <vector>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"

namespace brrr::kernels {
namespace {

// The elements [begin, end) of an axis that window `i` sees; padding is left out.
struct Span {
  int64_t begin, end;
};
Span seen_by(int64_t i, int64_t kernel, int64_t stride, int64_t padding, int64_t size) {
  const int64_t first = i * stride - padding;
  return {std::max<int64_t>(0, first), std::min(size, first + kernel)};
}

// The place in a plane of `width` columns of the largest element of a window: the first of equals.
template <typename T>
int64_t largest_in(const T* plane, int64_t width, Span rows, Span cols) {
  int64_t best = rows.begin * width + cols.begin;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t col = cols.begin; col < cols.end; ++col) {
      const T value = plane[row * width + col], largest = plane[best];
      const bool first_nan = value != value && largest == largest;
      if (value > largest || first_nan) best = row * width + col;
    }
  }
  return best;
}

}  // namespace

// x: [planes..., h, w], values and places: [planes..., rows, cols].  A piece owns whole planes and
// reads each of them into a buffer once.
void max_pool2d_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &values = call.output(0), &places = call.output(1);
  if (values.count() == 0) return;
  const Axes &kernel = call.attrs.list("kernel"), &stride = call.attrs.list("stride");
  const Axes& padding = call.attrs.list("padding");
  Layout planes = *x.layout;
  const int64_t width_step = planes.strides.back(), width = planes.shape.back();
  planes.shape.pop_back(), planes.strides.pop_back();
  const int64_t height_step = planes.strides.back(), height = planes.shape.back();
  planes.shape.pop_back(), planes.strides.pop_back();
  const Layout* plane_layout = &planes;
  const LoopNest nest = make_nest(planes.shape, {&plane_layout, 1});
  const int rank = values.shape().size();
  const int64_t rows = values.shape()[rank - 2], cols = values.shape()[rank - 1];
  const ComputeType type = compute_type(x.dtype);
  const auto run_plane = [&]<typename T>(int64_t plane, int64_t start, T* in, T* out) {
    for (int64_t row = 0; row < height; ++row) {
      load_elements(x.dtype, x.base, x.layout->offset + start + row * height_step, width_step,
                    width, type, in + row * width);
    }
    int64_t* place = places.data<int64_t>() + plane * rows * cols;
    for (int64_t row = 0; row < rows; ++row) {
      const Span seen_rows = seen_by(row, kernel[0], stride[0], padding[0], height);
      for (int64_t col = 0; col < cols; ++col) {
        const Span seen_cols = seen_by(col, kernel[1], stride[1], padding[1], width);
        place[row * cols + col] = largest_in(in, width, seen_rows, seen_cols);
      }
    }
    for (int64_t i = 0; i < rows * cols; ++i) out[i] = in[place[i]];
    store_elements(type, out, values.dtype, values.base,
                   values.layout->offset + plane * rows * cols, 1, rows * cols);
  };
  const int64_t plane_count = numel(planes.shape);
  const int64_t piece_planes = std::max<int64_t>(1, kPieceElements / (height * width));
  call.pool.for_each_piece((plane_count + piece_planes - 1) / piece_planes, [&](int64_t piece) {
    const int64_t begin = piece * piece_planes, end = std::min(plane_count, begin + piece_planes);
    visit_compute(type, [&]<typename T>() {
      std::vector<T> in(static_cast<size_t>(height * width)), out(static_cast<size_t>(rows * cols));
      int64_t plane = begin;
      for_each_run(nest, 0, begin, end - begin, [&](int64_t start, int64_t run, int64_t step) {
        for (int64_t i = 0; i < run; ++i) {
          run_plane(plane++, start + i * step, in.data(), out.data());
        }
      });
    });
  });
}

}  // namespace brrr::kernels
