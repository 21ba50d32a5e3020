#include "brrr/runtime/cpu/cpu_runner.h"

namespace brrr::runtime {
namespace {

Tensors make_results(const compiler::CompiledProgram& program, Device device) {
  Tensors results;
  for (const TensorType& type : program.kernels.list.outputs)
    results.push_back(empty(type.shape, type.dtype, device));
  return results;
}

}  // namespace

// Fixes every address that is known now: those in the arena and those of states.
CpuRunner::CpuRunner(const compiler::CompiledProgram& program, std::byte* arena)
    : program_(program), bound_(program.kernels, arena) {
  const std::vector<graph::StateSlot>& states = program.graph.states;
  for (size_t i = 0; i < states.size(); ++i)
    bound_.set_address(compiler::Place::state, static_cast<int>(i), first_byte(states[i].tensor));
}

Tensors CpuRunner::run(std::span<const Tensor> inputs, KernelTimes* times) {
  Tensors results = make_results(program_, Device::cpu());
  for (size_t i = 0; i < inputs.size(); ++i)
    bound_.set_address(compiler::Place::input, static_cast<int>(i), first_byte(inputs[i]));
  for (int i = 0; i < results.size(); ++i)
    bound_.set_address(compiler::Place::output, i, results[i].storage().data());
  times ? bound_.run_timed(thread_pool(), *times) : bound_.run(thread_pool());
  return results;
}

Tensors CountingRunner::run(std::span<const Tensor>, KernelTimes*) {
  return make_results(program_, Device::null());
}

}  // namespace brrr::runtime
