#include "brrr/graph/repeat.h"

namespace brrr::graph {

const OpDef repeat_op{.name = "repeat",
                      .formula = "states after `count` runs of the body",
                      .kind = OpKind::other,
                      .role = OpRole::repeat,
                      .dtypes = kAnyDType};

RepeatNode repeat_node(const Attrs& attrs) {
  const auto part = [&](std::string_view name) { return static_cast<int>(attrs.integer(name)); };
  return {.sliced = part("sliced"),
          .captured = part("captured"),
          .sums = part("sums"),
          .initial = part("initial"),
          .most = attrs.integer("most")};
}

Attrs repeat_attrs(const RepeatNode& parts) {
  return {{"sliced", int64_t{parts.sliced}},
          {"captured", int64_t{parts.captured}},
          {"sums", int64_t{parts.sums}},
          {"initial", int64_t{parts.initial}},
          {"most", parts.most}};
}

TensorTypes infer_repeat(const Graph& graph, const Node& node) {
  invariant(node.body != nullptr,
            "repeat: the node has lost its body; a pass that copies nodes must ",
            "pass node.body on to add_node");
  const Graph& body = *node.body;
  const RepeatNode parts = repeat_node(node.attrs);
  invariant(node.inputs.size() == parts.first_initial() + parts.initial &&
                static_cast<int>(body.inputs.size()) == parts.first_initial() &&
                static_cast<int>(body.states.size()) == parts.states() && body.outputs.empty(),
            "repeat: ", node.inputs.size(), " operands do not fit a body of ", body.inputs.size(),
            " inputs and ", body.states.size(), " states");
  const TensorType count{.shape = {}, .dtype = DType::i64};
  const auto type = [&](int operand) { return graph.type(node.inputs[operand]); };
  const auto require = [&](int operand, const TensorType& found, const TensorType& wanted) {
    invariant(found.shape == wanted.shape && found.dtype == wanted.dtype, "repeat: operand ",
              operand, " is ", found, ", and its body takes ", wanted);
  };
  const auto body_input = [&](int i) {
    return body.type(body.inputs[static_cast<size_t>(i)].value);
  };
  require(0, type(0), count);
  require(0, body_input(0), count);
  for (int i = 1; i < parts.first_captured(); ++i) {
    TensorType slice = type(i);
    invariant(!slice.shape.empty() && slice.shape[0] == parts.most, "repeat: operand ", i, " is ",
              slice, ", and should have ", parts.most, " slices");
    slice.shape.erase(0);
    require(i, slice, body_input(i));
  }
  for (int i = parts.first_captured(); i < parts.first_initial(); ++i)
    require(i, type(i), body_input(i));
  TensorTypes types;
  for (int s = 0; s < parts.states(); ++s) {
    types.push_back(body.type(body.states[static_cast<size_t>(s)].before));
    if (s >= parts.sums) require(parts.initial_of(s), type(parts.initial_of(s)), types[s]);
  }
  return types;
}

Cost cost_of_repeat(const Node& node) {
  const Cost once = cost_of(*node.body);
  const int64_t times = repeat_node(node.attrs).most;
  return {.flops = times * once.flops,
          .bytes_read = times * once.bytes_read,
          .bytes_written = times * once.bytes_written};
}

void check_repeat_count(int64_t count, const RepeatNode& parts) {
  check(count >= 0 && count <= parts.most, "repeat: a count of ", count,
        " is not between 0 and the ", parts.most, " slices that the program was compiled for");
}

}  // namespace brrr::graph
