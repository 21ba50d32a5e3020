#include "brrr/compiler/tiles/tile_program.h"

#include <algorithm>
#include <map>

#include "brrr/tensor/element.h"

namespace brrr::compiler {
namespace {

// As a kernel would load it: in the dtype of its tensor first.
TileLiteral literal_of(const Graph& graph, ValueId id, int slot, ComputeType type) {
  const Node* node = constant_behind(graph, id);
  invariant(node != nullptr,
            "a value that a tile program reads is neither an operand nor a number");
  TileLiteral literal{.slot = slot, .type = type};
  const auto set = [&]<typename Held>(Held held) {
    literal.integer = type == ComputeType::u64
                          ? static_cast<int64_t>(convert_element<uint64_t>(held))
                          : convert_element<int64_t>(held);
    literal.number =
        type == ComputeType::f32 ? convert_element<float>(held) : convert_element<double>(held);
  };
  const DType dtype = graph.type(node->outputs[0]).dtype;
  if (node->op->role == OpRole::number && dtype != DType::f64) {
    set(node->attrs.integer("value"));
  } else {
    visit_dtype(dtype,
                [&]<typename Held>() { set(convert_element<Held>(node->attrs.number("value"))); });
  }
  return literal;
}

}  // namespace

const Node* constant_behind(const Graph& graph, ValueId id) {
  while (graph.value(id).node.valid()) {
    const Node& node = graph.node(graph.value(id).node);
    if (is_constant(*node.op)) return &node;
    if (!node.op->view) return nullptr;
    id = node.inputs[0];
  }
  return nullptr;
}

// Gives every value of the region its slots, one for each compute type that it is needed in.
class TileProgramBuilder {
 public:
  TileProgramBuilder(const Graph& graph, TileProgram& program) : graph_(graph), program_(program) {}

  void add_input(ValueId id, int operand) { operands_[id.value] = operand; }

  void add_given(ValueId id) {
    const ComputeType type = compute_type(graph_.type(id).dtype);
    program_.given_ = {-1, new_slot(type), type};
    define(id, program_.given_->slot, type);
  }

  void add_node(const Node& node) {
    const ValueId output = node.outputs[0];
    const DType dtype = graph_.type(output).dtype;
    if (!node.op->tiles) {  // a cast or a copy
      const ComputeType from = natural_type_of(node.inputs[0]);
      define(output, add_through(slot_of(node.inputs[0], from), from, dtype), compute_type(dtype));
      return;
    }
    const ComputeType type = compute_type_of(node);
    TileStep step{.kind = TileStep::Kind::compute,
                  .tile = tile_for(*node.op, type),
                  .attrs = &node.attrs,
                  .inputs = {},
                  .type = type,
                  .chain = {},
                  .op = node.op};
    if (type == ComputeType::f32) step.code = node.op->tiles().chain;
    for (ValueId input : node.inputs) step.inputs.push_back(slot_of(input, type));
    step.output = new_slot(type);
    program_.steps_.push_back(step);
    // Comparisons give 0 and 1, which every compute type holds exactly; other results are rounded.
    const bool exact = dtype == natural_dtype(type) || dtype == DType::boolean;
    if (exact) return define(output, step.output, type);
    define(output, add_through(step.output, type, dtype), compute_type(dtype));
  }

  void add_output(ValueId id, int operand) {
    const auto [type, slot] = made_.at(id.value);
    program_.stores_.push_back({operand, slot, type});
  }

  void capture(ValueId id) {
    const auto [type, slot] = made_.at(id.value);
    program_.captured_ = {-1, slot, type};
  }

  // Slots whose value is no longer needed are used again.
  void share_slots();

  void keep_script() {
    program_.script_ = {program_.loads_,    program_.stores_, program_.given_,
                        program_.captured_, literals_,        program_.steps_};
  }

 private:
  // As eager ops choose it.
  ComputeType compute_type_of(const Node& node) const {
    SmallVector<TypeRef, 4> types;
    for (ValueId id : node.inputs)
      types.push_back({&graph_.type(id).shape, graph_.type(id).dtype, false});
    return elementwise_type(graph_.type(node.outputs[0]).dtype, types);
  }

  ComputeType natural_type_of(ValueId id) const {
    const auto found = made_.find(id.value);
    return found != made_.end() ? found->second.type : compute_type(graph_.type(id).dtype);
  }

  int new_slot(ComputeType type) {
    program_.slot_types_.push_back(type);
    return program_.slots_++;
  }

  int add_through(int slot, ComputeType from, DType dtype) {
    TileStep step{.kind = TileStep::Kind::through,
                  .inputs = {slot},
                  .type = from,
                  .dtype = dtype,
                  .chain = {}};
    step.output = new_slot(compute_type(dtype));
    program_.steps_.push_back(step);
    return step.output;
  }

