#include "brrr/compiler/codegen_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "brrr/compiler/codegen_reduce.h"
#include "brrr/compiler/plan_memory.h"
#include "brrr/ops/elementwise_text.h"

namespace brrr {
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
TextOperand text_operand(const OperandRef& ref) {
  const int64_t offset = storage_bytes(ref.dtype, ref.layout.offset);
  TextOperand operand{ref.layout, ref.dtype, std::gcd<int64_t>(16, offset)};
  if (!ref.placed.is_used()) return operand;
  operand.layout.shape = ref.placed.shape;
  operand.placed = {.axis = ref.placed.axis,
                    .start = ref.placed.start,
                    .stop = ref.placed.start + ref.layout.shape[ref.placed.axis]};
  return operand;
}

std::string literal_text(const TileLiteral& literal) {
  return fmt::format("constexpr {} v{} = {};", compute_type_text(literal.type), literal.slot,
                     literal.type == ComputeType::i64 ? integer_text(literal.integer)
                                                      : number_text(literal.number, literal.type));
}

std::string step_text(const TileStep& step) {
  if (step.kind == TileStep::Kind::compute)
    return statement_text(*step.op, *step.attrs, step.type, step.output,
                          {step.inputs.begin(), step.inputs.end()});
  invariant(step.kind == TileStep::Kind::through, "a script has no chains");
  const std::string to = compute_type_text(compute_type(step.dtype));
  return fmt::format("const {} v{} = through<{}, {}>(v{});", to, step.output,
                     element_type_text(step.dtype), to, step.inputs[0]);
}

// A program over these operands of a kernel.
struct Part {
  ElementwiseText text;
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

GeneratedKernel program_kernel(const Kernel& kernel) {
  const Part part = part_of(*kernel.program, kernel, all_of(kernel.inputs), all_of(kernel.outputs));
  const std::string name = identifier(kernel.name) + "_elements",
                    entry = identifier(kernel.name) + "_kernel";
  const int pack = pack_of(part.text);
  GeneratedKernel made{.source = {.name = name, .text = {}}};
  made.source.text =
      source_head(comment_of(kernel)) + function_text(part.text, name, pack) +
      fmt::format(
          "extern \"C\" __global__ void __launch_bounds__({}) {}(const {}_args args) {{\n{}}}\n",
          kTextBlock, entry, name, block_text(part.text, name, pack, "blockIdx.x", "args"));
  made.launches = {
      {entry, blocks_of(part.text, pack), kTextBlock, part.pointers, {}, /*is_table=*/false}};
  return made;
}

std::string table_text(std::string_view type, std::string_view name,
                       const std::vector<int64_t>& values) {
  std::string text = fmt::format("__constant__ const {} {}[] = {{", type, name);
  for (size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
  return text + "};\n";
}

// Parts of equal text share a function; a block finds its part by bisection, and all its threads agree.
GeneratedKernel side_by_side_kernel(const Kernel& kernel) {
  const std::string name = identifier(kernel.name), entry = name + "_kernel";
  std::map<std::string, int64_t> kinds;  // by text
  std::string functions, cases;
  std::vector<int64_t> first_blocks, kind_of, pointers_at;
  GeneratedLaunch launch{.entry = entry, .blocks = 0, .threads = kTextBlock, .is_table = true};
  for (const Attachment& attachment : kernel.attachments) {
    const Part part = part_of(*attachment.program, kernel, attachment.inputs, attachment.outputs);
    const int pack = pack_of(part.text);
    const auto [kind, is_new] =
        kinds.emplace(function_text(part.text, "part", pack), static_cast<int64_t>(kinds.size()));
    if (is_new) {
      const std::string function = fmt::format("part_{}", kind->second);
      functions += function_text(part.text, function, pack);
      const std::string args =
          fmt::format("*reinterpret_cast<const {}_args*>(table + kPointersAt[part])", function);
      cases += fmt::format(
          "case {}: {{\n{}break;\n}}\n", kind->second,
          block_text(part.text, function, pack, "blockIdx.x - kFirstBlock[part]", args));
    }
    first_blocks.push_back(launch.blocks);
    kind_of.push_back(kind->second);
    pointers_at.push_back(static_cast<int64_t>(launch.pointers.size()));
    launch.blocks += blocks_of(part.text, pack);
    launch.pointers.insert(launch.pointers.end(), part.pointers.begin(), part.pointers.end());
  }
  int64_t half = 1;
  while (half * 2 < static_cast<int64_t>(first_blocks.size())) half *= 2;
  GeneratedKernel made{.source = {.name = name, .text = {}}};
  made.source.text = source_head(comment_of(kernel)) + functions +
                     table_text("unsigned", "kFirstBlock", first_blocks) +
                     table_text("int", "kKind", kind_of) +
                     table_text("int", "kPointersAt", pointers_at) +
                     fmt::format(
                         "\nextern \"C\" __global__ void __launch_bounds__({}) {}(const "
                         "void* const* table) {{\n"
                         "int part = 0;\n"
                         "for (int step = {}; step > 0; step /= 2)\n"
                         "  if (part + step < {} && kFirstBlock[part + step] <= blockIdx.x) "
                         "part += step;\n"
                         "switch (kKind[part]) {{\n{}}}\n}}\n",
                         kTextBlock, entry, half, first_blocks.size(), cases);
  made.launches = {std::move(launch)};
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

GeneratedKernel fused_reduction(const Kernel& kernel) {
  const CoreOperand &operand = kernel.core_inputs[0], &result = kernel.core_outputs[0];
  Part part = operand.attachment >= 0 ? attached_part(kernel, operand.attachment)
                                      : reading_part(kernel, operand);
  const std::optional<ReducedAxes> axes = reduced_axes(operand.layout.shape, kernel.attrs);
  const ComputeType type = compute_type(operand.dtype);
  const std::optional<FoldText> fold = fold_text(*kernel.op, type);
  invariant(axes && fold, kernel.op->name, " was fused and has no text");
  ReductionText text{.name = identifier(kernel.name),
                     .program = std::move(part.text),
                     .axes = *axes,
                     .fold = *fold,
                     .type = type,
                     .result = result.dtype,
                     .pointers = std::move(part.pointers),
                     .after = {},
                     .after_pointers = {{KernelPointer::From::output, result.index}}};
  if (result.attachment >= 0) {
    Part after = attached_part(kernel, result.attachment);
    text.after = std::move(after.text);
    text.after_pointers = std::move(after.pointers);
  }
  return reduction_kernel(text, comment_of(kernel));
}

bool is_empty(const Kernel& kernel) {
  return std::all_of(kernel.outputs.begin(), kernel.outputs.end(),
                     [](const OperandRef& ref) { return numel(ref.layout.shape) == 0; });
}

}  // namespace

std::shared_ptr<const GeneratedKernel> generate_kernel(const Kernel& kernel) {
  if (kernel.op && kernel.attachments.empty()) return nullptr;
  if (is_empty(kernel)) return std::make_shared<GeneratedKernel>();  // nothing to launch
  if (kernel.program) return std::make_shared<GeneratedKernel>(program_kernel(kernel));
  if (!kernel.op) return std::make_shared<GeneratedKernel>(side_by_side_kernel(kernel));
  return std::make_shared<GeneratedKernel>(fused_reduction(kernel));
}

void generate_kernels(KernelList& list) {
  for (Kernel& kernel : list.kernels) {
    if (!kernel.generated) kernel.generated = generate_kernel(kernel);
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

}  // namespace brrr
