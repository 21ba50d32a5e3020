// A CUDA GPU: matmuls by cuBLASLt with what it does to their results, kernels generated as text for everything that is
// elementwise or a sum, and kernels of our own for the rest (kernel_table.cpp).
#include "brrr/backends/backends.h"
#include "brrr/backends/cuda/passes.h"
#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/ledger.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/runtime/cuda/cuda_runner.h"

namespace brrr::backends {
namespace {

constexpr int64_t kAlignment = 256;  // what cudaMalloc gives, and the widest loads want

// Without a compiler for generated kernels every op runs by its own.
compiler::FuseOptions fuse_options(const compiler::Target& target) {
  compiler::FuseOptions fusing{.enabled = target.generates};
  if (!target.generates) return fusing;
  constexpr int kMaxNodes = 512;    // values between them are registers, not tiles in a cache
  constexpr int kMaxNumbers = 480;  // pointers in the 4 KiB that parameters of a launch may have
  fusing.max_nodes = kMaxNodes;
  fusing.max_numbers = kMaxNumbers;
  fusing.streams = compiler::generated_streams;
  return fusing;
}

compiler::LowerOptions lower_options(const compiler::Target& target) {
  return {.generated = target.generates, .strided_outputs = [](const OpDef& op) -> uint32_t {
            const CudaKernel* const kernel = find_cuda_kernel(op);
            return kernel ? kernel->strided_outputs : 0;
          }};
}

int64_t workspace_bytes(const compiler::Kernel& kernel, const Chip& chip) {
  if (kernel.body) return kernel.body->plan.arena_bytes;
  if (kernel.generated) return kernel.generated->workspace_bytes;
  if (!kernel.op) return 0;
  std::vector<Operand> inputs, outputs;
  for (const compiler::OperandRef& x : kernel.inputs)
    inputs.push_back({nullptr, &x.layout, x.dtype});
  for (const compiler::OperandRef& y : kernel.outputs)
    outputs.push_back({nullptr, &y.layout, y.dtype});
  return cuda_workspace_bytes(*kernel.op, inputs, outputs, kernel.attrs, chip);
}

void select(compiler::KernelList& list, const compiler::Target& target, ThreadPool&) {
  if (target.generates) compiler::generate_kernels(list, target.chip);
  compiler::add_workspaces(
      list, [&](const compiler::Kernel& kernel) { return workspace_bytes(kernel, target.chip); });
}

// A plan that does not fit is refused before anything runs, with who holds the memory.
void require_memory(Device device, Bytes arena) {
  const cuda::MemoryState state = cuda::memory_state(device.index);
  const Bytes room(state.free + state.kept_for_reuse);
  if (arena <= room) return;
  fail("out of memory by the plan: the program needs ", arena, " for what it computes, and ", room,
       " of ", Bytes(state.total), " are free on ", device, ", where tensors of this process hold ",
       ledger(device).live(), ", and the driver and other programs ",
       Bytes(state.total - state.free - state.held_by_brrr),
       "; use a smaller batch, or enable activation recomputation (--recompute)");
}

std::unique_ptr<runtime::Runner> bind(const compiler::CompiledProgram& program, std::byte* arena,
                                      Device device) {
  return std::make_unique<runtime::CudaRunner>(program, arena, device);
}

}  // namespace

const compiler::Backend& cuda_backend() {
  static const compiler::GraphPass kPasses[] = {compiler::passes::precision(),
                                                passes::expand(),
                                                compiler::passes::simplify(),
                                                compiler::passes::chunk_head(),
                                                compiler::passes::rematerialize(),
                                                passes::join_losses(),
                                                passes::gelu_epilogue(),
                                                passes::sum_epilogue(),
                                                passes::add_epilogue(),
                                                passes::fp8_products()};
  static const compiler::Backend kBackend{.name = "cuda",
                                          .passes = kPasses,
                                          .fuse_options = fuse_options,
                                          .lower_options = lower_options,
                                          .select = select,
                                          .alignment = kAlignment,
                                          .require_memory = require_memory,
                                          .bind = bind};
  return kBackend;
}

}  // namespace brrr::backends
