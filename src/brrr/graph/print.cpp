#include "brrr/graph/print.h"

#include <fmt/format.h>

#include <cmath>

namespace brrr::graph {
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
    for (const StateSlot& state : graph_.states) {
      out += fmt::format("{}state {} {}", indent_, declared(state.before), quoted(state.name));
      if (state.copy_of >= 0)
        out +=
            fmt::format(" of {}", quoted(graph_.states[static_cast<size_t>(state.copy_of)].name));
      out += "\n";
    }
    for (size_t s = 0; s < graph_.segments.size(); ++s) out += indent_ + segment_line(s) + "\n";
    Phase phase = Phase::forward;
    for (const Node& node : graph_.nodes) {
      if (node.phase != phase) out += fmt::format("{}{}\n", indent_, phase_name(node.phase));
      phase = node.phase;
      out += indent_ + line(node) + "\n";
    }
    for (ValueId id : graph_.seeds) out += fmt::format("{}seed {}\n", indent_, used(id));
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

  std::string segment_line(size_t s) const {
    const Segment& segment = graph_.segments[s];
    std::string out = fmt::format("segment {} {}", s, quoted(segment.name));
    if (segment.parent.valid()) out += fmt::format(" in {}", segment.parent.value);
    return segment.checkpoint ? out + " checkpoint" : out;
  }

  std::string line(const Node& node) const {
    std::string out;
    for (ValueId id : node.outputs) {
      if (!out.empty()) out += ", ";
      out += declared(id);
    }
    out += fmt::format(" = {}", node.op->name);
    for (ValueId id : node.inputs) out += fmt::format(" {}", used(id));
    if (node.attrs.size() > 0) out += " {" + attrs_text(node.attrs) + "}";
    if (!node.scope.empty()) out += " @" + quoted(node.scope);
    if (node.segment.valid()) out += fmt::format(" @{}", node.segment.value);
    if (node.body)
      out += fmt::format(" [\n{}{}]", Printer(*node.body, indent_ + "  ").run(), indent_);
    return out;
  }

  static std::string attrs_text(const Attrs& attrs) {
    std::string out;
    for (const Attr& attr : attrs)
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", attr.name, attr_text(attr.value));
    return out;
  }

  const Graph& graph_;
  std::string indent_;
  std::vector<int> numbers_;  // by value id
  int next_ = 0;
};

}  // namespace

std::string to_text(const Graph& graph) { return Printer(graph).run(); }

}  // namespace brrr::graph
