#include "brrr/cost/calibrate_cases.h"

#include <unistd.h>

#include <algorithm>

#include "brrr/autodiff/grad.h"
#include "brrr/cost/calibrate_moves.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/attention/rope.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/norm/log_softmax.h"
#include "brrr/ops/norm/rms_norm.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/random/dropout.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr::cost {
namespace {

using Function = runtime::CompiledFunction::Function;
using Points = std::vector<double>;

struct Sizes {
  Points m, nk;                // of matrix products
  Points keys, head_dim;       // of attention
  Points elements, row;        // of everything that goes over rows
  Points distance, optimizer;  // bytes of the working set
  int64_t table_rows;          // of an embedding
};

// The largest working set: four times the last cache, so that it comes from memory.
double memory_distance() {
  const auto last_cache = static_cast<double>(std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  return std::clamp(4 * last_cache, double{1 << 27}, double{1 << 30});
}

// Elements of rows stay within the L2 caches: what comes from memory is priced by bytes.
Sizes sizes_of(CalibrationSize size) {
  if (size == CalibrationSize::small)
    return {.m = {8, 64},
            .nk = {8, 64},
            .keys = {32},
            .head_dim = {32},
            .elements = {4096, 32768},
            .row = {64, 512},
            .distance = {1 << 16, 1 << 20},
            .optimizer = {1 << 18},
            .table_rows = 64};
  // Nobody asked for this one, so it may not fill a small container: working sets end at 64 MiB.
  if (size == CalibrationSize::quick)
    return {.m = {8, 64, 256, 1024},
            .nk = {32, 128, 512},
            .keys = {32, 128, 512},
            .head_dim = {16, 64},
            .elements = {8192, 262144},
            .row = {32, 256, 2048},
            .distance = {1 << 16, 1 << 19, 1 << 22, 1 << 24, 1 << 26},
            .optimizer = {1 << 20, 1 << 24, 1 << 26},
            .table_rows = 256};
  const double memory = memory_distance();
  return {.m = {1, 8, 64, 256, 1024},
          .nk = {8, 64, 256, 1024},
          .keys = {32, 128, 512, 1024},
          .head_dim = {8, 16, 64, 128},
          .elements = {8192, 65536, 262144},
          .row = {32, 256, 2048},
          .distance = {1 << 16, 1 << 19, 1 << 22, 1 << 24, 1 << 26, memory},
          .optimizer = {1 << 20, 1 << 24, 1 << 26, memory},
          // Small: filling the gradient of a table with zeros is priced by its bytes.
          .table_rows = 256};
}

class ListBuilder {
 public:
  explicit ListBuilder(CalibrationSize size) : sizes_(sizes_of(size)) {}

  CalibrationList run() {
    add_matmuls();
    add_attention();
    add_memory();
    for (double elements : sizes_.elements) {
      for (double row : sizes_.row)
        add_rows(static_cast<int64_t>(elements), static_cast<int64_t>(row));
      for (double dim : sizes_.head_dim)
        add_rope(static_cast<int64_t>(elements), static_cast<int64_t>(dim));
    }
    return std::move(list_);
  }

 private:
  struct Program {
    Function function;
    std::vector<Tensor> inputs;
  };

  // The next point of a grid, in the order of its values.
  void add(const std::string& family, std::string unit, std::vector<hardware::RateAxis> axes,
           std::string op, Program program, CaseMeasure measure = CaseMeasure::kernel) {
    hardware::RateGrid& grid = list_.grids[family];
    grid.unit = std::move(unit);
    grid.axes = std::move(axes);
    list_.cases.push_back({.family = family,
                           .index = counts_[family]++,
                           .op = std::move(op),
                           .measure = measure,
                           .program = runtime::CompiledFunction(std::move(program.function), {}),
                           .inputs = std::move(program.inputs)});
  }

  // Fixed values, the same tensor for the same shape: speed does not depend on them.
  Tensor values(const Shape& shape, DType dtype = DType::f32) {
    for (const Tensor& x : made_) {
      if (x.shape() == shape && x.dtype() == dtype) return x;
    }
    CategoryScope scope(Category::data);
    made_.push_back(cast(uniform(shape, RandomKey{.seed = 1}, {.low = -1, .high = 1}), dtype));
    return made_.back();
  }
  static Tensor ids(int64_t count, int64_t below) {
    CategoryScope scope(Category::data);
    return randint({count}, RandomKey{.seed = 2}, 0, below);
  }

  void add_matmuls() {
    const auto product = [](bool a_transposed, bool b_transposed) -> Function {
      return [=](std::span<const Tensor> x) -> Tensors {
        return {
            matmul(a_transposed ? transpose(x[0]) : x[0], b_transposed ? transpose(x[1]) : x[1])};
      };
    };
    for (double m_point : sizes_.m) {
      for (double n_point : sizes_.nk) {
        for (double k_point : sizes_.nk) {
          const auto m = static_cast<int64_t>(m_point), n = static_cast<int64_t>(n_point),
                     k = static_cast<int64_t>(k_point);
          const auto add_layout = [&](const char* family, Function function, const Shape& a,
                                      const Shape& b) {
            add(family, "flop/s", {{"m", sizes_.m}, {"n", sizes_.nk}, {"k", sizes_.nk}}, "matmul",
                {std::move(function), {values(a), values(b)}});
          };
          add_layout("matmul.nn", product(false, false), {m, k}, {k, n});
          add_layout("matmul.nt", product(false, true), {m, k}, {n, k});
          add_layout("matmul.tn", product(true, false), {k, m}, {k, n});
        }
      }
    }
    const auto n = static_cast<int64_t>(sizes_.nk[sizes_.nk.size() - 2]);
    for (DType dtype : {DType::f32, DType::bf16})
      add(join_text("matmul.", dtype), "flop/s", {}, "matmul",
          {product(false, true), {values({n, n}, dtype), values({n, n}, dtype)}});
  }

  // Queries, keys and values are parts of one projection, as in models.
  static Tensor attend(const Tensor& qkv) {
    const auto part = [&](int64_t i) { return transpose(select(qkv, 2, i), 1, 2); };
    return attention(part(0), part(1), part(2), {.causal = true});
  }

  void add_attention() {
    constexpr int64_t kBatch = 2, kHeads = 6;
    for (double keys_point : sizes_.keys) {
      for (double dim_point : sizes_.head_dim) {
        const auto keys = static_cast<int64_t>(keys_point), dim = static_cast<int64_t>(dim_point);
        const Tensor qkv = values({kBatch, keys, 3, kHeads, dim});
        const Tensor leaf = clone(qkv);
        leaf.require_grad();
        const std::vector<hardware::RateAxis> axes{{"keys", sizes_.keys},
                                                   {"head_dim", sizes_.head_dim}};
        add("attention", "flop/s", axes, "attention",
            {[](std::span<const Tensor> x) -> Tensors { return {attend(x[0])}; }, {qkv}});
        add("attention_backward", "flop/s", axes, "attention_backward",
            {[leaf](std::span<const Tensor> x) -> Tensors {
               return {grad(attend(leaf), std::vector<Tensor>{leaf}, {.seed = x[0]})[0]};
             },
             {values({kBatch, kHeads, keys, dim})}});
      }
    }
  }

  // Rows are heads, which are shorter than any other rows. They lie as a projection leaves them.
  void add_rope(int64_t elements, int64_t dim) {
    constexpr int64_t kHeads = 4;
    const int64_t seq = elements / (kHeads * dim);
    const Tensor table =
        rope_table(arange(0, static_cast<double>(seq), 1, {.dtype = DType::i64}), dim / 2);
    add("rope", "element/s", {{"elements", sizes_.elements}, {"row", sizes_.head_dim}}, "rope",
        {[](std::span<const Tensor> x) -> Tensors { return {rope(transpose(x[0], 1, 2), x[1])}; },
         {values({1, seq, kHeads, dim}), table}});
  }

  // One op writes large results past the caches, a fused region does not.
  void add_memory() {
    for (double bytes : sizes_.distance) {  // as many read as written
      const Tensor x = values({static_cast<int64_t>(bytes) / 8});
      const std::vector<hardware::RateAxis> axes{{"distance", sizes_.distance}};
      add("bandwidth", "byte/s", axes, "",
          {[](std::span<const Tensor> y) -> Tensors { return {neg(y[0])}; }, {x}},
          CaseMeasure::bytes);
      add("bandwidth.fused", "byte/s", axes, "",
          {[](std::span<const Tensor> y) -> Tensors { return {neg(abs(y[0]))}; }, {x}},
          CaseMeasure::bytes);
    }
    for (double bytes : sizes_.optimizer) {
      constexpr int64_t kBytesAParameter = 28;  // reads p, m, v, g and writes p, m, v
      add("optimizer", "byte/s", {{"distance", sizes_.optimizer}}, "",
          adamw(static_cast<int64_t>(bytes) / kBytesAParameter), CaseMeasure::bytes);
    }
  }

  // A clipped update with weight decay; the factors of a step are tensors, as in optim/.
  Program adamw(int64_t count) {
    CategoryScope scope(Category::optimizer);
    const Tensor p = zeros({count}), m = zeros({count}), v = ones({count});
    const Tensor factor = full({}, 1e-3);
    return {[p, m, v](std::span<const Tensor> x) -> Tensors {
              const Tensor& factor_of = x[1];
              const Tensor g = x[0] * factor_of;
              m.copy_from(m * 0.9 + g * 0.1);
              v.copy_from(v * 0.999 + square(g) * 0.001);
              const Tensor change = factor_of * m / (sqrt(v) * factor_of + 1e-8);
              p.copy_from(p - (change + p * factor_of));
              return {};
            },
            {values({count}), factor}};
  }

  void add_row(const std::string& family, const char* op, Program program) {
    add(family, "element/s", {{"elements", sizes_.elements}, {"row", sizes_.row}}, op,
        std::move(program));
  }

  void add_rows(int64_t elements, int64_t row) {
    const int64_t rows = elements / row;
    const Tensor x = values({rows, row}), gain = ones({row}), shift = zeros({row});
    const Tensor leaf = clone(x);
    leaf.require_grad();
    const auto forward = [&](const char* op, const std::function<Tensor(const Tensor&)>& f) {
      add_row(op, op, {[f](std::span<const Tensor> y) -> Tensors { return {f(y[0])}; }, {x}});
    };
    const auto backward = [&](const char* op, const std::function<Tensor(const Tensor&)>& f) {
      add_row(op, op,
              {[f, leaf](std::span<const Tensor> y) -> Tensors {
                 return {grad(f(leaf), std::vector<Tensor>{leaf}, {.seed = y[0]})[0]};
               },
               {x}});
    };
    const auto normed = [gain, shift](const Tensor& y) { return layer_norm(y, gain, shift); };
    forward("softmax", [](const Tensor& y) { return softmax(y, -1); });
    backward("softmax_backward", [](const Tensor& y) { return softmax(y, -1); });
    forward("log_softmax", [](const Tensor& y) { return log_softmax(y, -1); });
    backward("log_softmax_backward", [](const Tensor& y) { return log_softmax(y, -1); });
    forward("layer_norm", normed);
    backward("layer_norm_backward", normed);
    forward("rms_norm", [gain](const Tensor& y) { return rms_norm(y, gain); });
    backward("rms_norm_backward", [gain](const Tensor& y) { return rms_norm(y, gain); });
    add_row("dropout", "dropout",
            {[](std::span<const Tensor> y) -> Tensors { return {dropout(y[0], 0.1, y[1])}; },
             {x, key_tensor({.seed = 3})}});
    add_losses(rows, row, leaf);
    add_reductions(x);
    add_moves(rows, row, leaf);
    for (auto programs : {window_programs, routing_programs}) {
      for (RowProgram& each : programs(rows, row))
        add_row(each.family, each.op.c_str(), {std::move(each.function), std::move(each.inputs)});
    }
  }

  void add_losses(int64_t rows, int64_t row, const Tensor& leaf) {
    const Tensor targets = ids(rows, row);
    add_row("cross_entropy", "cross_entropy",
            {[](std::span<const Tensor> y) -> Tensors { return {cross_entropy(y[0], y[1])}; },
             {leaf.detach(), targets}});
    add_row("cross_entropy_backward", "cross_entropy_backward",
            {[leaf](std::span<const Tensor> y) -> Tensors {
               return {grad(cross_entropy(leaf, y[0]), std::vector<Tensor>{leaf})[0]};
             },
             {targets}});
  }

  void add_reductions(const Tensor& x) {
    struct Reduction {
      const char* op;
      Tensor (*call)(const Tensor&, const ReduceAxes&, KeepDims);
    };
    constexpr Reduction kReductions[] = {{"sum", sum}, {"mean", mean}, {"max", max}};
    for (const Reduction& reduction : kReductions) {
      for (int64_t axis : {1, 0}) {
        add_row(join_text(reduction.op, axis == 1 ? ".row" : ".column"), reduction.op,
                {[reduction, axis](std::span<const Tensor> y) -> Tensors {
                   return {reduction.call(y[0], {axis}, KeepDims::no)};
                 },
                 {x}});
      }
    }
  }

  void add_moves(int64_t rows, int64_t row, const Tensor& leaf) {
    const Tensor x = leaf.detach();
    const Tensor table = clone(values({sizes_.table_rows, row}));
    table.require_grad();
    const Tensor chosen = ids(rows, sizes_.table_rows);
    add_row("embedding", "embedding",
            {[table](std::span<const Tensor> y) -> Tensors { return {embedding(table, y[0])}; },
             {chosen}});
    add_row("embedding_grad", "embedding_grad",
            {[table](std::span<const Tensor> y) -> Tensors {
               return {grad(embedding(table, y[0]), std::vector<Tensor>{table}, {.seed = y[1]})[0]};
             },
             {chosen, x}});
    add_row("place_slice", "place_slice",
            {[leaf](std::span<const Tensor> y) -> Tensors {
               const Tensor part = slice(leaf, 1, {0, leaf.dim(1) / 2});
               return {grad(part, std::vector<Tensor>{leaf}, {.seed = y[0]})[0]};
             },
             {values({rows, row / 2})}});
    const Tensor state = clone(x);
    add_row("copy", "copy", {[state](std::span<const Tensor>) -> Tensors { return {state}; }, {}});
    add_row(
        "copy.strided", "copy",
        {[](std::span<const Tensor> y) -> Tensors { return {contiguous(transpose(y[0]))}; }, {x}});
  }

  Sizes sizes_;
  CalibrationList list_;
  std::map<std::string, size_t, std::less<>> counts_;
  std::vector<Tensor> made_;
};

}  // namespace

CalibrationList make_calibration_list(CalibrationSize size) { return ListBuilder(size).run(); }

}  // namespace brrr::cost
