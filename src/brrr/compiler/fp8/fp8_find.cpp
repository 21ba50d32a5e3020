#include "brrr/compiler/fp8/fp8_find.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "brrr/kernels/calls/tensor_cores.h"
#include "brrr/kernels/cpu/elementwise/binary_tiles.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/kernels/cuda/gemm/matmul_operands.h"
#include "brrr/ops/matmul/fp8.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), products_(graph) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) find_quantized(n);
    for (size_t n = 0; n < graph.nodes.size(); ++n) find_product(n);
    std::erase_if(quantized_, [](const auto& entry) { return !entry.second.is_factor; });
    for (auto& [id, each] : quantized_) each.plain = is_read_plain(id);
  }

  Fp8Products take() { return {std::move(quantized_), std::move(at_node_)}; }

 private:
  const TensorType& type(ValueId id) const { return graph_.type(id); }
  using OpTest = bool (*)(const OpDef& op);
  static bool is_cast(const OpDef& op) { return op.role == OpRole::cast; }
  static bool is_copy(const OpDef& op) { return op.role == OpRole::copy; }
  static bool is_max(const OpDef& op) { return op.fold == Fold::max; }
  static bool is_mul(const OpDef& op) { return kernels::computes(op, kernels::Binary::mul); }
  static bool is_add(const OpDef& op) { return kernels::computes(op, kernels::Binary::add); }
  // What makes `id`, where it is a node of such an op.
  const Node* maker(ValueId id, OpTest is_wanted) const {
    const NodeId node = graph_.value(id).node;
    return node.valid() && is_wanted(*graph_.node(node).op) ? &graph_.node(node) : nullptr;
  }
  // The only reader of `id`, where it is a node of such an op.
  const Node* only_reader(ValueId id, OpTest is_wanted) const {
    if (!products_.is_single_use(id)) return nullptr;
    const Node& node = graph_.node(products_.uses(id)[0]);
    return is_wanted(*node.op) ? &node : nullptr;
  }
  size_t index_of(const Node& node) const { return graph_.value(node.outputs[0]).node.index(); }
  bool is_number(ValueId id) const {
    return type(id).shape.empty() && type(id).dtype == DType::f32;
  }
  // The other operand of a node of two.
  static ValueId other(const Node& node, ValueId id) {
    return node.inputs[node.inputs[0] == id ? 1 : 0];
  }

  void find_quantized(size_t n) {
    const Node& node = graph_.nodes[n];
    if (!is_cast(*node.op) || !kernels::is_f8(type(node.outputs[0]).dtype)) return;
    const Node* const scaled = maker(node.inputs[0], is_mul);
    if (!scaled || !is_number(scaled->inputs[1])) return;
    ValueId x = scaled->inputs[0];
    if (const Node* const widened = maker(x, is_cast)) x = widened->inputs[0];
    if (!quantize_op.dtypes.contains(type(x).dtype) || type(x).shape.empty() ||
        numel(type(x).shape) == 0)
      return;
    QuantizedFactor& made = quantized_[node.outputs[0]];
    made = {
        .at = n, .x = before_copy(x), .scale = scaled->inputs[1], .columns = type(x).shape.back()};
    find_amax(x, made);
  }

  // What a copy into order reads, where it is as quickly read from there: in whole chunks.
  ValueId before_copy(ValueId x) const {
    const Node* const copied = maker(x, is_copy);
    if (!copied) return x;
    constexpr int64_t kChunk = 16;
    const Layout layout = products_.layout_of(copied->inputs[0]);
    const bool has_chunks = layout.strides.back() == 1 && layout.shape.back() % kChunk == 0 &&
                            layout.offset % kChunk == 0 &&
                            std::all_of(layout.strides.begin(), layout.strides.end() - 1,
                                        [](int64_t stride) { return stride % kChunk == 0; });
    return has_chunks ? copied->inputs[0] : x;
  }

  // max |x|, in f32 where that is what it is read in. Where somebody reads it before x is quantised, that is done when
  // it is taken, if the scale is there by then.
  void find_amax(ValueId x, QuantizedFactor& made) {
    for (const NodeId use : products_.uses(x)) {
      const Node& magnitudes = graph_.node(use);
      if (!kernels::computes(*magnitudes.op, kernels::Unary::abs)) continue;
      const Node* last = only_reader(magnitudes.outputs[0], is_max);
      if (!last || !type(last->outputs[0]).shape.empty()) continue;
      const Node* const wide = only_reader(last->outputs[0], is_cast);
      if (wide && type(wide->outputs[0]).dtype == DType::f32) last = wide;
      const ValueId amax = last->outputs[0];
      const std::vector<NodeId>& readers = products_.uses(amax);
      const bool is_early = std::any_of(readers.begin(), readers.end(),
                                        [&](NodeId reader) { return reader.index() < made.at; });
      const NodeId scale = graph_.value(made.scale).node;
      if (is_early && scale.valid() && scale.index() > index_of(*last)) continue;
      if (!taken_.insert(amax).second) continue;
      made.amax = amax;
      if (is_early) made.at = index_of(*last);
      return;
    }
  }

  void find_product(size_t n) {
    const std::optional<Product> product = products_.product_at(n);
    if (!product || product->bias.valid() || type(product->result).dtype != DType::f32) return;
    const ValueId a = products_.source_of(product->a), b = products_.source_of(product->b);
    if (!quantized_.count(a) || !quantized_.count(b)) return;
    set_columns(product->a, quantized_[a]);
    set_columns(product->b, quantized_[b]);
    // As they lie where that does, so that nothing is turned in vain.
    for (const bool turned_a : {false, true}) {
      for (const bool turned_b : {false, true}) {
        if (!is_along_k(*product, turned_a, turned_b)) continue;
        quantized_[a].is_factor = quantized_[b].is_factor = true;
        quantized_[a].turned |= turned_a;
        quantized_[b].turned |= turned_b;
        if (turned_a) read_turned_.insert({n, 0});
        if (turned_b) read_turned_.insert({n, 1});
        return add(n, {.product = *product, .turned_a = turned_a, .turned_b = turned_b});
      }
    }
  }

  bool is_along_k(const Product& product, bool turned_a, bool turned_b) const {
    std::optional<Layout> a = layout_of(product.a, turned_a), b = layout_of(product.b, turned_b);
    if (!a || !b) return false;
    if (product.transposed) b = transpose_layout(*b, 0, 1);
    if (a->rank() > 2) {
      if (!a->is_contiguous()) return false;
      const int64_t k = a->shape.back();
      a = Layout{{numel(a->shape) / std::max<int64_t>(k, 1), k}, {k, 1}, a->offset};
    }
    const DType a_dtype = type(product.a).dtype, b_dtype = type(product.b).dtype;
    return kernels::f8_refusal(
               {.a = *a, .b = *b, .a_dtype = a_dtype, .b_dtype = b_dtype, .c_dtype = DType::f32})
               .empty() &&
           kernels::is_aligned(*a, a_dtype) && kernels::is_aligned(*b, b_dtype);
  }

  // Matrices are what reshapes make of a value: [64, 1024, 12, 64] may be read as [65536, 768]. One that is transposed
  // already keeps its columns.
  void set_columns(ValueId factor, QuantizedFactor& source) const {
    if (source.turned) return;
    ValueId shown = factor;  // behind the last view that is no reshape
    for (ValueId id = factor;;) {
      const Node& node = graph_.node(graph_.value(id).node);
      if (!node.op->view) break;
      id = node.inputs[0];
      if (node.op->role != OpRole::reshape) shown = id;
    }
    const int64_t columns = type(shown).shape.back();
    if (columns > 0 && numel(type(source.x).shape) % columns == 0) source.columns = columns;
  }

  // How a view of a quantised value lies when that lies as it is, or transposed; none: it cannot be seen so.
  std::optional<Layout> layout_of(ValueId id, bool turned) const {
    const NodeId node = graph_.value(id).node;
    const Node& view = graph_.node(node);
    if (!view.op->view) {
      const Shape& shape = type(id).shape;
      if (!turned) return contiguous_layout(shape);
      const int64_t columns = quantized_.at(id).columns, rows = numel(shape) / columns;
      return try_view_layout({{rows, columns}, {1, rows}, 0}, shape);
    }
    const std::optional<Layout> shown = layout_of(view.inputs[0], turned);
    if (!shown) return {};
    if (view.op->role == OpRole::reshape) return try_view_layout(*shown, type(id).shape);
    return view.op->view(*shown, view.attrs);
  }

  // The product with what follows it: scales, a bias, and a cast.
  void add(size_t n, ScaledProduct made) {
    made.result = made.product.result;
    size_t last = n;
    const Node* const scaled = only_reader(made.result, is_mul);
    const Node* const scales = scaled ? maker(other(*scaled, made.result), is_mul) : nullptr;
    if (scales && is_number(scales->inputs[0]) && is_number(scales->inputs[1])) {
      made.scales = scales->inputs;
      made.result = scaled->outputs[0];
      last = index_of(*scaled);
      add_bias(made, last);
      const Node* const rounded = only_reader(made.result, is_cast);
      if (rounded && quantize_op.dtypes.contains(type(rounded->outputs[0]).dtype)) {
        made.result = rounded->outputs[0];
        last = index_of(*rounded);
      }
    }
    at_node_[last] = made;
  }

  void add_bias(ScaledProduct& made, size_t& last) const {
    const Node* const sum = only_reader(made.result, is_add);
    if (!sum) return;
    const ValueId bias = other(*sum, made.result);
    const Shape& shape = type(made.result).shape;
    if (type(bias).shape != Shape{shape.back()} || type(sum->outputs[0]) != type(made.result))
      return;
    made.bias = bias;
    made.result = sum->outputs[0];
    last = index_of(*sum);
  }

  // Whether anybody but products that read the transpose reads `id`, through views or not.
  bool is_read_plain(ValueId id) const {
    const auto is_kept = [&](ValueId other) { return other == id; };
    if (std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is_kept)) return true;
    for (const NodeId use : products_.uses(id)) {
      const Node& node = graph_.node(use);
      if (node.op->view) {
        if (is_read_plain(node.outputs[0])) return true;
        continue;
      }
      for (int i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == id && !read_turned_.count({use.index(), i})) return true;
      }
    }
    return false;
  }

  const Graph& graph_;
  const ProductGraph products_;
  std::map<ValueId, QuantizedFactor> quantized_;
  std::map<size_t, ScaledProduct> at_node_;
  std::set<ValueId> taken_;                       // largest magnitudes
  std::set<std::pair<size_t, int>> read_turned_;  // node and operand
};

}  // namespace

Fp8Products find_fp8_products(const Graph& graph) { return Finder(graph).take(); }

}  // namespace brrr::compiler
