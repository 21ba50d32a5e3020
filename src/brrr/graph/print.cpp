#include "brrr/graph/print.h"

#include <fmt/format.h>

#include <cmath>

namespace brrr {
namespace {

// Shortest digits that read back as the same number, and never the look of an integer.
std::string exact_text(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string attr_text(const AttrValue& value) {
  if (const double* number = std::get_if<double>(&value)) return exact_text(*number);
  std::string out;
  std::visit([&](const auto& other) { append_text(out, other); }, value);
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string type_text(const TensorType& type) {
  return to_text(type.dtype) + to_text(type.shape) + (type.weak ? " weak" : "");
}

class Printer {
 public:
  explicit Printer(const Graph& graph, std::string indent = "")
      : graph_(graph), indent_(std::move(indent)), numbers_(graph.values.size(), -1) {
    for (const GraphInput& input : graph.inputs) number(input.value);
    for (const StateSlot& state : graph.states) number(state.before);
    for (const Node& node : graph.nodes) {
      for (ValueId id : node.outputs) number(id);
    }
  }

  std::string run() const {
    std::string out;
    for (const GraphInput& input : graph_.inputs)
      out += fmt::format("{}input {} {}\n", indent_, declared(input.value), quoted(input.name));
    for (const StateSlot& state : graph_.states)
      out += fmt::format("{}state {} {}\n", indent_, declared(state.before), quoted(state.name));
    Phase phase = Phase::forward;
    for (const Node& node : graph_.nodes) {
      if (node.phase != phase) out += fmt::format("{}{}\n", indent_, phase_name(node.phase));
      phase = node.phase;
      out += indent_ + line(node) + "\n";
    }
    for (const StateSlot& state : graph_.states) {
      if (state.is_written())
        out += fmt::format("{}write {} {}\n", indent_, quoted(state.name), used(state.after));
    }
    out += indent_ + "return";
    for (ValueId id : graph_.outputs) out += fmt::format(" {}", used(id));
    return out + "\n";
  }

 private:
  void number(ValueId id) { numbers_[id.index()] = next_++; }
  std::string used(ValueId id) const { return fmt::format("%{}", numbers_[id.index()]); }
  std::string declared(ValueId id) const {
    return fmt::format("{}: {}", used(id), type_text(graph_.type(id)));
  }

  std::string line(const Node& node) const {
    std::string out;
    for (ValueId id : node.outputs) {
      if (!out.empty()) out += ", ";
      out += declared(id);
    }
    out += fmt::format(" = {}", node.op->name);
    for (ValueId id : node.inputs) out += fmt::format(" {}", used(id));
    if (node.attrs.size() > 0) {
      out += " {";
      for (const Attr& attr : node.attrs)
        out += fmt::format("{}{}={}", &attr == node.attrs.begin() ? "" : " ", attr.name,
                           attr_text(attr.value));
      out += "}";
    }
    if (node.body)
      out += fmt::format(" [\n{}{}]", Printer(*node.body, indent_ + "  ").run(), indent_);
    return out;
  }

  const Graph& graph_;
  std::string indent_;
  std::vector<int> numbers_;  // by value id
  int next_ = 0;
};

}  // namespace

std::string to_text(const Graph& graph) { return Printer(graph).run(); }

}  // namespace brrr
