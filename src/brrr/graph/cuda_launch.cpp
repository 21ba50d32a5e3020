#include "brrr/graph/cuda_launch.h"

#include <atomic>

#include "brrr/device/cuda/runtime.h"

namespace brrr {

namespace {
std::atomic<bool> waits = false;
}  // namespace

void wait_for_cuda_kernels(bool wait) { waits = wait; }
bool waits_for_cuda_kernels() { return waits; }

void launch_cuda(const CudaKernel& kernel, const CudaCall& call) {
  try {
    kernel.run(call);
    if (waits_for_cuda_kernels() && !cuda::is_capturing(call.stream)) cuda::wait(call.stream);
  } catch (const Error& error) {
    const std::string_view words = error.what();
    if (!words.starts_with("cuda: ")) throw;  // the op has said all that there is
    fail(words, "; it ran ", to_text(call));
  }
}

std::string to_text(const CudaCall& call) {
  std::string text = join_text(call.op.name, " of");
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& x = call.inputs[i];
    text += join_text(i == 0 ? " " : ", ", x.dtype, x.shape());
    if (!x.layout->is_contiguous()) text += join_text(" strides ", x.layout->strides);
  }
  text += " ->";
  for (size_t i = 0; i < call.outputs.size(); ++i)
    text += join_text(i == 0 ? " " : ", ", call.outputs[i].dtype, call.outputs[i].shape());
  if (call.attrs.size() > 0) text += join_text(" {", to_text(call.attrs), "}");
  return text;
}

}  // namespace brrr
