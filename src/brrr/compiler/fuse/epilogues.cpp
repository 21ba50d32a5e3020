#include "brrr/compiler/fuse/epilogues.h"

#include <algorithm>
#include <optional>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/rewrite/matmul_graph.h"
#include "brrr/compiler/rewrite/replace_nodes.h"
#include "brrr/kernels/cpu/elementwise/activation_tiles.h"
#include "brrr/kernels/cpu/elementwise/binary_tiles.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/kernels/cuda/gemm/epilogue_cuda.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

class Matcher {
 public:
  Matcher(const Graph& graph, const Target& target, const EpilogueOptions& options)
      : graph_(graph),
        target_(target),
        options_(options),
        products_(graph),
        taken_(graph.nodes.size(), false) {}

  Graph take_gelus() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (kernels::computes(*graph_.nodes[n].op, kernels::Unary::gelu_tanh)) take_gelu(n);
      if (kernels::computes(*graph_.nodes[n].op, kernels::ActivationGrad::gelu_tanh))
        take_gelu_backward(n);
    }
    return replace_nodes(graph_, found_);
  }
  Graph take_sums() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) take_sum(n);
    return replace_nodes(graph_, found_);
  }
  Graph take_adds() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (kernels::computes(*graph_.nodes[n].op, kernels::Binary::add)) take_add(n);
    }
    return replace_nodes(graph_, found_);
  }

 private:
  const TensorType& type(ValueId id) const { return graph_.type(id); }
  static size_t index_of(const Product& product) { return product.node.index(); }
  std::optional<size_t> maker(ValueId id) const { return products_.maker(id); }

  // One that nothing was done to yet and that the library takes.
  std::optional<Product> product_at(std::optional<size_t> n) const {
    if (!n || taken_[*n]) return {};
    const std::optional<Product> product = products_.product_at(*n);
    return product && products_.is_library_product(*product) ? product : std::nullopt;
  }
  std::optional<Product> product_behind(ValueId id) const {
    const ValueId source = products_.sole_source(id);
    return source.valid() ? product_at(maker(source)) : std::nullopt;
  }

  // Settings that go along: tf32 says how factors are read.
  Attrs attrs_of(const Product& product) const {
    const Attrs& all = graph_.node(product.node).attrs;
    return all.has("tf32") ? Attrs{{"tf32", all.flag("tf32")}} : Attrs{};
  }

  // ---- What the library of the device has.
  bool has_kernel(const Replacement& made, kernels::MatmulEpilogue epilogue) const {
    std::vector<Layout> input_layouts, output_layouts;
    std::vector<DType> input_dtypes, output_dtypes;
    std::vector<TensorType> types;
    for (int i = 0; i < made.inputs.size(); ++i) {
      const ValueId id = made.inputs[i];
      const Layout layout = products_.layout_of(id);
      input_layouts.push_back(i == made.transposed ? transpose_layout(layout, 0, 1) : layout);
      input_dtypes.push_back(type(id).dtype);
      types.push_back({input_layouts.back().shape, type(id).dtype});
    }
    for (const TensorType& output : graph::infer_types(*made.op, made.attrs, types)) {
      output_layouts.push_back(contiguous_layout(output.shape));
      output_dtypes.push_back(output.dtype);
    }
    return kernels::has_epilogue_cuda({.op = *made.op,
                                       .epilogue = epilogue,
                                       .attrs = made.attrs,
                                       .input_layouts = input_layouts,
                                       .output_layouts = output_layouts,
                                       .input_dtypes = input_dtypes,
                                       .output_dtypes = output_dtypes},
                                      target_.chip, target_.index);
  }

  bool take(const Replacement& made, kernels::MatmulEpilogue epilogue) {
    if (!has_kernel(made, epilogue)) return false;
    for (ValueId id : made.results) taken_[graph_.value(id).node.index()] = true;
    taken_[made.place.index()] = true;
    found_.push_back(made);
    return true;
  }

  // ---- GELU.

  // Nobody promises the last bits of the library's tanh: f32 keeps its own unless tf32 gave them away.
  bool may_take_gelu(const Product& product) const {
    const Attrs& attrs = graph_.node(product.node).attrs;
    const Shape& shape = type(product.result).shape;
    if (numel(shape) < options_.fewest_gelus || shape.back() % options_.slow_gelu_columns == 0)
      return false;
    return type(product.a).dtype != DType::f32 || (attrs.has("tf32") && attrs.flag("tf32"));
  }

  void take_gelu(size_t n) {
    const Node& gelu = graph_.nodes[n];
    const std::optional<Product> product = product_at(maker(gelu.inputs[0]));
    if (!product || taken_[n] || !may_take_gelu(*product)) return;
    if (leaves_forward(graph_.node(product->node), gelu)) return;
    const TensorType& z = type(product->result);
    if (z.dtype != type(product->a).dtype) return;
    Replacement made{.at = index_of(*product),
                     .place = product->node,
                     .op = &matmul_gelu_op,
                     .attrs = attrs_of(*product),
                     .inputs = {product->a, product->b},
                     .results = {gelu.outputs[0]},
                     .transposed = product->transposed ? 1 : -1};
    if (product->bias.valid()) made.inputs.push_back(product->bias);
    const bool keep = !products_.is_single_use(product->result);
    made.attrs.add({"keep", keep});
    if (keep) made.results.push_back(product->result);
    take(made, kernels::MatmulEpilogue::gelu);
  }

  void take_gelu_backward(size_t n) {
    const Node& backward = graph_.nodes[n];
    const ValueId z = backward.inputs[0], dy = backward.inputs[1], dz = backward.outputs[0];
    const std::optional<Product> product = product_behind(dy);
    if (!product || product->bias.valid() || taken_[n] || !may_take_gelu(*product)) return;
    if (!products_.is_in_order(z)) return;
    if (leaves_forward(graph_.node(product->node), backward)) return;
    if (type(z).dtype != type(product->a).dtype || type(dz).dtype != type(z).dtype ||
        type(z).shape.empty() || type(z).shape.back() != type(product->result).shape.back())
      return;
    Replacement made{.at = n,
                     .place = NodeId(n),
                     .op = &matmul_gelu_backward_op,
                     .attrs = attrs_of(*product),
                     .inputs = {product->a, product->b, z},
                     .results = {dz},
                     .transposed = product->transposed ? 1 : -1};
    Replacement with_sums = made;
    made.attrs.add({"sums", false});
    with_sums.attrs.add({"sums", true});
    // Sums of another dtype come with the product that makes the gradient of the weight.
    const std::optional<size_t> sums = column_sums(dz, {{type(z).shape.back()}, type(z).dtype});
    if (sums) {
      with_sums.results.push_back(graph_.nodes[*sums].outputs[0]);
      if (take(with_sums, kernels::MatmulEpilogue::gelu_backward)) return;
    }
    take(made, kernels::MatmulEpilogue::gelu_backward);
  }

  // ---- Column sums.

  // A node that sums a value of rows, as it is or wider, over all axes but the last into this type.
  std::optional<size_t> column_sums(ValueId id, const TensorType& wanted) const {
    for (NodeId user : products_.uses(id)) {
      const Node& node = graph_.node(user);
      if (taken_[user.index()]) continue;
      if (node.op->fold == Fold::sum && is_column_sum(node) && type(node.outputs[0]) == wanted)
        return user.index();
      const bool is_reshape =
          node.op->view && behind_reshapes(graph_, node.outputs[0]) != node.outputs[0];
      if (!is_reshape && !is_widening(node)) continue;
      if (const std::optional<size_t> found = column_sums(node.outputs[0], wanted)) return found;
    }
    return {};
  }

  bool is_column_sum(const Node& node) const {
    const Shape& shape = type(node.inputs[0]).shape;
    const Axes& axes = node.attrs.list("axes");
    if (shape.size() < 2 || node.attrs.flag("keep_dims") || axes.size() != shape.size() - 1)
      return false;
    return std::none_of(axes.begin(), axes.end(),
                        [&](int64_t axis) { return axis == shape.size() - 1 || axis == -1; });
  }

  bool is_widening(const Node& node) const {
    if (node.op->role != OpRole::cast) return false;
    const DType narrow = type(node.inputs[0]).dtype, wide = type(node.outputs[0]).dtype;
    return is_float(narrow) && is_float(wide) && promote(narrow, wide) == wide;
  }

  // The product at n is dY^T X, and dY lies in order.
  void take_sum(size_t n) {
    const std::optional<Product> product = product_at(n);
    if (!product || product->transposed || product->bias.valid()) return;
    const Shape& a = type(product->a).shape;
    if (storage_bytes(type(product->a).dtype, numel(a)) > options_.most_summed_bytes) return;
    const ValueId dy = products_.source_of(product->a);
    if (a.size() != 2 ||
        products_.layout_of(product->a) !=
            transpose_layout(contiguous_layout({a[1], a[0]}), 0, 1) ||
        numel(type(dy).shape) != numel(a))
      return;
    const DType dtype = type(product->result).dtype;
    if (dtype != type(product->a).dtype && dtype != DType::f32) return;
    const std::optional<size_t> sums = column_sums(dy, {{a[0]}, dtype});
    if (!sums || leaves_forward(graph_.nodes[n], graph_.nodes[*sums])) return;
    const ValueId result = graph_.nodes[*sums].outputs[0];
    const std::vector<NodeId>& readers = products_.uses(result);
    const auto is_before = [&](NodeId user) { return user.index() < n; };
    if (std::any_of(readers.begin(), readers.end(), is_before)) return;
    Replacement made{.at = n,
                     .place = NodeId(n),
                     .op = &matmul_sums_op,
                     .attrs = attrs_of(*product),
                     .inputs = {product->a, product->b},
                     .results = {product->result, result}};
    made.attrs.add({"dtype", dtype});
    take(made, kernels::MatmulEpilogue::column_sums);
  }

  // ---- Additions.

  // The very op that take_sum puts into graphs: an addition fills the operand of it that was left open there.
  static bool is_made_here(const Node& node) { return node.op == &matmul_sums_op; }

  void take_add(size_t n) {
    const Node& add = graph_.nodes[n];
    for (int i = 0; i < 2; ++i) {
      if (take_add_of(n, add.inputs[i], add.inputs[1 - i]) ||
          take_norm_add_of(n, add.inputs[i], add.inputs[1 - i]))
        return;
    }
  }

  // The gradient that goes around a norm, added by the kernel of the norm's gradient.
  bool take_norm_add_of(size_t n, ValueId added, ValueId addend) {
    const ValueId total = graph_.nodes[n].outputs[0], dx = products_.sole_source(added);
    const std::optional<size_t> norm = dx.valid() ? maker(dx) : std::nullopt;
    if (!norm || taken_[*norm] || graph_.value(dx).output != 0) return false;
    const Node& node = graph_.nodes[*norm];
    const bool has_place = node.op->addend >= 0 && node.inputs.size() == node.op->addend;
    if (!has_place || !products_.is_in_order(addend)) return false;
    if (type(dx) != type(total) || type(addend) != type(total)) return false;
    const std::optional<size_t> own = maker(addend);  // which may be a view of something older
    if ((own && *own > *norm) || leaves_forward(node, graph_.nodes[n])) return false;
    Replacement made{.at = *norm,
                     .place = NodeId(*norm),
                     .op = node.op,
                     .attrs = node.attrs,
                     .inputs = node.inputs,
                     .results = node.outputs};
    made.inputs.push_back(addend);
    made.results[0] = total;
    taken_[*norm] = taken_[n] = true;
    found_.push_back(made);
    return true;
  }

  bool take_add_of(size_t n, ValueId added, ValueId addend) {
    const ValueId total = graph_.nodes[n].outputs[0];
    const std::optional<Product> product = added_product(added);
    if (!product || !products_.is_in_order(addend)) return false;
    if (type(addend) != type(total) || type(added).shape != type(total).shape ||
        type(total).shape.empty() || type(total).shape.back() != type(product->result).shape.back())
      return false;
    const DType dtype = type(total).dtype;
    // Made later, the addend, or the view that it is, would hold up the product, and everything that it reads.
    const std::optional<size_t> own = maker(addend), source = maker(products_.source_of(addend));
    const bool is_late =
        (own && *own > index_of(*product)) || (source && *source > index_of(*product));
    if ((dtype != type(product->a).dtype && dtype != DType::f32) || is_late ||
        leaves_forward(graph_.node(product->node), graph_.nodes[n]))
      return false;
    const Node& node = graph_.node(product->node);
    const bool has_sums = is_made_here(node);
    Replacement made{.at = index_of(*product),
                     .place = product->node,
                     .op = has_sums ? &matmul_sums_op : &matmul_add_op,
                     .attrs = has_sums ? node.attrs : attrs_of(*product),
                     .inputs = {product->a, product->b, addend},
                     .results = {total},
                     .transposed = product->transposed ? 1 : -1};
    if (product->bias.valid()) made.inputs.push_back(product->bias);
    if (has_sums) made.results.push_back(node.outputs[1]);
    if (has_sums && type(node.outputs[0]) != type(total)) return false;
    return take(made,
                has_sums ? kernels::MatmulEpilogue::column_sums : kernels::MatmulEpilogue::add);
  }

  // Through a widening cast too: a sum in f32 takes the product before it is rounded.
  std::optional<Product> added_product(ValueId id) const {
    ValueId source = products_.sole_source(id);
    if (!source.valid()) return {};
    const std::optional<size_t> last = maker(source);
    if (last && is_widening(graph_.nodes[*last]))
      source = products_.sole_source(graph_.nodes[*last].inputs[0]);
    if (!source.valid()) return {};
    const std::optional<size_t> n = maker(source);
    const bool has_sums = n && !taken_[*n] && is_made_here(graph_.nodes[*n]);
    if (!has_sums) return product_at(n);
    const Node& node = graph_.nodes[*n];
    if (node.inputs.size() != 2 || graph_.value(source).output != 0) return {};
    return Product{
        .node = NodeId(*n), .a = node.inputs[0], .b = node.inputs[1], .bias = {}, .result = source};
  }

  const Graph& graph_;
  const Target& target_;
  const EpilogueOptions options_;
  const ProductGraph products_;
  std::vector<bool> taken_;  // by node: part of a replacement
  std::vector<Replacement> found_;
};

}  // namespace

Graph take_gelu_epilogues(const Graph& graph, const Target& target,
                          const EpilogueOptions& options) {
  return Matcher(graph, target, options).take_gelus();
}
Graph take_sum_epilogues(const Graph& graph, const Target& target, const EpilogueOptions& options) {
  return Matcher(graph, target, options).take_sums();
}
Graph take_add_epilogues(const Graph& graph, const Target& target, const EpilogueOptions& options) {
  return Matcher(graph, target, options).take_adds();
}

}  // namespace brrr::compiler
