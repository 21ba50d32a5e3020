#include "brrr/napkin/verify.h"

#include <algorithm>

#include "brrr/device/cuda/runtime.h"
#include "brrr/device/default_device.h"
#include "brrr/runtime/calibrate.h"
#include "brrr/runtime/calibrate_cuda.h"
#include "brrr/runtime/cuda_program.h"
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
  Account made{};       // by the model, its optimizer and its batch
  int64_t program = 0;  // by the program
};

std::vector<TensorType> input_types(const Graph& graph) {
  std::vector<TensorType> types;
  for (const GraphInput& input : graph.inputs) types.push_back(graph.type(input.value));
  return types;
}

// The arena, the states that precision adds, and on a GPU the places of inputs and results.
int64_t program_bytes(const PlannedProgram& program, size_t own_states, Device device) {
  int64_t bytes = program.plan.arena_bytes;
  const Graph& last = program.graph();
  for (size_t i = own_states; i < last.states.size(); ++i) {
    const TensorType& type = last.type(last.states[i].before);
    bytes += storage_bytes(type.dtype, numel(type.shape));
  }
  if (device.kind != DeviceKind::cuda) return bytes;
  const Bytes slots = slot_bytes(input_types(last)) + slot_bytes(program.kernels.outputs);
  return bytes + (slots + side_bytes(program.kernels)).value();
}

PlannedMemory plan_memory_of(std::string_view model, StepOptions options) {
  const Device target = options.device;
  options.device = Device::null();
  options.pipeline.device = target.kind == DeviceKind::cuda ? target : Device::null();
  const Account before = live_on(Device::null());
  const ModelStep step(model, options);
  PlannedMemory planned{.made = difference(live_on(Device::null()), before)};
  Graph joint = step.trace_step();
  const size_t own_states = joint.states.size();
  planned.program =
      program_bytes(plan_program(std::move(joint), options.pipeline), own_states, target);
  return planned;
}

std::optional<DriverMemory> driver_memory(Device device) {
  if (device.kind != DeviceKind::cuda) return {};
  const cuda::MemoryState state = cuda::memory_state(device.index);
  return DriverMemory{.books = ledger(device).live().value(),
                      .held = state.held_by_brrr,
                      .used = state.total - state.free};
}

}  // namespace

bool Verification::memory_is_exact() const {
  return std::all_of(memory.begin(), memory.end(),
                     [](const MemoryLine& line) { return line.predicted == line.measured; });
}

Verification verify_step(std::string_view model, const StepOptions& options,
                         const VerifyOptions& verify) {
  const Device device = options.device;
  const DeviceScope scope(device);
  const PlannedMemory planned = plan_memory_of(model, options);
  const Account empty_machine = live_on(device);
  ModelStep step(model, options);
  const Account made = difference(live_on(device), empty_machine);
  const Bytes before_program = ledger(device).live();
  Executable& program = step.executable();
  const int64_t program_bytes = (ledger(device).live() - before_program).value();

  Verification result;
  result.parameters = step.parameter_count();
  for (int i = 0; i < kCategories; ++i) {
    const auto c = static_cast<size_t>(i);
    if (planned.made[c] != 0 || made[c] != 0)
      result.memory.push_back(
          {std::string(category_name(static_cast<Category>(i))), planned.made[c], made[c]});
  }
  result.memory.push_back({"the program: arena and low copies", planned.program, program_bytes});

  std::unique_ptr<Calibrator> calibrator;
  MeasureOptions measure{.steps = verify.steps};
  if (!verify.rates && device == Device::cpu()) {
    calibrator = std::make_unique<Calibrator>();
    measure.between = [&] { calibrator->round(); };
  }
  ledger(device).reset_peak();
  const StepTimes times = measure_steps(program, step.inputs(), measure);
  result.driver = driver_memory(device);
  const Rates rates = calibrator     ? calibrator->rates()
                      : verify.rates ? *verify.rates
                                     : calibrate_cuda(device, {.programs = {&program.kernels()},
                                                               .programs_name = "this step"});
  result.profile = make_profile(program.kernels(), program.plan(), times, rates);
  result.predicted_seconds = result.profile.predicted_seconds;
  result.measured_seconds = times.step_seconds;
  return result;
}

}  // namespace brrr