  void define(ValueId id, int slot, ComputeType type) {
    made_[id.value] = {type, slot};
    slots_[{id.value, type}] = slot;
  }

  int slot_of(ValueId id, ComputeType type) {
    const auto [found, is_new] = slots_.emplace(std::pair(id.value, type), -1);
    if (!is_new) return found->second;
    if (const auto made = made_.find(id.value); made != made_.end())
      return found->second = add_through(made->second.slot, made->second.type, natural_dtype(type));
    const int slot = new_slot(type);
    const auto operand = operands_.find(id.value);
    if (operand != operands_.end()) {
      program_.loads_.push_back({operand->second, slot, type});
    } else {
      literals_.push_back(literal_of(graph_, id, slot, type));
    }
    return found->second = slot;
  }

  struct Made {
    ComputeType type;
    int slot;
  };
  const Graph& graph_;
  TileProgram& program_;
  std::map<int32_t, int> operands_;                       // values from outside
  std::map<int32_t, Made> made_;                          // values of the region
  std::map<std::pair<int32_t, ComputeType>, int> slots_;  // where a value is, in a type
  std::vector<TileLiteral> literals_;                     // constants that are no operands
};

// Loaded slots stay for the whole tile (constants are filled once), stored ones until the end.
void TileProgramBuilder::share_slots() {
  std::vector<bool> is_fixed(static_cast<size_t>(program_.slots_), false);
  for (const TileTransfer& store : program_.stores_)
    is_fixed[static_cast<size_t>(store.slot)] = true;
  if (program_.captured_) is_fixed[static_cast<size_t>(program_.captured_->slot)] = true;
  program_.steps_ = form_chains(program_.steps_, is_fixed);
  for (const TileTransfer& load : program_.loads_) is_fixed[static_cast<size_t>(load.slot)] = true;

  const size_t never = program_.steps_.size();
  std::vector<size_t> last_use(static_cast<size_t>(program_.slots_), 0);
  for (size_t s = 0; s < program_.steps_.size(); ++s) {
    for (int slot : program_.steps_[s].inputs) last_use[static_cast<size_t>(slot)] = s;
  }

  std::vector<int> renamed(last_use.size(), -1);
  std::vector<ComputeType> types;
  std::vector<size_t> free_after;
  const auto place = [&](int slot, size_t begin, bool fixed) {
    const auto old = static_cast<size_t>(slot);
    for (size_t r = 0; r < types.size() && !fixed; ++r) {
      if (types[r] != program_.slot_types_[old] || free_after[r] >= begin) continue;
      free_after[r] = last_use[old];
      renamed[old] = static_cast<int>(r);
      return;
    }
    renamed[old] = static_cast<int>(types.size());
    types.push_back(program_.slot_types_[old]);
    free_after.push_back(fixed ? never : last_use[old]);
  };
  for (TileTransfer& load : program_.loads_) {
    place(load.slot, 0, true);
    load.slot = renamed[static_cast<size_t>(load.slot)];
  }
  if (program_.given_) {
    place(program_.given_->slot, 0, true);
    program_.given_->slot = renamed[static_cast<size_t>(program_.given_->slot)];
  }
  for (size_t s = 0; s < program_.steps_.size(); ++s) {
    TileStep& step = program_.steps_[s];
    for (int& slot : step.inputs) slot = renamed[static_cast<size_t>(slot)];
    place(step.output, s, is_fixed[static_cast<size_t>(step.output)]);
    step.output = renamed[static_cast<size_t>(step.output)];
  }
  for (TileTransfer& store : program_.stores_)
    store.slot = renamed[static_cast<size_t>(store.slot)];
  if (program_.captured_)
    program_.captured_->slot = renamed[static_cast<size_t>(program_.captured_->slot)];
  program_.slot_types_ = std::move(types);
  program_.slots_ = static_cast<int>(program_.slot_types_.size());
}

TileProgram::TileProgram(const Graph& graph, std::span<const NodeId> nodes,
                         const TileProgramEnds& ends)
    : shape_(graph.type(graph.node(nodes.front()).outputs[0]).shape) {
  const auto& [inputs, outputs, given, captured] = ends;
  TileProgramBuilder builder(graph, *this);
  for (size_t i = 0; i < inputs.size(); ++i) builder.add_input(inputs[i], static_cast<int>(i));
  if (given.valid()) builder.add_given(given);
  for (NodeId node : nodes) builder.add_node(graph.node(node));
  for (size_t i = 0; i < outputs.size(); ++i) builder.add_output(outputs[i], static_cast<int>(i));
  if (captured.valid()) builder.capture(captured);
  builder.keep_script();
  builder.share_slots();
}

}  // namespace brrr::compiler
