#include "brrr/compiler/fp8/fp8_matmuls.h"

#include "brrr/compiler/fp8/fp8_find.h"
#include "brrr/compiler/rewrite/replace_nodes.h"
#include "brrr/ops/matmul/fp8.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

class Writer {
 public:
  explicit Writer(const Graph& graph) : from_(graph), found_(find_fp8_products(graph)) {}

  Graph run() {
    if (found_.at_node.empty()) return from_;
    std::vector<Replacement> made;
    for (const auto& [id, factor] : found_.quantized) made.push_back(quantize(id, factor));
    for (const auto& [node, product] : found_.at_node) made.push_back(multiply(node, product));
    return replace_nodes(from_, made);
  }

 private:
  static ValueId transposed(const AddNode& add, ValueId id) {
    return add(transpose_op, {id}, {{"a", int64_t{0}}, {"b", int64_t{1}}})[0];
  }

  Replacement quantize(ValueId q, const QuantizedFactor& factor) {
    Replacement made{.at = factor.at,
                     .place = from_.value(q).node,
                     .inputs = {factor.x, factor.scale},
                     .write = [this, q, &factor](const AddNode& add, const ValueIds& inputs) {
                       return add_quantize(add, q, factor, inputs);
                     }};
    if (factor.plain) made.results.push_back(q);
    if (factor.amax.valid()) made.results.push_back(factor.amax);
    return made;
  }

  ValueIds add_quantize(const AddNode& add, ValueId q, const QuantizedFactor& factor,
                        const ValueIds& inputs) {
    const ValueIds given = add(quantize_op, inputs,
                               {{"dtype", from_.type(q).dtype},
                                {"columns", factor.columns},
                                {"plain", factor.plain},
                                {"turned", factor.turned},
                                {"amax", factor.amax.valid()}});
    ValueIds results;
    int next = 0;
    if (factor.plain) results.push_back(given[next++]);
    if (factor.turned) {  // seen in the shape of q
      const Shape& shape = from_.type(q).shape;
      const ValueId rows = transposed(add, given[next++]);
      const Shape seen{numel(shape) / factor.columns, factor.columns};
      turned_[q] = shape == seen ? rows : add(view_op, {rows}, {{"shape", shape}})[0];
    }
    if (!factor.amax.valid()) return results;
    const DType dtype = from_.type(factor.amax).dtype;  // of x, which holds it exactly, or f32
    results.push_back(dtype == DType::f32 ? given[next]
                                          : add(cast_op, {given[next]}, {{"dtype", dtype}})[0]);
    return results;
  }

  // A view of a quantised value over its transpose.
  ValueId turned(const AddNode& add, ValueId id) {
    const auto known = turned_.find(id);
    if (known != turned_.end()) return known->second;
    const Node& view = from_.node(from_.value(id).node);
    const ValueId shown = turned(add, view.inputs[0]);
    return turned_[id] = add(*view.op, {shown}, view.attrs)[0];
  }

  // Factors that lie as they are wanted are inputs; the others are views of what quantize gives besides.
  Replacement multiply(size_t at, const ScaledProduct& product) {
    Replacement made{.at = at,
                     .place = product.product.node,
                     .results = {product.result},
                     .write = [this, &product](const AddNode& add, const ValueIds& inputs) {
                       return ValueIds{add_product(add, product, inputs)};
                     }};
    if (!product.turned_a) made.inputs.push_back(product.product.a);
    if (!product.turned_b) made.inputs.push_back(product.product.b);
    for (ValueId id : product.scales) made.inputs.push_back(id);
    if (product.bias.valid()) made.inputs.push_back(product.bias);
    return made;
  }

  ValueId add_product(const AddNode& add, const ScaledProduct& made, const ValueIds& inputs) {
    const Product& product = made.product;
    int next = 0;
    const ValueId a = made.turned_a ? turned(add, product.a) : inputs[next++];
    ValueId b = made.turned_b ? turned(add, product.b) : inputs[next++];
    if (made.scales.empty()) {
      const Node& node = from_.node(product.node);
      return add(*node.op, {a, b}, node.attrs)[0];
    }
    if (product.transposed) b = transposed(add, b);
    ValueIds operands{a, b};
    while (next < inputs.size()) operands.push_back(inputs[next++]);
    return add(matmul_scaled_op, operands, {{"dtype", from_.type(made.result).dtype}})[0];
  }

  const Graph& from_;
  const Fp8Products found_;
  std::map<ValueId, ValueId> turned_;  // by old value
};

}  // namespace

Graph take_fp8_products(const Graph& graph) { return Writer(graph).run(); }

}  // namespace brrr::compiler
