#include "brrr/cost/calibrate_cuda_cases.h"

#include <algorithm>
#include <cmath>

#include "brrr/cost/standalone_kernel.h"
#include "brrr/ops/op_list.h"

namespace brrr::cost {
namespace {

using Points = std::vector<double>;
using Where = std::span<const double>;

int64_t size_at(Where where, size_t axis) {
  return static_cast<int64_t>(std::llround(where[axis]));
}

Layout transposed(int64_t rows, int64_t columns) { return {{rows, columns}, {1, rows}, 0}; }

// How the factors of a product are stored and multiplied.
struct FactorKind {
  const char* ending;  // of the family
  DType dtype;
  bool tf32 = false;
};
constexpr FactorKind kBf16{".bf16", DType::bf16};
constexpr FactorKind kOtherKinds[] = {
    {"", DType::f32}, {".tf32", DType::f32, true}, {".f16", DType::f16}, {".fp8", DType::f8e4m3}};
constexpr int64_t kFewestClasses = 4096;  // of the shortest rows of losses: every id names one
constexpr FactorKind kRowKinds[] = {{"", DType::f32}, {".bf16", DType::bf16}};

class FamilyList {
 public:
  explicit FamilyList(int64_t most_tokens) {
    for (double tokens : {1024.0, 8192.0, 65536.0}) {
      if (tokens <= static_cast<double>(most_tokens)) tokens_.push_back(tokens);
    }
    check(!tokens_.empty(), "calibrate: ", most_tokens, " rows are too few; use 1024 or more");
  }

  std::vector<CudaFamily> run() {
    add_products(kBf16, tokens_, {768, 1600, 3072, 6400});
    for (const FactorKind& kind : kOtherKinds) add_products(kind, {8192}, {1024, 4096});
    add_epilogues();
    for (const FactorKind& kind : {kBf16, FactorKind{".f16", DType::f16}})
      add_attention(kind, {256, 1024, 4096}, {64, 128});
    add_attention({"", DType::f32}, {1024}, {64});
    for (const FactorKind& kind : kRowKinds) {
      add_norms(kind, {1 << 20, 1 << 23, 1 << 26}, {256, 1024, 4096});
      add_losses(kind, {1 << 20, 1 << 23, 1 << 26}, {double{kFewestClasses}, 32768, 131072});
      add_embeddings(kind, {1 << 20, 1 << 23, 1 << 26}, {256, 1024, 4096});
    }
    return std::move(families_);
  }

  // About two seconds on an H200: 20 ms a case, 50 where choosing an algorithm heats the GPU, 100 for attention.
  std::vector<CudaFamily> run_quick() {
    const FactorKind f32{"", DType::f32};
    add_products(f32, {8192}, {1024});
    add_products(kBf16, {8192}, {256, 1024, 4096});
    for (const FactorKind& kind : {kBf16, f32}) {
      add_attention(kind, {1024}, {64});
      add_norms(kind, {1 << 23}, {1024});
      add_losses(kind, {1 << 23}, {32768});
      add_embeddings(kind, {1 << 23}, {1024});
    }
    return std::move(families_);
  }

 private:
  void add(std::string name, std::string unit, std::vector<hardware::RateAxis> axes,
           std::function<compiler::Kernel(Where)> make, int64_t ids_below = 1) {
    families_.push_back({.name = std::move(name),
                         .grid = {.unit = std::move(unit), .axes = std::move(axes), .values = {}},
                         .make = std::move(make),
                         .ids_below = ids_below});
  }

  static Points within(Points points, double most) {
    std::erase_if(points, [&](double point) { return point > most; });
    return points;
  }

  // nt is forward, nn the gradient of the input, tn that of the weight, which sums over tokens into f32.
  void add_products(const FactorKind& kind, const Points& tokens, const Points& widths) {
    const auto add_layout = [&](const char* layout, std::vector<hardware::RateAxis> axes) {
      const bool a_transposed = layout[0] == 't', b_transposed = layout[1] == 't';
      add(join_text("matmul.", layout, kind.ending), "flop/s", std::move(axes), [=](Where where) {
        const int64_t m = size_at(where, 0), n = size_at(where, 1), k = size_at(where, 2);
        const compiler::OperandRef a = a_transposed ? operand(kind.dtype, transposed(m, k))
                                                    : operand(kind.dtype, Shape{m, k}),
                                   b = b_transposed ? operand(kind.dtype, transposed(k, n))
                                                    : operand(kind.dtype, Shape{k, n});
        Attrs attrs;
        if (a_transposed || kind.dtype == DType::f8e4m3) attrs.add({"dtype", DType::f32});
        if (kind.tf32) attrs.add({"tf32", true});
        return make_kernel(matmul_op, {a, b}, attrs);
      });
    };
    for (const char* layout : {"nn", "nt"})
      add_layout(layout, {{"m", tokens}, {"n", widths}, {"k", widths}});
    add_layout("tn", {{"m", widths}, {"n", widths}, {"k", long_sums(tokens)}});
  }

