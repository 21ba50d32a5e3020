#include "brrr/report/graph_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "brrr/plan/profile.h"
#include "brrr/report/table.h"

namespace brrr::report {
namespace {

using nlohmann::json;

std::string dot_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string_view colour_of(OpKind kind) {
  switch (kind) {
    case OpKind::contraction: return "#f4a582";
    case OpKind::reduce: return "#92c5de";
    case OpKind::elementwise: return "#d9f0d3";
    case OpKind::view: return "#eeeeee";
    default: return "#fddbc7";
  }
}

std::string dot_node(const std::string& id, std::string_view label, std::string_view shape,
                     std::string_view colour) {
  return fmt::format("  {} [label={} shape={} style=filled fillcolor=\"{}\"];\n", id,
                     dot_text(label), shape, colour);
}

}  // namespace

std::string graph_dot(const graph::Graph& graph) {
  std::string out = "digraph brrr {\n  rankdir=TB; node [fontname=\"sans-serif\" fontsize=10];\n";
  std::vector<std::string> maker(graph.values.size());
  const auto source = [&](graph::ValueId id, const std::string& name, const std::string& label,
                          const char* colour) {
    maker[id.index()] = name;
    out += dot_node(name, join_text(label, "\n", graph.type(id)), "ellipse", colour);
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    source(graph.inputs[i].value, join_text("input", i), graph.inputs[i].name, "#ffffff");
  for (size_t i = 0; i < graph.states.size(); ++i)
    source(graph.states[i].before, join_text("state", i), graph.states[i].name, "#ffffcc");
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    const std::string name = join_text("n", n);
    for (graph::ValueId id : node.outputs) maker[id.index()] = name;
    out += dot_node(name, node.op->name, node.op->kind == OpKind::view ? "plaintext" : "box",
                    colour_of(node.op->kind));
    for (graph::ValueId id : node.inputs)
      out += fmt::format("  {} -> {} [label={} fontsize=8];\n", maker[id.index()], name,
                         dot_text(to_text(graph.type(id))));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string name = join_text("output", i);
    out += dot_node(name, join_text("output ", i), "ellipse", "#ffffff");
    out += fmt::format("  {} -> {};\n", maker[graph.outputs[i].index()], name);
  }
  return out + "}\n";
}

std::string kernels_dot(const compiler::KernelList& list) {
  std::string out = "digraph brrr {\n  rankdir=TB; node [fontname=\"sans-serif\" fontsize=10];\n";
  std::vector<std::string> maker(list.buffers.size());
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const compiler::Kernel& kernel = list.kernels[k];
    const std::string name = join_text("k", k);
    const OpKind kind = kernel.parts.empty() ? OpKind::other : kernel.parts[0].op->kind;
    out += dot_node(name, join_text(k, ": ", plan::kernel_label(kernel)), "box", colour_of(kind));
    for (const compiler::OperandRef& ref : kernel.inputs) {
      const std::string& from = maker[ref.buffer.index()];
      if (!from.empty() && from != name)
        out += fmt::format("  {} -> {} [label={} fontsize=8];\n", from, name,
                           dot_text(join_text(ref.dtype, ref.layout.shape)));
    }
    for (const compiler::OperandRef& ref : kernel.outputs) maker[ref.buffer.index()] = name;
  }
  return out + "}\n";
}

std::string graph_json(const graph::Graph& graph) {
  const auto value = [&](graph::ValueId id) {
    return json{{"value", id.value}, {"type", to_text(graph.type(id))}};
  };
  json file{{"inputs", json::array()},
            {"states", json::array()},
            {"nodes", json::array()},
            {"outputs", json::array()}};
  for (const graph::GraphInput& input : graph.inputs) {
    json row = value(input.value);
    row["name"] = input.name;
    file["inputs"].push_back(row);
  }
  for (const graph::StateSlot& state : graph.states) {
    json row = value(state.before);
    row["name"] = state.name;
    row["written"] = state.is_written();
    row["after"] = state.after.value;
    file["states"].push_back(row);
  }
  for (const graph::Node& node : graph.nodes) {
    const Cost cost = graph::cost_of(graph, node);
    json row{{"op", node.op->name},
             {"kind", kind_name(node.op->kind)},
             {"phase", graph::phase_name(node.phase)},
             {"attributes", to_text(node.attrs)},
             {"flops", cost.flops},
             {"bytes_read", cost.bytes_read},
             {"bytes_written", cost.bytes_written},
             {"inputs", json::array()},
             {"outputs", json::array()}};
    for (graph::ValueId id : node.inputs) row["inputs"].push_back(id.value);
    for (graph::ValueId id : node.outputs) row["outputs"].push_back(value(id));
    file["nodes"].push_back(row);
  }
  for (graph::ValueId id : graph.outputs) file["outputs"].push_back(id.value);
  return file.dump(1);
}

