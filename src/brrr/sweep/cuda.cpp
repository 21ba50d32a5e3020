#include "brrr/sweep/cuda.h"

#include <algorithm>
#include <vector>

#include "brrr/autodiff/grad.h"
#include "brrr/base/philox.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/call.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/sweep/compare.h"
#include "brrr/sweep/layouts.h"

namespace brrr::sweep {
namespace {

uint64_t seed_of_run = 0;

const Device kGpu = Device::cuda(0);

DType main_dtype(const OpDef& op) {
  return op.dtypes.contains(DType::f32) ? DType::f32 : DType::i64;
}

// Every float of the samples times 1 + u / 1000, u in [-1, 1): other bits each run, the same domain (signs,
// order of magnitude, distance from kinks).
void move_a_little(Case& c) {
  uint64_t index = 0;
  for (int i = 0; i < c.inputs.size(); ++i) {
    if (!c.takes_dtype[static_cast<size_t>(i)] || !is_float(c.dtype)) continue;
    c.inputs[i] = clone(c.inputs[i]);
    for_each_element(c.inputs[i].layout(), [&](int64_t element) {
      const PhiloxBlock bits = philox4x32(philox_counter(index++, static_cast<uint32_t>(c.index)),
                                          philox_key(seed_of_run));
      const double moved = load_float(c.inputs[i], element) *
                           (1 + (2 * static_cast<double>(uniform01(bits.v[0])) - 1) / 1000);
      store_float(c.inputs[i], element, moved);
    });
  }
}

std::vector<Case> fresh_cases(const OpDef& op, DType dtype) {
  std::vector<Case> cases = cases_of(op, dtype);
  for (Case& c : cases) move_a_little(c);
  return cases;
}

Case on_gpu(const Case& c) {
  Case moved = c;
  for (Tensor& input : moved.inputs) input = to(input, kGpu);
  moved.attrs = {};
  for (const Attr& attr : c.attrs)
    moved.attrs.add(attr.name == "device" ? Attr{"device", kGpu} : attr);
  return moved;
}

// Both sides round: each may be off by the tolerance of the op.
double tolerance_beside_cpu(const OpDef& op, DType dtype) {
  return 2 * op.tolerance * tolerance_of(dtype);
}

void require_like_cpu(const Case& c, std::string_view what, const Tensors& got,
                      const Tensors& expected) {
  check(got.size() == expected.size(), c, ": ", what, " has ", got.size(), " results, not ",
        expected.size());
  for (int i = 0; i < got.size(); ++i) {
    check(got[i].device() == kGpu, c, ": ", what, " is on ", got[i].device());
    require_close(c, what, to(got[i], Device::cpu()), expected[i],
                  tolerance_beside_cpu(*c.op, expected[i].dtype()));
  }
}

// ---- The checks.

void check_values(const OpDef& op) {
  for (DType dtype : kAllDTypes) {
    if (!op.dtypes.contains(dtype) || is_packed(dtype)) continue;
    for (const Case& c : fresh_cases(op, dtype)) {
      if (is_large(c) && dtype != main_dtype(op) && dtype != DType::bf16) continue;
      require_like_cpu(c, "the result on the GPU", run_case(on_gpu(c)), run_case(c));
    }
  }
}

void check_layouts(const OpDef& op) {
  for (const Case& c : fresh_cases(op, main_dtype(op))) {
    const Tensors expected = run_case(c);
    for (const auto& [what, change] : {std::pair{"strided input on the GPU", &spread_out},
                                       std::pair{"reversed axes on the GPU", &reversed_in_memory},
                                       std::pair{"unaligned input on the GPU", &unaligned}}) {
      if (refuses_strides(op) && change != &unaligned) continue;
      Case changed = on_gpu(c);
      for (Tensor& input : changed.inputs) input = change(input);
      require_like_cpu(c, what, run_case(changed), expected);
    }
  }
}

// Poisoned memory on the device, with a guard on both sides.
class GuardedDeviceBytes {
 public:
  explicit GuardedDeviceBytes(int64_t bytes)
      : bytes_(bytes), storage_(empty({bytes + 2 * kGuard}, DType::u8, kGpu)) {
    cuda::fill_bytes(storage_.storage().data(), kPattern, static_cast<size_t>(bytes + 2 * kGuard),
                     cuda::stream(0));
  }
  std::byte* data() const { return storage_.storage().data() + kGuard; }
  bool intact() const {
    const std::vector<uint8_t> seen = to(storage_, Device::cpu()).to_vector<uint8_t>();
    const auto guards = {std::pair{int64_t{0}, kGuard},
                         std::pair{kGuard + bytes_, 2 * kGuard + bytes_}};
    return std::all_of(guards.begin(), guards.end(), [&](const auto& guard) {
      return std::all_of(seen.begin() + guard.first, seen.begin() + guard.second,
                         [](uint8_t byte) { return byte == kPattern; });
    });
  }

