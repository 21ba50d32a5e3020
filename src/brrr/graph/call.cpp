#include "brrr/graph/call.h"

#include <utility>

#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/count.h"
#include "brrr/graph/cuda_launch.h"
#include "brrr/graph/tape.h"
#include "brrr/graph/trace.h"

namespace brrr {
namespace {

constinit thread_local CostCounter* innermost_counter = nullptr;

using TypeRefs = SmallVector<TypeRef, 4>;
using Operands = SmallVector<Operand, 6>;

Device device_of(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
  if (inputs.empty()) return attrs.get<Device>("device");
  const Device device = inputs[0].device();
  for (const Tensor& input : inputs.subspan(1)) {
    check(input.device() == device, op.name, ": operands live on different devices, ", device,
          " and ", input.device(), "; move one with to(x, device)");
  }
  return device;
}

TypeRefs types_of(std::span<const Tensor> inputs) {
  TypeRefs types;
  for (const Tensor& input : inputs) {
    const TensorBody& body = input.body();
    types.push_back({&body.layout.shape, body.dtype, body.weak});
  }
  return types;
}

bool any_wants_grad(std::span<const Tensor> inputs) {
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) return true;
  }
  return false;
}

Operand operand_of(const Tensor& x) {
  check(!x.storage().is_traced(), "this tensor (", describe(x),
        ") belongs to a trace that has ended; return it from the compiled function instead");
  return {x.storage().data(), &x.layout(), x.dtype()};
}

// Whether a call on this device is one kernel; otherwise it runs as its composition.
bool has_kernel(const OpDef& op, Device device) {
  return device.is_accelerator() ? find_cuda_kernel(op) != nullptr : op.cpu != nullptr;
}

void run_cuda_kernel(const OpDef& op, int device, std::span<const Operand> operands, size_t inputs,
                     const Attrs& attrs) {
  const CudaKernel* const kernel = find_cuda_kernel(op);
  check(kernel && kernel->run, op.name, ": has no CUDA kernel",
        cuda::is_built() ? "" : " in this build", "; move the operands to the cpu");
  CudaCall call{op, operands.first(inputs), operands.subspan(inputs),  attrs,
                {}, cuda::stream(device),   cuda::device_facts(device)};
  Ref<Storage> scratch;
  const int64_t bytes = kernel->workspace ? kernel->workspace(call) : 0;
  if (bytes > 0) {
    scratch = Storage::allocate(Device::cuda(device), bytes, Category::workspace);
    call.workspace = {scratch->data(), static_cast<size_t>(bytes)};
  }
  launch_cuda(*kernel, call);
}

void run_kernel(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
                std::span<const Tensor> outputs) {
  Operands operands;
  for (const Tensor& input : inputs) operands.push_back(operand_of(input));
  for (const Tensor& output : outputs) operands.push_back(operand_of(output));
  const std::span<const Operand> all(operands);
  const Device device = outputs.front().device();
  if (device.is_accelerator()) return run_cuda_kernel(op, device.index, all, inputs.size(), attrs);
  invariant(op.cpu != nullptr, op.name, " has no cpu kernel");
  KernelCall call{op,           all.first(inputs.size()), all.subspan(inputs.size()), attrs, {},
                  thread_pool()};
  Ref<Storage> scratch;
  if (op.workspace) {
    const int64_t bytes = op.workspace(call);
    if (bytes > 0) {
      scratch = Storage::allocate(Device::cpu(), bytes, Category::workspace);
      call.workspace = {scratch->data(), static_cast<size_t>(bytes)};
    }
  }
  op.cpu(call);
}

void count_cost(const InferCall& call, std::span<const TensorType> outputs) {
  if (innermost_counter) innermost_counter->add(call.op, cost_of({call, outputs}));
}

