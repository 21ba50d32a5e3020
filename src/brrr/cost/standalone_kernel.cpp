#include "brrr/cost/standalone_kernel.h"

#include <algorithm>
#include <cmath>

#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/view/views.h"

namespace brrr::cost {
namespace {

// Elements from the first to the last one that a layout shows.
int64_t extent(const Layout& layout) {
  if (numel(layout.shape) == 0) return 0;
  int64_t last = layout.offset;
  for (int axis = 0; axis < layout.rank(); ++axis)
    last += (layout.shape[axis] - 1) * layout.strides[axis];
  return last + 1;
}

int64_t bytes_of(const compiler::OperandRef& ref) {
  return storage_bytes(ref.dtype, extent(ref.layout));
}

// The statistics of attention have to fit its scores, or probabilities would overflow.
std::optional<double> fixed_value(const compiler::Kernel& kernel, size_t input) {
  constexpr size_t kLogsumexp = 4, kLogsumexpGrad = 6;
  if (kernel.role() != OpRole::attention_backward) return {};
  if (input == kLogsumexp) {
    const auto keys = static_cast<double>(kernel.inputs[1].layout.shape[2]);
    return std::log(std::max(keys, 1.0));
  }
  return input == kLogsumexpGrad ? std::optional(0.0) : std::nullopt;
}

Tensor random_floats(int64_t count, DType dtype, Device device, uint32_t draw) {
  const RandomKey key{.seed = 1, .stream = 2, .draw = draw};
  const bool is_wide = dtype == DType::f32 || dtype == DType::f64;
  const bool is_half = dtype == DType::bf16 || dtype == DType::f16;
  const DType made = is_wide || is_half ? dtype : DType::bf16;
  return cast(uniform({count}, key, {-1, 1}, {.dtype = made, .device = device}), dtype);
}

Tensor elements_of(const compiler::Kernel& kernel, size_t input, Device device, int64_t ids_below) {
  const compiler::OperandRef& ref = kernel.inputs[input];
  const int64_t count = extent(ref.layout);
  const auto draw = static_cast<uint32_t>(input);
  if (const std::optional<double> value = fixed_value(kernel, input))
    return full({count}, *value, {.dtype = ref.dtype, .device = device});
  if (is_float(ref.dtype)) return random_floats(count, ref.dtype, device, draw);
  const RandomKey key{.seed = 1, .stream = 3, .draw = draw};
  return randint({count}, key, 0, std::max<int64_t>(ids_below, 1),
                 {.dtype = ref.dtype, .device = device});
}

int64_t workspace_bytes(const compiler::Kernel& kernel, Device device) {
  std::vector<Operand> inputs, outputs;
  for (const compiler::OperandRef& ref : kernel.inputs)
    inputs.push_back({nullptr, &ref.layout, ref.dtype});
  for (const compiler::OperandRef& ref : kernel.outputs)
    outputs.push_back({nullptr, &ref.layout, ref.dtype});
  return cuda_workspace_bytes(*kernel.op, inputs, outputs, kernel.attrs,
                              cuda::device_facts(device.index));
}

// Products draw what the GPU's power limit allows, and in a step everything else runs at the clocks that they leave;
// measured after a rest attention would be a fifth faster. As long as the limit takes to show.
void heat(Device device) {
  constexpr int64_t kSize = 8192;
  constexpr int kProducts = 50;  // 1.4 ms each on an H200
  const Tensor a = reshape(random_floats(kSize * kSize, DType::bf16, device, 0), {kSize, kSize});
  for (int i = 0; i < kProducts; ++i) matmul(a, a);
}
bool is_cool(const compiler::Kernel& kernel) { return kernel.op && is_attention(*kernel.op); }

// The operands of a kernel in memory of their own, ready to be enqueued.
class Alone {
 public:
  Alone(const compiler::Kernel& kernel, Device device, int64_t ids_below)
      : kernel_(kernel), device_(device), stream_(cuda::stream(device.index)) {
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      add(elements_of(kernel, i, device, ids_below), kernel.inputs[i], inputs_);
    for (const compiler::OperandRef& ref : kernel.outputs)
      add(empty({extent(ref.layout)}, ref.dtype, device), ref, outputs_);
    if (const int64_t bytes = workspace_bytes(kernel, device); bytes > 0) {
      held_.push_back(empty({bytes}, DType::u8, device));
      workspace_ = {held_.back().storage().data(), static_cast<size_t>(bytes)};
    }
  }

