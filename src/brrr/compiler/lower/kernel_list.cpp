// What follows from a kernel's operands: where it may write, and its scratch.
#include "brrr/compiler/lower/kernel_list.h"

#include <algorithm>

#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/graph/repeat.h"

namespace brrr::compiler {

std::vector<CoreOperand> core_operands(const std::vector<CoreOperand>& fused,
                                       const std::vector<OperandRef>& refs) {
  if (!fused.empty()) return fused;
  std::vector<CoreOperand> operands;
  for (const OperandRef& ref : refs)
    operands.push_back({static_cast<int>(operands.size()), -1, ref.layout, ref.dtype});
  return operands;
}

namespace {

// The attachment that has this input and this output; nullptr when they belong to no one program.
const Attachment* attachment_of(const Kernel& kernel, size_t input, size_t output) {
  const auto has = [](const std::vector<int>& all, size_t i) {
    return std::find(all.begin(), all.end(), static_cast<int>(i)) != all.end();
  };
  for (const Attachment& attachment : kernel.attachments) {
    if (has(attachment.inputs, input) && has(attachment.outputs, output)) return &attachment;
  }
  return nullptr;
}

// A program may write over what it reads element by element, unless the rest of the kernel reads that too,
// or results that are not finished lie there.
bool may_overwrite_fused(const Kernel& kernel, size_t input, size_t output) {
  const Attachment* own = attachment_of(kernel, input, output);
  if (!own) return false;
  if (own->landing >= 0 &&
      own->outputs[static_cast<size_t>(own->landing)] == static_cast<int>(output))
    return false;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    if (kernel.inputs[i].buffer == kernel.inputs[input].buffer &&
        attachment_of(kernel, i, output) != own)
      return false;
  }
  return true;
}

// A member may write over its own operands as it may alone, unless another one reads them too.
bool may_overwrite_joined(const Kernel& kernel, size_t input, size_t output) {
  for (const Member& member : kernel.members) {
    if (input < member.first_input || input >= member.first_input + member.inputs) continue;
    if (output < member.first_output || output >= member.first_output + member.outputs)
      return false;
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const bool is_own = i >= member.first_input && i < member.first_input + member.inputs;
      if (!is_own && kernel.inputs[i].buffer == kernel.inputs[input].buffer) return false;
    }
    return may_overwrite(alone(kernel, member), input - member.first_input,
                         output - member.first_output);
  }
  return false;
}

}  // namespace

Kernel alone(const Kernel& joined, const Member& member) {
  Kernel kernel = *member.kernel;
  const auto take = [](const std::vector<OperandRef>& all, size_t first, size_t count) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<OperandRef>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  kernel.inputs = take(joined.inputs, member.first_input, member.inputs);
  kernel.outputs = take(joined.outputs, member.first_output, member.outputs);
  return kernel;
}

bool may_overwrite(const Kernel& kernel, size_t input, size_t output) {
  if (kernel.inputs[input].placed.is_used()) return false;  // elements are elsewhere
  if (!kernel.members.empty()) return may_overwrite_joined(kernel, input, output);
  if (!kernel.attachments.empty()) return may_overwrite_fused(kernel, input, output);
  if (kernel.program || kernel.op->tiles) return true;
  const auto [over, made] = kernel.op->overwrites;
  if (over >= 0) return static_cast<int>(input) == over && static_cast<int>(output) == made;
  return kernel.role() == OpRole::repeat &&
         static_cast<int>(input) ==
             graph::repeat_node(kernel.attrs).initial_of(static_cast<int>(output));
}

int64_t cpu_workspace_bytes(const Kernel& kernel, ThreadPool& pool) {
  if (kernel.body) return kernel.body->plan.arena_bytes;
  if (!kernel.op || !kernel.op->workspace) return 0;
  const std::vector<CoreOperand> core_inputs = core_operands(kernel.core_inputs, kernel.inputs),
                                 core_outputs = core_operands(kernel.core_outputs, kernel.outputs);
  std::vector<Operand> inputs, outputs;
  for (const CoreOperand& x : core_inputs) inputs.push_back({nullptr, &x.layout, x.dtype});
  for (const CoreOperand& y : core_outputs) outputs.push_back({nullptr, &y.layout, y.dtype});
  return kernel.op->workspace({*kernel.op, inputs, outputs, kernel.attrs, {}, pool});
}

void add_workspaces(KernelList& list, const std::function<int64_t(const Kernel&)>& bytes) {
  for (Kernel& kernel : list.kernels) {
    const int64_t wanted = bytes(kernel);
    if (wanted == 0) continue;
    list.buffers.push_back({.bytes = wanted});
    kernel.workspace = BufferId(list.buffers.size() - 1);
  }
}

}  // namespace brrr::compiler
