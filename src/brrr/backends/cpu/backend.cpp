// The CPU: kernels stream tiles through the cache, threads take pieces.
#include "brrr/backends/backends.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/runtime/cpu/cpu_runner.h"

namespace brrr {
namespace {

void select(KernelList& list, const Target&, ThreadPool& pool) {
  add_workspaces(list, [&](const Kernel& kernel) { return cpu_workspace_bytes(kernel, pool); });
}

std::unique_ptr<Runner> bind(const CompiledProgram& program, std::byte* arena, Device) {
  return std::make_unique<CpuRunner>(program, arena);
}

}  // namespace

const Backend& cpu_backend() {
  static const GraphPass kPasses[] = {passes::precision(), passes::simplify(), passes::chunk_head(),
                                      passes::rematerialize()};
  static const Backend kBackend{.name = "cpu",
                                .passes = kPasses,
                                .fuse_options = [](const Target&) { return FuseOptions{}; },
                                .lower_options = [](const Target&) { return LowerOptions{}; },
                                .select = select,
                                .alignment = kArenaAlignment,
                                .bind = bind};
  return kBackend;
}

}  // namespace brrr
