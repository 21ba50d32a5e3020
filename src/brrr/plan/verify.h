// Predict, run, reconcile: a step is planned on the null device, then really run here, and every difference is
// attributed, seconds to kinds of kernels and bytes to categories.
#pragma once

#include "brrr/device/ledger.h"
#include "brrr/plan/profile.h"
#include "brrr/train/step_spec.h"

namespace brrr::plan {

// Bytes of one category of the ledger.
struct MemoryLine {
  std::string what;
  int64_t predicted = 0, measured = 0;
};

struct VerifyOptions {
  int steps = 5;
  const hardware::Rates* rates = nullptr;  // none: calibrated between the steps
};

// What the driver of a GPU says is in use there, beside what brrr has on its books.
struct DriverMemory {
  int64_t books = 0;  // tensors and programs, to the byte
  int64_t held = 0;   // taken from the driver for them: rounded to blocks, and those kept for reuse
  int64_t used = 0;   // of the whole GPU: context, code of kernels, libraries, other processes
};

struct Verification {
  int64_t parameters = 0;
  std::vector<MemoryLine> memory;
  std::optional<DriverMemory> driver;  // on a GPU
  Profile profile;                     // predicted and measured, kernel by kernel
  double predicted_seconds = 0, measured_seconds = 0;
  // Time of the whole step that no kernel has, where clocks are apart: binding inputs, drift of the machine.
  double between_kernels() const { return measured_seconds - profile.kernel_seconds; }
  double error() const { return predicted_seconds / measured_seconds - 1; }
  bool memory_is_exact() const;
};

// On the target of the step. The memory of everything else that lives there is left out.
Verification verify_step(const training::StepSpec& spec, const VerifyOptions& verify = {});

}  // namespace brrr::plan
