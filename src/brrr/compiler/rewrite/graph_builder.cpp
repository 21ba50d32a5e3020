#include "brrr/compiler/rewrite/graph_builder.h"

#include "brrr/ops/op_list.h"

namespace brrr::compiler {

ValueIds GraphBuilder::add_all(const OpDef& op, const ValueIds& inputs, const Attrs& attrs) {
  invariant(op.cpu || op.view, op.name, " has no kernel; a graph holds the ops that it is made of");
  std::vector<TensorType> types;
  for (ValueId id : inputs) types.push_back(graph.type(id));
  const TensorTypes results = graph::infer_types(op, attrs, types);
  const NodeId node =
      graph.add_node(op, attrs, inputs, {results.begin(), results.end()}, phase_, scope_);
  graph.nodes.back().segment = segment_;
  return graph.node(node).outputs;
}

ValueId GraphBuilder::cast(ValueId x, DType dtype) {
  return graph.type(x).dtype == dtype ? x : add(cast_op, {x}, {{"dtype", dtype}});
}

ValueId GraphBuilder::reduce(const OpDef& op, ValueId x) {
  Axes axes;
  for (int axis = 0; axis < graph.type(x).shape.size(); ++axis) axes.push_back(axis);
  return add(op, {x}, {{"axes", axes}, {"keep_dims", false}});
}

ValueId GraphBuilder::stack(const ValueIds& scalars) {
  const Attrs first{{"axis", int64_t{0}}};
  ValueIds parts;
  for (ValueId id : scalars) parts.push_back(add(unsqueeze_op, {id}, first));
  return add(concat_op, parts, first);
}

ValueId GraphBuilder::number(double value) {
  return add(number_op, {}, {{"dtype", DType::f64}, {"device", device_}, {"value", value}});
}

ValueId GraphBuilder::integer(int64_t value) {
  return add(number_op, {}, {{"dtype", DType::i64}, {"device", device_}, {"value", value}});
}

ValueId GraphBuilder::zeros(const TensorType& type) {
  return add(full_op, {},
             {{"shape", type.shape}, {"dtype", type.dtype}, {"device", device_}, {"value", 0.0}});
}

Attrs with_attr(const Attrs& attrs, const Attr& entry) {
  Attrs result;
  bool found = false;
  for (const Attr& attr : attrs) {
    result.add(attr.name == entry.name ? entry : attr);
    found |= attr.name == entry.name;
  }
  if (!found) result.add(entry);
  return result;
}

}  // namespace brrr::compiler
