// The CPU: kernels stream tiles through the cache, threads take pieces.
#include "brrr/backends/backends.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/runtime/cpu/cpu_runner.h"

namespace brrr::backends {
namespace {

void select(compiler::KernelList& list, const compiler::Target&, ThreadPool& pool) {
  compiler::add_workspaces(list, [&](const compiler::Kernel& kernel) {
    return compiler::cpu_workspace_bytes(kernel, pool);
  });
}

std::unique_ptr<runtime::Runner> bind(const compiler::CompiledProgram& program, std::byte* arena,
                                      Device) {
  return std::make_unique<runtime::CpuRunner>(program, arena);
}

}  // namespace

const compiler::Backend& cpu_backend() {
  static const compiler::GraphPass kPasses[] = {
      compiler::passes::precision(), compiler::passes::simplify(), compiler::passes::chunk_head(),
      compiler::passes::rematerialize()};
  static const compiler::Backend kBackend{
      .name = "cpu",
      .passes = kPasses,
      .fuse_options = [](const compiler::Target&) { return compiler::FuseOptions{}; },
      .lower_options = [](const compiler::Target&) { return compiler::LowerOptions{}; },
      .select = select,
      .alignment = compiler::kArenaAlignment,
      .bind = bind};
  return kBackend;
}

}  // namespace brrr::backends
