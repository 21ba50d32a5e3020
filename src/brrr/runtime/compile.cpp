#include "brrr/runtime/compile.h"

#include <algorithm>

#include "brrr/device/default_device.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"

namespace brrr::runtime {
namespace {

// A program on a GPU takes inputs from the cpu as well, and copies them.
bool is_copied_to(std::optional<Device> device, const Tensor& x) {
  return device && device->is_accelerator() && x.device() == Device::cpu();
}

// The device of a program for these inputs; none without any.
std::optional<Device> device_for(std::optional<Device> wanted, std::span<const Tensor> inputs) {
  if (wanted && wanted->is_accelerator()) return wanted;
  const auto is_on_cpu = [](const Tensor& x) { return x.device() == Device::cpu(); };
  for (const Tensor& x : inputs) {
    if (x.device().is_accelerator()) return x.device();
  }
  // Batches come from the cpu; the program belongs where new tensors, the model among them, are made.
  if (default_device().is_accelerator() && std::all_of(inputs.begin(), inputs.end(), is_on_cpu))
    return default_device();
  return inputs.empty() ? std::nullopt : std::optional(inputs[0].device());
}

bool matches(std::span<const TensorType> types, std::optional<Device> device,
             std::span<const Tensor> inputs) {
  return std::equal(types.begin(), types.end(), inputs.begin(), inputs.end(),
                    [&](const TensorType& type, const Tensor& x) {
                      return type.shape == x.shape() && type.dtype == x.dtype() &&
                             (x.device() == device || is_copied_to(device, x));
                    });
}

graph::Graph trace(const CompiledFunction::Function& function, std::span<const Tensor> inputs,
                   Device device) {
  graph::Tracer tracer;
  std::vector<Tensor> handles;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType type{.shape = inputs[i].shape(), .dtype = inputs[i].dtype()};
    handles.push_back(tracer.add_input(type, device, join_text("input ", i)));
  }
  return tracer.finish(function(handles));
}

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

constexpr std::string_view kPassItIn =
    "; whatever it depends on besides its tensors changed in between: pass that as an input";

// Compares the texts, which name everything but the tensors behind the states.
void require_same_trace(const graph::Graph& first, const graph::Graph& second) {
  const std::string first_text = graph::to_text(first), second_text = graph::to_text(second);
  std::string_view a = first_text, b = second_text;
  for (int number = 1; !a.empty() || !b.empty(); ++number) {
    const std::string_view line_a = take_line(a), line_b = take_line(b);
    check(line_a == line_b, "compile: the function was traced twice and gave two programs",
          kPassItIn, ". The first difference is in line ", number, ":\n  first   ", line_a,
          "\n  second  ", line_b);
  }
  for (size_t i = 0; i < first.states.size(); ++i) {
    check(shares_storage(first.states[i].tensor, second.states[i].tensor),
          "compile: the function was traced twice, and its state \"", first.states[i].name, "\" (",
          first.type(first.states[i].before), ") was another tensor the second time", kPassItIn);
  }
}

}  // namespace

CompiledFunction::CompiledFunction(Function function, const compiler::PipelineOptions& options)
    : function_(std::move(function)), options_(options) {
  if (!options_.precision.states)
    options_.precision.states = std::make_shared<compiler::AddedStates>();
}

void CompiledFunction::add_program(std::span<const Tensor> inputs) {
  Program program{.types = {}, .device = device_for(options_.device, inputs), .executable = {}};
  const Device device = program.device.value_or(Device::cpu());  // no inputs: nobody asks
  for (const Tensor& x : inputs) {
    program.types.push_back({.shape = x.shape(), .dtype = x.dtype()});
    check(x.device() == device || is_copied_to(device, x),
          "compile: the inputs live on different devices, ", device, " and ", x.device(),
          "; move one with to(x, device)");
  }
  graph::Graph graph = trace(function_, inputs, device);
  if (options_.trace_twice) require_same_trace(graph, trace(function_, inputs, device));
  compiler::PipelineOptions options = options_;
  if (!options.device) options.device = program.device;
  program.executable = std::make_unique<Executable>(std::move(graph), options);
  programs_.push_back(std::move(program));
}

Executable& CompiledFunction::executable(std::span<const Tensor> inputs) {
  for (Program& program : programs_) {
    if (matches(program.types, program.device, inputs)) return *program.executable;
  }
  add_program(inputs);
  return *programs_.back().executable;
}

Tensors CompiledFunction::run(std::span<const Tensor> inputs) {
  return executable(inputs).run(inputs);
}

PendingResults CompiledFunction::enqueue(std::span<const Tensor> inputs) {
  return executable(inputs).enqueue(inputs);
}

}  // namespace brrr::runtime
