// What a pass adds to the body of a repeat (graph/repeat.h): values that the program around it gives to every
// iteration, and values that it gets back, the largest over all iterations. So what a step keeps (a scale, a
// history) stays a state of the program, and the body neither reads an old one nor writes a new one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/rewrite/graph_builder.h"

namespace brrr::compiler {

class BodyPorts {
 public:
  explicit BodyPorts(GraphBuilder& body) : body_(body) {}

  // A new input of the body, the same in all iterations. `outside` makes its value in the program around.
  ValueId give(const std::string& name, const TensorType& type, std::function<ValueId()> outside);
  // A new state of the body: the largest of `each` (f32, not below 0; NaN wins). `take` is told its last
  // value in the program around.
  void join_largest(const std::string& name, ValueId each, std::function<void(ValueId)> take);

  // Adds the repeat `node` of the old program to the program around it, with `graph`, what has become of its
  // body, and these ports; `inputs` are its old operands. Returns its results, those of the ports left out.
  ValueIds add_repeat(GraphBuilder& around, const Node& node, Graph graph,
                      const ValueIds& inputs) const;

 private:
  GraphBuilder& body_;
  std::vector<std::function<ValueId()>> given_;
  std::vector<std::function<void(ValueId)>> joined_;
};

}  // namespace brrr::compiler