 private:
  static constexpr int64_t kGuard = 256;
  static constexpr int kPattern = 0xff;  // NaN in every float dtype, and no index
  int64_t bytes_;
  Tensor storage_;
};

// Runs the kernel itself, twice: on poisoned outputs in guarded memory, and again; all elements written,
// nothing beside them, the same bits.
void check_kernel(const OpDef& op) {
  const CudaKernel* const kernel = find_cuda_kernel(op);
  if (!kernel || !kernel->run) return;
  for (const Case& c : fresh_cases(op, main_dtype(op))) {
    const Tensors expected = run_case(c);
    const Case gpu = on_gpu(c);
    std::vector<Tensors> rounds;
    for (int round = 0; round < 2; ++round) {
      SmallVector<Operand, 6> operands;
      for (const Tensor& x : gpu.inputs)
        operands.push_back({x.storage().data(), &x.layout(), x.dtype()});
      std::vector<GuardedDeviceBytes> buffers;
      for (const Tensor& y : expected) buffers.emplace_back(y.bytes().value());
      for (int i = 0; i < expected.size(); ++i)
        operands.push_back(
            {buffers[static_cast<size_t>(i)].data(), &expected[i].layout(), expected[i].dtype()});
      const std::span<const Operand> all(operands);
      const auto inputs = static_cast<size_t>(gpu.inputs.size());
      CudaCall call{op, all.first(inputs), all.subspan(inputs),  gpu.attrs,
                    {}, cuda::stream(0),   cuda::device_facts(0)};
      const int64_t bytes = kernel->workspace ? kernel->workspace(call) : 0;
      const GuardedDeviceBytes workspace(bytes);
      if (bytes > 0) call.workspace = {workspace.data(), static_cast<size_t>(bytes)};
      kernel->run(call);
      cuda::wait(cuda::stream(0));
      check(workspace.intact(), c, ": the CUDA kernel wrote outside its workspace");
      Tensors got;
      for (int i = 0; i < expected.size(); ++i) {
        const auto b = static_cast<size_t>(i);
        check(buffers[b].intact(), c, ": the CUDA kernel wrote outside its output");
        const Tensor y = empty(expected[i].shape(), expected[i].dtype());
        cuda::copy_to_host(y.storage().data(), buffers[b].data(),
                           static_cast<size_t>(y.bytes().value()), cuda::stream(0));
        got.push_back(y);
      }
      cuda::wait(cuda::stream(0));
      for (int i = 0; i < got.size(); ++i)
        require_close(c, "the CUDA kernel on poisoned memory", got[i], expected[i],
                      tolerance_beside_cpu(op, expected[i].dtype()));
      rounds.push_back(got);
    }
    for (int i = 0; i < expected.size(); ++i)
      require_same_bits(c, "running the CUDA kernel again", rounds[1][i], rounds[0][i]);
  }
}

// d (weighted sum of the float results) / d each float input.
std::vector<Tensor> gradients_of(const Case& c) {
  Case leaves = c;
  std::vector<Tensor> wanted;
  for (Tensor& input : leaves.inputs) {
    input = clone(input);
    if (is_float(input.dtype())) wanted.push_back(input.require_grad());
  }
  Tensor total;
  uint32_t seed = 700;
  for (const Tensor& result : run_case(leaves)) {
    if (!is_float(result.dtype()) || !result.requires_grad()) continue;
    // Weights that differ: the sum of a softmax has no slope at all.
    const Tensor weights = to(sample_values(result.shape(), seed++, -1, 1), result.device());
    const Tensor part = sum(cast(result, DType::f64) * weights);
    total = total.defined() ? total + part : part;
  }
  if (!total.defined() || wanted.empty()) return {};
  return grad(total, wanted);
}

void check_gradients_on_gpu(const OpDef& op) {
  if (!is_differentiable(op) || !op.dtypes.contains(DType::f32)) return;
  for (DType dtype : {DType::f32, DType::bf16}) {
    if (!op.dtypes.contains(dtype)) continue;
    for (const Case& c : fresh_cases(op, dtype)) {
      const std::vector<Tensor> expected = gradients_of(c), got = gradients_of(on_gpu(c));
      check(got.size() == expected.size(), c, ": ", got.size(), " gradients on the GPU, ",
            expected.size(), " on the cpu");
      for (size_t i = 0; i < got.size(); ++i) {
        if (!expected[i].defined()) continue;
        // Gradients go through several kernels, each of which rounds.
        require_close(c, "the gradient on the GPU", to(got[i], Device::cpu()), expected[i],
                      4 * tolerance_beside_cpu(op, expected[i].dtype()));
      }
    }
  }
}

constexpr Check kChecks[] = {
    {"cuda_values", "gives on a GPU what it gives on the cpu, in every dtype", check_values},
    {"cuda_layouts", "does not depend on strides, offsets or alignment on a GPU", check_layouts},
    {"cuda_kernel", "writes all of its poisoned outputs, nothing beside, the same bits twice",
     check_kernel},
    {"cuda_gradients", "has on a GPU the gradients that it has on the cpu", check_gradients_on_gpu},
};

}  // namespace

std::span<const Check> cuda_checks() { return kChecks; }
void set_cuda_seed(uint64_t seed) { seed_of_run = seed; }

}  // namespace brrr::sweep
