#include "brrr/kernels/cpu/index/fold_cpu.h"

#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/scalar/wrap.h"

namespace brrr::kernels {
namespace {

// Sums can grow in the result itself where it holds the compute type.
bool adds_in_place(const Operand& output) { return is_natural(output.dtype); }

// The additions over the flat space [lanes, windows], a lane being one place on all the other axes.
// Element k of window i goes to i * step + k of its own lane.
template <typename T>
struct FoldLanes {
  const Operand& input;
  LoopNest nest;  // the first elements of the windows, and where they go in `total`
  int64_t size, input_step, total_step;  // elements of a window, and the steps from k to k + 1
  T* total;

  void add(int64_t begin, int64_t end) const {
    T values[kTileElements];
    const ComputeType type = compute_type(input.dtype);
    for (int64_t k = 0; k < size; ++k) {
      for (int64_t tile = begin; tile < end; tile += kTileElements) {
        const int64_t count = std::min(kTileElements, end - tile);
        T* out = values;
        for_each_run(nest, 0, tile, count, [&](int64_t position, int64_t run, int64_t stride) {
          load_elements(input.dtype, input.base, input.layout->offset + position + k * input_step,
                        stride, run, type, out);
          out += run;
        });
        const T* next = values;
        for_each_run(nest, 1, tile, count, [&](int64_t position, int64_t run, int64_t stride) {
          T* to = total + position + k * total_step;
          for (int64_t i = 0; i < run; ++i) {
            to[i * stride] = add_wrapping(to[i * stride], *next++);
          }
        });
      }
    }
  }
};

}  // namespace

int64_t fold_workspace(const KernelCall& call) {
  const Operand& output = call.output(0);
  if (adds_in_place(output)) return 0;
  return storage_bytes(natural_dtype(compute_type(output.dtype)), output.count());
}

// windows: [..., count, ..., size], output: [..., n, ...], contiguous.  A piece owns whole lanes and
// adds in the order of k; low-precision floats are added in f32 and rounded once.
void fold_cpu(const KernelCall& call) {
  const Operand &windows = call.input(0), &output = call.output(0);
  if (output.count() == 0) return;
  if (windows.count() == 0) {  // windows of no elements
    std::fill_n(output.base + storage_bytes(output.dtype, output.layout->offset),
                storage_bytes(output.dtype, output.count()), std::byte{0});
    return;
  }
  const int axis = normalize_axis(call.attrs.integer("axis"), output.shape().size(), "fold");
  const bool in_place = adds_in_place(output);
  const Layout packed = contiguous_layout(output.shape());
  const ComputeType type = compute_type(output.dtype);
  const Operand total =
      in_place ? output : Operand{call.workspace.data(), &packed, natural_dtype(type)};
  const Layout firsts = axis_last(select_layout(*windows.layout, -1, 0), axis);
  Layout places = axis_last(packed, axis);
  const int64_t total_step = places.strides.back(), count = firsts.shape.back();
  places.shape = firsts.shape;
  if (count > 1) places.strides.back() *= call.attrs.integer("step");  // else it may be huge
  const Layout* layouts[] = {&firsts, &places};
  const LoopNest nest = make_nest(firsts.shape, layouts);
  const int64_t size = windows.shape().back(), lanes = windows.count() / (size * count);
  const int64_t piece_lanes = std::max<int64_t>(1, kPieceElements / (size * count));
  visit_wrapping(type, [&]<typename T>() {
    std::fill_n(total.data<T>(), total.count(), T(0));
    const FoldLanes<T> fold{.input = windows,
                            .nest = nest,
                            .size = size,
                            .input_step = windows.layout->strides.back(),
                            .total_step = total_step,
                            .total = total.data<T>()};
    call.pool.for_each_piece((lanes + piece_lanes - 1) / piece_lanes, [&](int64_t piece) {
      fold.add(piece * piece_lanes * count, std::min(lanes, (piece + 1) * piece_lanes) * count);
    });
  });
  if (!in_place) run_copy({call.op, {&total, 1}, {&output, 1}, call.attrs, {}, call.pool});
}

}  // namespace brrr::kernels
