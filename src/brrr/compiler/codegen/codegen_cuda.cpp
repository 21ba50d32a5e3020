#include "brrr/compiler/codegen/codegen_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "brrr/compiler/codegen/codegen_reduce.h"
#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/kernels/cuda/codegen/elementwise_text.h"

namespace brrr::compiler {
namespace {

// An identifier from a kernel's name: "mul+add and 3 more" becomes mul_add_and_3_more.
std::string identifier(std::string_view name) {
  constexpr size_t kLongest = 48;
  std::string text;
  for (const char c : name.substr(0, kLongest)) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    text += is_plain ? c : '_';
  }
  return text.empty() || (text[0] >= '0' && text[0] <= '9') ? "k" + text : text;
}

// Buffers begin at multiples of 16 bytes; a view may not.
kernels::TextOperand text_operand(const OperandRef& ref) {
  const int64_t offset = storage_bytes(ref.dtype, ref.layout.offset);
  kernels::TextOperand operand{ref.layout, ref.dtype, std::gcd<int64_t>(16, offset)};
  if (!ref.placed.is_used()) return operand;
  operand.layout.shape = ref.placed.shape;
  operand.placed = {.axis = ref.placed.axis,
                    .start = ref.placed.start,
                    .stop = ref.placed.start + ref.layout.shape[ref.placed.axis]};
  return operand;
}

std::string literal_text(const TileLiteral& literal) {
  return fmt::format("constexpr {} v{} = {};", kernels::compute_type_text(literal.type),
                     literal.slot,
                     is_integer(literal.type) ? kernels::integer_text(literal.integer, literal.type)
                                              : kernels::number_text(literal.number, literal.type));
}

std::string step_text(const TileStep& step) {
  if (step.kind == TileStep::Kind::compute)
    return kernels::statement_text(*step.op, *step.attrs, step.type, step.output,
                                   {step.inputs.begin(), step.inputs.end()});
  invariant(step.kind == TileStep::Kind::through, "a script has no chains");
  const std::string to = kernels::compute_type_text(compute_type(step.dtype));
  return fmt::format("const {} v{} = through<{}, {}>(v{});", to, step.output,
                     kernels::element_type_text(step.dtype), to, step.inputs[0]);
}

// A program over these operands of a kernel.
struct Part {
  kernels::ElementwiseText text;
  std::vector<KernelPointer> pointers;
};
Part part_of(const TileProgram& program, const Kernel& kernel, std::span<const int> inputs,
             std::span<const int> outputs) {
  const TileScript& script = program.script();
  Part part{.text = {.shape = program.shape()}, .pointers = {}};
  for (int i : inputs) {
    part.text.inputs.push_back(text_operand(kernel.inputs[static_cast<size_t>(i)]));
    part.pointers.push_back({KernelPointer::From::input, i});
  }
  for (int i : outputs) {
    part.text.outputs.push_back(text_operand(kernel.outputs[static_cast<size_t>(i)]));
    part.pointers.push_back({KernelPointer::From::output, i});
  }
  for (const TileTransfer& load : script.loads)
    part.text.loads.push_back({load.operand, load.slot, load.type});
  for (const TileTransfer& store : script.stores)
    part.text.stores.push_back({store.operand, store.slot, store.type});
  if (script.given) part.text.given = {-1, script.given->slot, script.given->type};
  if (script.captured) part.text.captured = {-1, script.captured->slot, script.captured->type};
  for (const TileLiteral& literal : script.literals)
    part.text.statements.push_back(literal_text(literal));
  for (const TileStep& step : script.steps) part.text.statements.push_back(step_text(step));
  return part;
}

std::vector<int> all_of(const std::vector<OperandRef>& refs) {
  std::vector<int> all(refs.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string comment_of(const Kernel& kernel) {
  return fmt::format("{}: {} FLOPs, {} bytes read, {} written", kernel.name, kernel.cost.flops,
                     kernel.cost.bytes_read, kernel.cost.bytes_written);
}

// A function for the blocks of a program. Equal programs over equal operands have equal text.
KernelText text_of(const Part& part) {
  const std::string name = "elements";
  const int pack = kernels::pack_of(part.text);
  KernelText made{.functions = kernels::function_text(part.text, name, pack)};
  made.functions += fmt::format(
      "__device__ __forceinline__ void run(unsigned block, const {}_args& args) {{\n{}}}\n", name,
      kernels::block_text(part.text, name, pack, "block", "args"));
  made.launches = {{.function = "run",
                    .first = name + "_args",
                    .more = {},
                    .blocks = kernels::blocks_of(part.text, pack),
                    .pointers = part.pointers,
                    .more_pointers = {}}};
  return made;
}

Part attached_part(const Kernel& kernel, int attachment) {
  const Attachment& attached = kernel.attachments[static_cast<size_t>(attachment)];
  return part_of(*attached.program, kernel, attached.inputs, attached.outputs);
}

// An operand in memory as a program that hands it on.
Part reading_part(const Kernel& kernel, const CoreOperand& operand) {
  Part part{.text = {.shape = operand.layout.shape}, .pointers = {}};
  part.text.inputs.push_back(text_operand(kernel.inputs[static_cast<size_t>(operand.index)]));
  part.pointers.push_back({KernelPointer::From::input, operand.index});
  const ComputeType type = compute_type(operand.dtype);
  part.text.loads = {{0, 0, type}};
  part.text.captured = {-1, 0, type};
  return part;
}

// To fill a GPU: four per SM, all at once, since a few more would run alone after them. By the chip alone, so that sums
// have one order on it.
int64_t enough_blocks(const Chip& chip) { return int64_t{4} * chip.sm_count; }

KernelText fused_reduction(const Kernel& kernel, const Chip& chip) {
  const CoreOperand &operand = kernel.core_inputs[0], &result = kernel.core_outputs[0];
  Part part = operand.attachment >= 0 ? attached_part(kernel, operand.attachment)
                                      : reading_part(kernel, operand);
  const std::optional<ReducedAxes> axes = reduced_axes(operand.layout.shape, kernel.attrs);
  const ComputeType type = compute_type(operand.dtype);
  const std::optional<FoldText> fold = fold_text(*kernel.op, type);
  invariant(axes && fold, kernel.op->name, " was fused and has no text");
  ReductionText text{.program = std::move(part.text),
                     .axes = axes.value_or(ReducedAxes{}),
                     .fold = fold.value_or(FoldText{}),
                     .type = type,
                     .result = result.dtype,
                     .enough_blocks = enough_blocks(chip),
                     .pointers = std::move(part.pointers),
                     .after = {},
                     .after_pointers = {{KernelPointer::From::output, result.index}}};
  if (result.attachment >= 0) {
    Part after = attached_part(kernel, result.attachment);
    text.after = std::move(after.text);
    text.after_pointers = std::move(after.pointers);
  }
  return reduction_text(text);
}

// Programs, or members, side by side.
std::vector<PlacedText> texts_of(const Kernel& kernel, const Chip& chip) {
  std::vector<PlacedText> texts;
  for (size_t i = 0; kernel.members.empty() && i < kernel.attachments.size(); ++i)
    texts.push_back({.text = text_of(attached_part(kernel, static_cast<int>(i)))});
  for (const Member& member : kernel.members)
    texts.push_back({.text = fused_reduction(alone(kernel, member), chip),
                     .first_input = static_cast<int>(member.first_input),
                     .first_output = static_cast<int>(member.first_output)});
  return texts;
}

GeneratedKernel made_of(const Kernel& kernel, const Chip& chip) {
  const std::string name = identifier(kernel.name), comment = comment_of(kernel);
  if (kernel.program) {
    const Part part =
        part_of(*kernel.program, kernel, all_of(kernel.inputs), all_of(kernel.outputs));
    return kernel_of(text_of(part), name, comment);
  }
  if (kernel.op) return kernel_of(fused_reduction(kernel, chip), name, comment);
  return joined_kernel(texts_of(kernel, chip), name, comment);
}

bool is_empty(const Kernel& kernel) {
  return std::all_of(kernel.outputs.begin(), kernel.outputs.end(),
                     [](const OperandRef& ref) { return numel(ref.layout.shape) == 0; });
}

}  // namespace

std::shared_ptr<const GeneratedKernel> generate_kernel(const Kernel& kernel, const Chip& chip) {
  if (kernel.op && kernel.attachments.empty()) return nullptr;
  if (is_empty(kernel)) return std::make_shared<GeneratedKernel>();  // nothing to launch
  return std::make_shared<GeneratedKernel>(made_of(kernel, chip));
}

void generate_kernels(KernelList& list, const Chip& chip) {
  for (Kernel& kernel : list.kernels) {
    if (!kernel.generated) kernel.generated = generate_kernel(kernel, chip);
  }
}

Streams generated_streams(const Graph& graph, const Node& node) {
  if (node.op->kind != OpKind::reduce || (node.op->streams.inputs & 1U) == 0) return {};
  const TensorType& type = graph.type(node.inputs[0]);
  if (numel(type.shape) == 0 || !fold_text(*node.op, compute_type(type.dtype))) return {};
  return reduced_axes(type.shape, node.attrs) ? Streams{.inputs = 1, .outputs = 1} : Streams{};
}

std::string generated_text(const KernelList& list) {
  std::string text;
  for (const Kernel& kernel : list.kernels) {
    if (kernel.body) text += generated_text(kernel.body->list);
    if (!kernel.generated || kernel.generated->launches.empty()) continue;
    for (const GeneratedLaunch& launch : kernel.generated->launches)
      text +=
          fmt::format("// launch {}<<<{}, {}>>>\n", launch.entry, launch.blocks, launch.threads);
    text += kernel.generated->source.text + "\n";
  }
  return text;
}

}  // namespace brrr::compiler
