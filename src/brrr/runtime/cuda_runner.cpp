#include "brrr/runtime/cuda_runner.h"

#include "brrr/ops/copy.h"

namespace brrr {
namespace {

// Copying this much costs less than launching a program kernel by kernel.
constexpr int64_t kSlotBytes = int64_t{4} << 20;

int64_t bytes_of(const TensorType& type) { return storage_bytes(type.dtype, numel(type.shape)); }

std::byte* first_byte(const Tensor& x) {
  return x.storage().data() + storage_bytes(x.dtype(), x.offset());
}

Ref<Storage> slot_for(const TensorType& type, Device device, Category category) {
  if (bytes_of(type) > kSlotBytes) return {};
  return Storage::allocate(device, std::max<int64_t>(bytes_of(type), 16), category);
}

}  // namespace

CudaRunner::CudaRunner(const CompiledProgram& program, std::byte* arena, Device device)
    : program_(program),
      device_(device),
      stream_(cuda::stream(device.index)),
      bound_(program.kernels, arena, device.index) {
  const Graph& graph = program.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs_.push_back(slot_for(graph.type(graph.inputs[i].value), device, Category::data));
    is_fixed_ = is_fixed_ && inputs_.back();
    if (inputs_.back())
      bound_.set_address(Place::input, static_cast<int>(i), inputs_.back()->data());
  }
  for (size_t i = 0; i < program.kernels.list.outputs.size(); ++i) {
    outputs_.push_back(slot_for(program.kernels.list.outputs[i], device, Category::workspace));
    is_fixed_ = is_fixed_ && outputs_.back();
    if (outputs_.back())
      bound_.set_address(Place::output, static_cast<int>(i), outputs_.back()->data());
  }
  for (size_t i = 0; i < graph.states.size(); ++i)
    bound_.set_address(Place::state, static_cast<int>(i), first_byte(graph.states[i].tensor));
}

void CudaRunner::wait() const { cuda::wait(stream_); }

void CudaRunner::give_input(size_t i, const Tensor& x) {
  const auto bytes = static_cast<size_t>(storage_bytes(x.dtype(), x.numel()));
  if (!inputs_[i]) {
    NoGrad nothing_is_recorded;
    held_.push_back(x.device() == device_ ? x : to(x.detach(), device_));
    bound_.set_address(Place::input, static_cast<int>(i), first_byte(held_.back()));
  } else if (x.device() == device_) {
    cuda::copy_on_device(inputs_[i]->data(), first_byte(x), bytes, stream_);
  } else {
    cuda::copy_to_device(inputs_[i]->data(), first_byte(x), bytes, stream_);
  }
}

Tensors CudaRunner::run(std::span<const Tensor> inputs, KernelTimes* times) {
  held_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) give_input(i, inputs[i]);
  Tensors results;
  const std::vector<TensorType>& types = program_.kernels.list.outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back(empty(types[i].shape, types[i].dtype, device_));
    if (!outputs_[i])
      bound_.set_address(Place::output, static_cast<int>(i),
                         first_byte(results[static_cast<int>(i)]));
  }
  times ? bound_.run_timed(*times) : bound_.run(is_fixed_);
  for (size_t i = 0; i < types.size(); ++i) {
    if (outputs_[i])
      cuda::copy_on_device(first_byte(results[static_cast<int>(i)]), outputs_[i]->data(),
                           static_cast<size_t>(bytes_of(types[i])), stream_);
  }
  return results;
}

}  // namespace brrr