std::string kernels_json(const compiler::KernelList& list, const cost::Prediction& prediction) {
  json rows = json::array();
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const compiler::Kernel& kernel = list.kernels[k];
    const cost::KernelPrediction& price = prediction.kernels[k];
    rows.push_back({{"name", kernel.name},
                    {"phase", graph::phase_name(kernel.phase)},
                    {"class", cost::class_name(cost::class_of(kernel))},
                    {"nodes", kernel.parts.size()},
                    {"flops", kernel.cost.flops},
                    {"bytes_read", kernel.cost.bytes_read},
                    {"bytes_written", kernel.cost.bytes_written},
                    {"family", price.family},
                    {"predicted_seconds", price.seconds()},
                    {"regime", cost::regime_name(price.regime())}});
  }
  return json{{"kernels", rows},
              {"predicted_seconds", prediction.seconds()},
              {"calibrated", prediction.calibrated}}
      .dump(1);
}

std::string kernels_text(const compiler::KernelList& list, const cost::Prediction& prediction) {
  Table table(
      {"kernel", "phase", "name", "nodes", "FLOPs", "read", "written", "predicted", "bound by"});
  Cost total;
  size_t nodes = 0;
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const compiler::Kernel& kernel = list.kernels[k];
    const cost::KernelPrediction& price = prediction.kernels[k];
    table.row(k, graph::phase_name(kernel.phase), plan::kernel_label(kernel), kernel.parts.size(),
              with_commas(kernel.cost.flops), to_text(Bytes(kernel.cost.bytes_read)),
              to_text(Bytes(kernel.cost.bytes_written)), to_text(Seconds(price.seconds())),
              cost::regime_name(price.regime()));
    total += kernel.cost;
    nodes += kernel.parts.size();
  }
  table.rule();
  table.row("all", "", join_text(list.kernels.size(), " kernels"), nodes, with_commas(total.flops),
            to_text(Bytes(total.bytes_read)), to_text(Bytes(total.bytes_written)),
            to_text(Seconds(prediction.seconds())), prediction.calibrated ? "" : "uncalibrated");
  return table.text();
}

namespace {

// Who computes with it: the first reader behind the views.
std::string reader_name(const graph::Graph& graph, graph::NodeId node) {
  const auto reads = [&](const graph::Node& other, graph::ValueId id) {
    return std::find(other.inputs.begin(), other.inputs.end(), id) != other.inputs.end();
  };
  for (size_t n = node.index() + 1; n < graph.nodes.size() && graph.node(node).op->view; ++n) {
    if (reads(graph.nodes[n], graph.node(node).outputs[0])) node = graph::NodeId(n);
  }
  return join_text(graph.node(node).op->name, " (node ", node.index(), ")");
}

}  // namespace

std::string kept_values_text(const graph::Graph& graph,
                             const std::vector<compiler::KeptValue>& values) {
  Table table({"kept", "type", "bytes", "needed by", "time again", "bytes saved a second"});
  int64_t bytes = 0;
  double seconds = 0;
  for (const compiler::KeptValue& value : values) {
    const double rate = static_cast<double>(value.bytes) / value.recompute_seconds;
    table.row(value.name, to_text(graph.type(value.value)), to_text(Bytes(value.bytes)),
              reader_name(graph, value.needed_by), to_text(Seconds(value.recompute_seconds)),
              value.recompute_seconds > 0 ? to_text(BytesPerSecond(rate)) : "");
    bytes += value.bytes;
    seconds += value.recompute_seconds;
  }
  table.rule();
  table.row(join_text(values.size(), " values"), "", to_text(Bytes(bytes)), "",
            to_text(Seconds(seconds)), "");
  return table.text();
}

std::string kept_values_json(const graph::Graph& graph,
                             const std::vector<compiler::KeptValue>& values) {
  json rows = json::array();
  for (const compiler::KeptValue& value : values)
    rows.push_back({{"value", value.value.value},
                    {"name", value.name},
                    {"type", to_text(graph.type(value.value))},
                    {"bytes", value.bytes},
                    {"needed_by", reader_name(graph, value.needed_by)},
                    {"recompute_seconds", value.recompute_seconds}});
  return rows.dump(1);
}

}  // namespace brrr::report
