#include "brrr/napkin/verify.h"

#include <algorithm>

#include "brrr/runtime/calibrate.h"
#include "brrr/runtime/stages.h"

namespace brrr {
namespace {

using Account = std::array<int64_t, kCategories>;

Account live_on(Device device) {
  Account account{};
  for (int i = 0; i < kCategories; ++i)
    account[static_cast<size_t>(i)] = ledger(device).live(static_cast<Category>(i)).value();
  return account;
}

Account difference(const Account& after, const Account& before) {
  Account result{};
  for (size_t i = 0; i < result.size(); ++i) result[i] = after[i] - before[i];
  return result;
}

// Everything that the program says of itself before it exists here.
struct PlannedMemory {
  Account made{};          // by the model, its optimizer and its batch
  int64_t arena = 0;       // of the program
  int64_t low_copies = 0;  // states that precision adds
};

PlannedMemory plan_memory_of(std::string_view model, StepOptions options) {
  options.device = Device::null();
  options.pipeline.device = Device::null();
  const Account before = live_on(Device::null());
  const ModelStep step(model, options);
  PlannedMemory planned;
  planned.made = difference(live_on(Device::null()), before);
  Graph joint = step.trace_step();
  const size_t own_states = joint.states.size();
  const PlannedProgram program = plan_program(std::move(joint), options.pipeline);
  planned.arena = program.plan.arena_bytes;
  const Graph& last = program.graph();
  for (size_t i = own_states; i < last.states.size(); ++i) {
    const TensorType& type = last.type(last.states[i].before);
    planned.low_copies += storage_bytes(type.dtype, numel(type.shape));
  }
  return planned;
}

}  // namespace

bool Verification::memory_is_exact() const {
  return std::all_of(memory.begin(), memory.end(),
                     [](const MemoryLine& line) { return line.predicted == line.measured; });
}

Verification verify_step(std::string_view model, const StepOptions& options,
                         const VerifyOptions& verify) {
  check(options.device == Device::cpu(), "verify runs on the cpu, not on ", options.device);
  const PlannedMemory planned = plan_memory_of(model, options);
  const Account empty_machine = live_on(Device::cpu());
  ModelStep step(model, options);
  const Account made = difference(live_on(Device::cpu()), empty_machine);
  const Bytes before_program = ledger(Device::cpu()).live();
  Executable& program = step.executable();
  const int64_t program_bytes = (ledger(Device::cpu()).live() - before_program).value();

  Verification result;
  result.parameters = step.parameter_count();
  for (int i = 0; i < kCategories; ++i) {
    const auto c = static_cast<size_t>(i);
    if (planned.made[c] != 0 || made[c] != 0)
      result.memory.push_back(
          {std::string(category_name(static_cast<Category>(i))), planned.made[c], made[c]});
  }
  result.memory.push_back(
      {"the program: arena and low copies", planned.arena + planned.low_copies, program_bytes});

  std::unique_ptr<Calibrator> calibrator;
  MeasureOptions measure{.steps = verify.steps};
  if (!verify.rates) {
    calibrator = std::make_unique<Calibrator>();
    measure.between = [&] { calibrator->round(); };
  }
  ledger(Device::cpu()).reset_peak();
  const StepTimes times = measure_steps(program, step.inputs(), measure);
  const Rates rates = calibrator ? calibrator->rates() : *verify.rates;
  result.profile = make_profile(program.kernels(), program.plan(), times, rates);
  result.predicted_seconds = result.profile.predicted_seconds;
  result.measured_seconds = times.step_seconds;
  return result;
}

}  // namespace brrr