// An op that is a kernel elsewhere is priced as one, whatever it runs as here.
Tensors run_composition(const InferCall& call, std::span<const Tensor> inputs,
                        std::span<const TensorType> types) {
  NoGrad pieces_are_not_recorded;
  if (!call.op.cpu) return call.op.compose({inputs, call.attrs});
  CostCounter* const counter = std::exchange(innermost_counter, nullptr);
  try {
    Tensors outputs = call.op.compose({inputs, call.attrs});
    innermost_counter = counter;
    count_cost(call, types);
    return outputs;
  } catch (...) {
    innermost_counter = counter;
    throw;
  }
}

Tensors make_outputs(std::span<const TensorType> types, Device device) {
  Tensors outputs;
  for (const TensorType& type : types) {
    outputs.push_back(empty(type.shape, type.dtype, device));
    outputs[outputs.size() - 1].body().weak = type.weak;
  }
  return outputs;
}

}  // namespace

Tensors call_op(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
  const Device device = device_of(op, inputs, attrs);
  const TypeRefs input_types = types_of(inputs);
  const InferCall infer_call{op, input_types, attrs};
  const bool tracked = grad_enabled() && any_wants_grad(inputs);
  if (graph::GradWatch* watch = graph::GradWatch::current(); watch && !grad_enabled())
    watch->see(inputs);

  if (op.view) {
    graph::Tracer* tracer = graph::Tracer::current();
    Tensors outputs{tracer ? tracer->record_view(op, inputs[0], attrs)
                           : make_view(inputs[0], op.view(inputs[0].layout(), attrs))};
    if (tracked) make_ref<graph::TapeRecord>(op, inputs, attrs)->attach_outputs(outputs);
    return outputs;
  }
  const TensorTypes types = op.infer(infer_call);
  if (op.compose && tracked && !op.grad) return op.compose({inputs, attrs});  // records its pieces

  Tensors outputs;
  if (op.cpu && graph::Tracer::current()) {
    outputs = graph::Tracer::current()->record(op, inputs, attrs, types, device);
  } else if (has_kernel(op, device) || !op.compose) {
    outputs = make_outputs(types, device);
    if (device.has_data()) run_kernel(op, inputs, attrs, outputs);
    count_cost(infer_call, types);
  } else {
    outputs = run_composition(infer_call, inputs, types);
  }
  if (tracked && op.grad) make_ref<graph::TapeRecord>(op, inputs, attrs)->attach_outputs(outputs);
  return outputs;
}

void call_into(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
               const Tensor& output) {
  device_of(op, inputs, attrs);
  check(inputs.empty() || inputs[0].device() == output.device(), op.name, ": the result lives on ",
        output.device(), " and the operands on ", inputs[0].device(),
        "; move one with to(x, device)");
  invariant(op.kind == OpKind::elementwise || output.is_contiguous(), op.name,
            " writes contiguous results only");
  const TypeRefs input_types = types_of(inputs);
  const InferCall infer_call{op, input_types, attrs};
  const TensorTypes types = op.infer(infer_call);
  check(types[0].shape == output.shape(), op.name, ": result of shape ", types[0].shape,
        " does not fit the elements of shape ", output.shape());
  if (graph::Tracer* tracer = graph::Tracer::current()) {
    tracer->record_write(op, inputs, attrs, types[0], output);
    output.storage().mark_written();
    return;
  }
  if (output.device().has_data()) run_kernel(op, inputs, attrs, {&output, 1});
  output.storage().mark_written();
  const TensorType written = output.type();
  count_cost(infer_call, {&written, 1});
}

bool is_counting() { return innermost_counter != nullptr; }
void count_work(const OpDef& op, const Cost& cost) {
  if (innermost_counter) innermost_counter->add(op, cost);
}

CostCounter::CostCounter() : outer_(std::exchange(innermost_counter, this)) {}
CostCounter::~CostCounter() { innermost_counter = outer_; }

void CostCounter::add(const OpDef& op, const Cost& cost) {
  total_ += cost;
  if (op.kind == OpKind::contraction) contractions_ += cost;
  ++calls_;
  if (outer_) outer_->add(op, cost);
}

}  // namespace brrr
