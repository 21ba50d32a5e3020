// Programs on the CPU, and the same without memory: kernels that are counted and not run.
#pragma once

#include "brrr/runtime/runner.h"

namespace brrr::runtime {

class CpuRunner final : public Runner {
 public:
  CpuRunner(const compiler::CompiledProgram& program, std::byte* arena);
  Tensors run(std::span<const Tensor> inputs, KernelTimes* times) override;
  void count_last_run() const override { bound_.count_last_run(); }

 private:
  const compiler::CompiledProgram& program_;
  BoundProgram bound_;
};

// On the null device, whatever the program was compiled for: results have shapes alone.
class CountingRunner final : public Runner {
 public:
  explicit CountingRunner(const compiler::CompiledProgram& program) : program_(program) {}
  Tensors run(std::span<const Tensor> inputs, KernelTimes* times) override;
  void count_last_run() const override { count_run(program_.kernels.list); }

 private:
  const compiler::CompiledProgram& program_;
};

}  // namespace brrr::runtime