  static Points long_sums(const Points& tokens) {
    return tokens.size() > 1 ? Points(tokens.begin() + 1, tokens.end()) : tokens;
  }

  void add_epilogues() {
    const Points tokens = long_sums(tokens_), narrow{768, 1600}, wide{3072, 6400},
                 all{768, 1600, 3072, 6400};
    const auto factors = [](Where where, bool b_transposed) -> std::vector<compiler::OperandRef> {
      const int64_t m = size_at(where, 0), n = size_at(where, 1), k = size_at(where, 2);
      return {operand(DType::bf16, Shape{m, k}), b_transposed
                                                     ? operand(DType::bf16, transposed(k, n))
                                                     : operand(DType::bf16, Shape{k, n})};
    };
    const auto rows = [](Where where) {
      return operand(DType::bf16, Shape{size_at(where, 0), size_at(where, 1)});
    };
    const auto bias = [](Where where) { return operand(DType::bf16, Shape{size_at(where, 1)}); };
    add("matmul_add.bf16", "flop/s", {{"m", tokens}, {"n", narrow}, {"k", all}}, [=](Where where) {
      std::vector<compiler::OperandRef> inputs = factors(where, true);
      inputs.push_back(rows(where));
      inputs.push_back(bias(where));
      return make_kernel(matmul_add_op, std::move(inputs));
    });
    add("matmul_gelu.bf16", "flop/s", {{"m", tokens}, {"n", wide}, {"k", narrow}},
        [=](Where where) {
          std::vector<compiler::OperandRef> inputs = factors(where, true);
          inputs.push_back(bias(where));
          return make_kernel(matmul_gelu_op, std::move(inputs), {{"keep", true}});
        });
    add("matmul_gelu_backward.bf16", "flop/s", {{"m", tokens}, {"n", wide}, {"k", narrow}},
        [=](Where where) {
          std::vector<compiler::OperandRef> inputs = factors(where, false);
          inputs.push_back(rows(where));
          return make_kernel(matmul_gelu_backward_op, std::move(inputs), {{"sums", false}});
        });
    add("matmul_sums.bf16", "flop/s", {{"m", all}, {"n", all}, {"k", tokens}}, [](Where where) {
      const int64_t m = size_at(where, 0), n = size_at(where, 1), k = size_at(where, 2);
      return make_kernel(
          matmul_sums_op,
          {operand(DType::bf16, transposed(m, k)), operand(DType::bf16, Shape{k, n})},
          {{"dtype", DType::f32}});
    });
  }

  // Causal, 12 heads, as many sequences as make the most tokens. Queries, keys and values are parts of one
  // projection, as in models.
  void add_attention(const FactorKind& kind, const Points& keys, const Points& sizes) {
    const std::vector<hardware::RateAxis> axes{{"keys", within(keys, tokens_.back())},
                                               {"head_dim", sizes}};
    const double tokens = tokens_.back();
    add(join_text("attention", kind.ending), "flop/s", axes, [=](Where where) {
      const compiler::OperandRef part = head_part(kind.dtype, tokens, where);
      return make_kernel(attention_op, {part, part, part}, causal(where));
    });
    add(join_text("attention_backward", kind.ending), "flop/s", axes, [=](Where where) {
      const compiler::OperandRef part = head_part(kind.dtype, tokens, where);
      const Shape heads = part.layout.shape, rows{heads[0], heads[1], heads[2]};
      const compiler::OperandRef statistic = operand(DType::f32, rows),
                                 out = operand(kind.dtype, heads);
      return make_kernel(attention_backward_op, {part, part, part, out, statistic, out, statistic},
                         causal(where));
    });
  }
  static compiler::OperandRef head_part(DType dtype, double tokens, Where where) {
    constexpr int64_t kHeads = 12;
    const int64_t keys = size_at(where, 0), size = size_at(where, 1), row = 3 * kHeads * size;
    const int64_t batch = std::max<int64_t>(1, static_cast<int64_t>(tokens) / keys);
    return operand(dtype, Layout{{batch, kHeads, keys, size}, {keys * row, size, row, 1}, 0});
  }
  static Attrs causal(Where where) {
    return {{"scale", 1 / std::sqrt(where[1])},
            {"causal", true},
            {"window", int64_t{0}},
            {"soft_cap", 0.0}};
  }

