#include "brrr/plan/verify.h"

#include <algorithm>

#include "brrr/cost/calibrate.h"
#include "brrr/cost/calibrate_cuda.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/default_device.h"
#include "brrr/runtime/cuda/cuda_program.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/setup.h"

namespace brrr::plan {
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

std::vector<TensorType> input_types(const graph::Graph& graph) {
  std::vector<TensorType> types;
  for (const graph::GraphInput& input : graph.inputs) types.push_back(graph.type(input.value));
  return types;
}

// The arena, the states that precision adds, and on a GPU the places of inputs and results.
int64_t program_bytes(const runtime::PlannedProgram& program, size_t own_states,
                      const compiler::Target& target) {
  int64_t bytes = program.plan.arena_bytes;
  const graph::Graph& last = program.graph();
  for (size_t i = own_states; i < last.states.size(); ++i) {
    const TensorType& type = last.type(last.states[i].before);
    bytes += storage_bytes(type.dtype, numel(type.shape));
  }
  if (!target.is_accelerator()) return bytes;
  const Bytes slots =
      runtime::slot_bytes(input_types(last)) + runtime::slot_bytes(program.kernels.outputs);
  return bytes + (slots + runtime::side_bytes(program.kernels)).value();
}

// The step and a batch for it, with what both have taken on a device. A GPU's batch is on the host.
struct MadeStep {
  training::TrainingParts parts;
  Batch batch;
  Account made{};
};

MadeStep make_step(const training::StepSpec& spec, Device counted) {
  const Account before = live_on(counted);
  MadeStep step{.parts = training::make_parts(spec), .batch = training::make_batch(spec)};
  step.made = difference(live_on(counted), before);
  return step;
}

PlannedMemory plan_memory_of(const training::StepSpec& spec) {
  MadeStep step = make_step(spec, Device::null());
  PlannedMemory planned{.made = step.made};
  if (spec.target.is_accelerator()) planned.made[static_cast<size_t>(Category::data)] = 0;
  graph::Graph joint = step.parts.step->trace(step.batch);
  const size_t own_states = joint.states.size();
  planned.program =
      program_bytes(runtime::plan_program(std::move(joint), training::pipeline_of(spec)),
                    own_states, spec.target);
  return planned;
}

std::optional<DriverMemory> driver_memory(Device device) {
  if (!device.is_accelerator()) return {};
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

Verification verify_step(const training::StepSpec& spec, const VerifyOptions& verify) {
  const Device device = spec.target.device();
  const DeviceScope scope(device);
  const PlannedMemory planned = plan_memory_of(training::on_paper(spec));
  const MadeStep step = make_step(spec, device);
  const std::vector<Tensor> inputs = step.parts.step->inputs_of(step.batch);
  const Bytes before_program = ledger(device).live();
  runtime::Executable& program = step.parts.step->executable(step.batch);
  const int64_t program_bytes = (ledger(device).live() - before_program).value();

  Verification result;
  result.parameters = step.parts.trained().parameter_count();
  for (int i = 0; i < kCategories; ++i) {
    const auto c = static_cast<size_t>(i);
    if (planned.made[c] != 0 || step.made[c] != 0)
      result.memory.push_back(
          {std::string(category_name(static_cast<Category>(i))), planned.made[c], step.made[c]});
  }
  result.memory.push_back({"the program: arena and low copies", planned.program, program_bytes});

  std::unique_ptr<cost::Calibrator> calibrator;
  MeasureOptions measure{.steps = verify.steps};
  if (!verify.rates && device == Device::cpu()) {
    calibrator = std::make_unique<cost::Calibrator>();
    measure.between = [&] { calibrator->round(); };
  }
  ledger(device).reset_peak();
  const StepTimes times = measure_steps(program, inputs, measure);
  result.driver = driver_memory(device);
  const hardware::Rates rates =
      calibrator     ? calibrator->rates()
      : verify.rates ? *verify.rates
                     : cost::calibrate_cuda(device, {.programs = {&program.kernels()},
                                                     .programs_name = "this step"});
  result.profile = make_profile(program.kernels(), program.plan(), times, rates);
  result.predicted_seconds = result.profile.predicted_seconds;
  result.measured_seconds = times.step_seconds;
  return result;
}

}  // namespace brrr::plan
