#include "brrr/runtime/cuda/cuda_runner.h"

#include <cstring>
#include <functional>

#include "brrr/ops/create/copy.h"

namespace brrr::runtime {
namespace {

constexpr size_t kStaged = 3;  // inputs of so many runs may wait in pinned memory for the GPU

size_t bytes_of(const Tensor& x) {
  return static_cast<size_t>(storage_bytes(x.dtype(), x.numel()));
}

std::vector<TensorType> input_types(const graph::Graph& graph) {
  std::vector<TensorType> types;
  for (const graph::GraphInput& input : graph.inputs) types.push_back(graph.type(input.value));
  return types;
}

void copy_with(CopyClock* clock, const HostCopy& copy, const std::function<void()>& enqueue) {
  clock ? clock->time(copy, enqueue) : enqueue();
}

}  // namespace

CudaRunner::CudaRunner(const compiler::CompiledProgram& program, std::byte* arena, Device device)
    : program_(program),
      device_(device),
      stream_(cuda::stream(device.index)),
      bound_(program.kernels, arena, device.index),
      inputs_(input_types(program.graph), device, Category::data),
      outputs_(program.kernels.list.outputs, device, Category::workspace) {
  const graph::Graph& graph = program.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (inputs_.has_slot(i))
      bound_.set_address(compiler::Place::input, static_cast<int>(i), inputs_.slot(i));
  }
  for (size_t i = 0; i < result_types().size(); ++i) {
    if (outputs_.has_slot(i))
      bound_.set_address(compiler::Place::output, static_cast<int>(i), outputs_.slot(i));
  }
  for (size_t i = 0; i < graph.states.size(); ++i)
    bound_.set_address(compiler::Place::state, static_cast<int>(i),
                       first_byte(graph.states[i].tensor));
}

void CudaRunner::wait() const { cuda::wait(stream_); }

void CudaRunner::give_in_place(size_t i, const Tensor& x, CopyClock* clock) {
  NoGrad nothing_is_recorded;
  if (x.device() == device_) {
    held_.push_back(x);
  } else {
    copy_with(clock, {.bytes = static_cast<int64_t>(bytes_of(x))},
              [&] { held_.push_back(to(x.detach(), device_)); });
  }
  bound_.set_address(compiler::Place::input, static_cast<int>(i), first_byte(held_.back()));
}

// Those from the host go over together; those that are there already are then put beside them.
void CudaRunner::give_inputs(std::span<const Tensor> inputs, CopyClock* clock) {
  held_.clear();
  HostSlot* staged = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs_.has_slot(i)) {
      give_in_place(i, inputs[i], clock);
    } else if (inputs[i].device() != device_) {
      if (!staged) staged = &staged_.next(inputs_.bytes(), kStaged);
      std::memcpy(staged->memory.data() + inputs_.offset(i), first_byte(inputs[i]),
                  bytes_of(inputs[i]));
    }
  }
  if (staged) {
    copy_with(clock, {.is_pinned = true, .bytes = static_cast<int64_t>(inputs_.bytes())}, [&] {
      cuda::copy_to_device(inputs_.data(), staged->memory.data(), inputs_.bytes(), stream_);
    });
    staged->settled.record(stream_);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_.has_slot(i) && inputs[i].device() == device_)
      cuda::copy_on_device(inputs_.slot(i), first_byte(inputs[i]), bytes_of(inputs[i]), stream_);
  }
}

// Tensors that have a slot need memory of their own only where they stay on the device; else they stand for
// their shapes.
Tensors CudaRunner::results_with_memory(bool for_slots_too) {
  Tensors results;
  for (size_t i = 0; i < result_types().size(); ++i) {
    const TensorType& type = result_types()[i];
    const bool has_memory = for_slots_too || !outputs_.has_slot(i);
    results.push_back(empty(type.shape, type.dtype, has_memory ? device_ : Device::null()));
    if (!outputs_.has_slot(i))
      bound_.set_address(compiler::Place::output, static_cast<int>(i),
                         first_byte(results[static_cast<int>(i)]));
  }
  return results;
}

std::shared_ptr<HostSlot> CudaRunner::fetch_results(CopyClock* clock) {
  std::shared_ptr<HostSlot> slot = fetched_.take(outputs_.bytes());
  const HostCopy copy{
      .is_to_device = false, .is_pinned = true, .bytes = static_cast<int64_t>(outputs_.bytes())};
  copy_with(clock, copy, [&] {
    cuda::copy_to_host(slot->memory.data(), outputs_.data(), outputs_.bytes(), stream_);
  });
  slot->settled.record(stream_);
  return slot;
}

Tensors CudaRunner::run(std::span<const Tensor> inputs, KernelTimes* times) {
  CopyClock clock(stream_);
  give_inputs(inputs, times ? &clock : nullptr);
  const Tensors results = results_with_memory(true);
  const bool is_fixed = inputs_.holds_all() && outputs_.holds_all();
  times ? bound_.run_timed(*times) : bound_.run(is_fixed);
  if (times) {  // results go to the host as behind `enqueue`
    if (outputs_.bytes() > 0) fetch_results(&clock);
    times->copies = clock.finish();
  }
  for (int i = 0; i < results.size(); ++i) {
    const auto index = static_cast<size_t>(i);
    if (outputs_.has_slot(index))
      cuda::copy_on_device(first_byte(results[i]), outputs_.slot(index), bytes_of(results[i]),
                           stream_);
  }
  return results;
}

PendingResults CudaRunner::enqueue(std::span<const Tensor> inputs) {
  give_inputs(inputs, nullptr);
  Tensors results = results_with_memory(false);
  bound_.run(inputs_.holds_all() && outputs_.holds_all());
  if (outputs_.bytes() == 0) return PendingResults(std::move(results));
  return {std::move(results), outputs_, fetch_results(nullptr)};
}

}  // namespace brrr::runtime