  std::vector<hardware::RateAxis> row_axes(const Points& elements, const Points& row) const {
    const double most = tokens_.back() * 1024;
    return {{"elements", within(elements, most)}, {"row", row}};
  }
  static Shape rows_of(Where where) {
    return {std::max<int64_t>(1, size_at(where, 0) / size_at(where, 1)), size_at(where, 1)};
  }

  void add_norms(const FactorKind& kind, const Points& elements, const Points& row) {
    const std::vector<hardware::RateAxis> axes = row_axes(elements, row);
    const auto add_norm = [&](const OpDef& op, int weights, int statistics) {
      add(join_text(op.name, kind.ending), "element/s", axes, [=, &op](Where where) {
        const Shape shape = rows_of(where);
        std::vector<compiler::OperandRef> inputs{operand(kind.dtype, shape)};
        for (int i = 0; i < weights; ++i) inputs.push_back(operand(DType::f32, Shape{shape[1]}));
        for (int i = 0; i < statistics; ++i) inputs.push_back(operand(DType::f32, Shape{shape[0]}));
        if (statistics > 0) {  // the gradient that arrives
          inputs.push_back(operand(kind.dtype, shape));
          return make_kernel(op, std::move(inputs));
        }
        return make_kernel(op, std::move(inputs), {{"eps", 1e-5}});
      });
    };
    add_norm(layer_norm_op, 2, 0);
    add_norm(rms_norm_op, 1, 0);
    add_norm(layer_norm_backward_op, 1, 2);
    add_norm(rms_norm_backward_op, 1, 1);
  }

  void add_losses(const FactorKind& kind, const Points& elements, const Points& row) {
    const std::vector<hardware::RateAxis> axes = row_axes(elements, row);
    add(
        join_text("cross_entropy", kind.ending), "element/s", axes,
        [=](Where where) {
          const Shape shape = rows_of(where);
          return make_kernel(cross_entropy_op,
                             {operand(kind.dtype, shape), operand(DType::i64, Shape{shape[0]})});
        },
        kFewestClasses);
    add(
        join_text("cross_entropy_backward", kind.ending), "element/s", axes,
        [=](Where where) {
          const Shape shape = rows_of(where);
          const compiler::OperandRef per_row = operand(DType::f32, Shape{shape[0]});
          return make_kernel(
              cross_entropy_backward_op,
              {operand(kind.dtype, shape), operand(DType::i64, Shape{shape[0]}), per_row, per_row});
        },
        kFewestClasses);
  }

  void add_embeddings(const FactorKind& kind, const Points& elements, const Points& row) {
    constexpr int64_t kRows = 32768;
    const std::vector<hardware::RateAxis> axes = row_axes(elements, row);
    add(
        join_text("embedding", kind.ending), "element/s", axes,
        [=](Where where) {
          const Shape shape = rows_of(where);
          return make_kernel(embedding_op, {operand(kind.dtype, Shape{kRows, shape[1]}),
                                            operand(DType::i64, Shape{shape[0]})});
        },
        kRows);
    add(
        join_text("embedding_grad", kind.ending), "element/s", axes,
        [=](Where where) {
          const Shape shape = rows_of(where);
          return make_kernel(embedding_grad_op,
                             {operand(kind.dtype, shape), operand(DType::i64, Shape{shape[0]})},
                             {{"rows", kRows}});
        },
        kRows);
  }

  Points tokens_;
  std::vector<CudaFamily> families_;
};

}  // namespace

std::vector<double> CudaFamily::point(size_t index) const {
  std::vector<double> where(grid.axes.size());
  for (size_t a = grid.axes.size(); a-- > 0;) {
    const std::vector<double>& points = grid.axes[a].points;
    where[a] = points[index % points.size()];
    index /= points.size();
  }
  return where;
}

std::vector<CudaFamily> cuda_families(int64_t most_tokens) { return FamilyList(most_tokens).run(); }
std::vector<CudaFamily> quick_cuda_families() {
  constexpr int64_t kMostTokens = 8192;
  return FamilyList(kMostTokens).run_quick();
}

}  // namespace brrr::cost
