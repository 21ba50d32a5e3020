#include "brrr/runtime/compile.h"

#include <algorithm>

#include "brrr/graph/trace.h"

namespace brrr {
namespace {

bool matches(std::span<const TensorType> types, std::span<const Tensor> inputs) {
  return std::equal(types.begin(), types.end(), inputs.begin(), inputs.end(),
                    [](const TensorType& type, const Tensor& x) {
                      return type.shape == x.shape() && type.dtype == x.dtype();
                    });
}

Graph trace(const CompiledFunction::Function& function, std::span<const Tensor> inputs) {
  Tracer tracer;
  std::vector<Tensor> handles;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType type{.shape = inputs[i].shape(), .dtype = inputs[i].dtype()};
    handles.push_back(tracer.add_input(type, inputs[i].device(), join_text("input ", i)));
  }
  return tracer.finish(function(handles));
}

}  // namespace

CompiledFunction::CompiledFunction(Function function, const PipelineOptions& options)
    : function_(std::move(function)), options_(options) {
  if (!options_.precision.states) options_.precision.states = std::make_shared<AddedStates>();
}

Executable& CompiledFunction::executable(std::span<const Tensor> inputs) {
  for (Program& program : programs_) {
    if (matches(program.types, inputs)) return *program.executable;
  }
  Program program;
  for (const Tensor& x : inputs) program.types.push_back({.shape = x.shape(), .dtype = x.dtype()});
  program.executable = std::make_unique<Executable>(trace(function_, inputs), options_);
  programs_.push_back(std::move(program));
  return *programs_.back().executable;
}

Tensors CompiledFunction::run(std::span<const Tensor> inputs) {
  return executable(inputs).run(inputs);
}

}  // namespace brrr