  void enqueue() const {
    find_cuda_kernel(*kernel_.op)
        ->run({*kernel_.op, inputs_, outputs_, kernel_.attrs, workspace_, stream_,
               cuda::device_facts(device_.index)});
  }

  // Calls captured together, launched until the clock of the GPU has settled, then timed.
  double seconds(int rounds) const {
    constexpr double kSettle = 1e-2, kLongEnough = 2e-3;
    constexpr double kMostCalls = 200;
    for (int i = 0; i < 2; ++i) enqueue();  // loads code, chooses algorithms
    const double once = timed([&] { enqueue(); });
    const int calls = static_cast<int>(std::clamp(kLongEnough / once, 1.0, kMostCalls));
    cuda::Capture capture(stream_);
    for (int i = 0; i < calls; ++i) enqueue();
    const cuda::Graph graph = capture.finish();
    const auto replay = [&] { graph.launch(stream_); };
    for (double spent = 0; spent < kSettle;) spent += timed(replay);
    if (is_cool(kernel_)) heat(device_);
    std::vector<double> all;
    for (int i = 0; i < rounds; ++i) all.push_back(timed(replay) / calls);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

 private:
  void add(const Tensor& elements, const compiler::OperandRef& ref,
           std::vector<Operand>& operands) {
    held_.push_back(elements);
    operands.push_back({elements.storage().data(), &ref.layout, ref.dtype});
  }

  template <typename Work>
  double timed(const Work& work) const {
    cuda::Event begin, end;
    begin.record(stream_);
    work();
    end.record(stream_);
    end.wait();
    return cuda::seconds_between(begin, end);
  }

  const compiler::Kernel& kernel_;
  const Device device_;
  const cuda::Stream stream_;
  std::vector<Tensor> held_;
  std::vector<Operand> inputs_, outputs_;
  std::span<std::byte> workspace_;
};

// Operands, and as much again for the largest while its elements are made.
bool fits(const compiler::Kernel& kernel, Device device) {
  int64_t bytes = workspace_bytes(kernel, device), largest = 0;
  for (const std::vector<compiler::OperandRef>* refs : {&kernel.inputs, &kernel.outputs}) {
    for (const compiler::OperandRef& ref : *refs) {
      bytes += bytes_of(ref);
      largest = std::max(largest, bytes_of(ref));
    }
  }
  cuda::return_kept_blocks(device.index);
  return bytes + 2 * largest < cuda::memory_state(device.index).free;
}

}  // namespace

compiler::OperandRef operand(DType dtype, const Shape& shape) {
  return {.buffer = {}, .layout = contiguous_layout(shape), .dtype = dtype};
}
compiler::OperandRef operand(DType dtype, const Layout& layout) {
  return {.buffer = {}, .layout = layout, .dtype = dtype};
}

compiler::Kernel make_kernel(const OpDef& op, std::vector<compiler::OperandRef> inputs,
                             const Attrs& attrs) {
  std::vector<TypeRef> types;
  int64_t elements = 0;
  for (const compiler::OperandRef& ref : inputs) {
    types.push_back({&ref.layout.shape, ref.dtype, false});
    elements = std::max(elements, numel(ref.layout.shape));
  }
  const InferCall call{op, types, attrs};
  const TensorTypes results = op.infer(call);
  compiler::Kernel kernel{.op = &op, .attrs = attrs};
  for (const TensorType& type : results) {
    kernel.outputs.push_back(operand(type.dtype, type.shape));
    elements = std::max(elements, numel(type.shape));
  }
  kernel.cost = cost_of({call, {results.begin(), results.end()}});
  kernel.inputs = std::move(inputs);
  kernel.name = op.name;
  kernel.parts = {{&op, elements}};
  return kernel;
}

std::optional<double> seconds_alone(const compiler::Kernel& kernel, Device device,
                                    const AloneOptions& options) {
  const CudaKernel* const found = kernel.op ? find_cuda_kernel(*kernel.op) : nullptr;
  if (!found || !found->run || kernel.generated || !fits(kernel, device)) return {};
  return Alone(kernel, device, options.ids_below).seconds(options.rounds);
}

}  // namespace brrr::cost
