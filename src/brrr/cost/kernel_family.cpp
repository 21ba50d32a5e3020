#include "brrr/cost/kernel_family.h"

#include <algorithm>

#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"

namespace brrr::cost {
namespace {

// Products below this run on one thread (kernels/cpu/gemm/matmul_cpu.cpp).
constexpr double kContractionPieceFlops = 10e6;

bool has_op(const compiler::Kernel& kernel, OpKind kind) {
  return std::any_of(kernel.parts.begin(), kernel.parts.end(),
                     [&](const compiler::KernelPart& part) { return part.op->kind == kind; });
}

bool is_transposed(const Layout& layout) {
  const int rank = layout.rank();
  return rank >= 2 && layout.strides[rank - 1] != 1 && layout.shape[rank - 1] > 1;
}

// True when each product of a batch has a second operand of its own. With one for all the batch is more rows.
bool has_own_factors(const Layout& b) {
  for (int axis = 0; axis < b.rank() - 2; ++axis) {
    if (b.shape[axis] > 1 && b.strides[axis] != 0) return true;
  }
  return false;
}

// m, n and k from the result and the FLOPs. A batch with one second operand counts as rows. Products with
// operands of their own, such as those of a convolution, are as quick as one of their size, and those too small
// to be shared out run on all threads side by side.
FamilyWork contraction_work(const compiler::Kernel& kernel, const OpDef& op) {
  const auto flops = static_cast<double>(kernel.cost.flops);
  // Of the op itself: what is fused to it may read and write other shapes.
  const std::vector<compiler::CoreOperand> inputs =
      compiler::core_operands(kernel.core_inputs, kernel.inputs);
  const std::vector<compiler::CoreOperand> outputs =
      compiler::core_operands(kernel.core_outputs, kernel.outputs);
  if (is_attention(op)) {
    const Shape& keys = inputs[1].layout.shape;
    return {.family = std::string(op.name),
            .where = {static_cast<double>(keys[2]), static_cast<double>(keys[3])},
            .amount = flops,
            .arithmetic = arithmetic_name(kernel)};
  }
  const Shape& result = outputs[0].layout.shape;
  const auto results = static_cast<double>(std::max<int64_t>(1, numel(result)));
  const auto n = static_cast<double>(result.empty() ? 1 : std::max<int64_t>(1, result.back()));
  const bool is_linear = op.role == OpRole::linear;
  const bool is_batch = !is_linear && result.size() > 2 && has_own_factors(inputs[1].layout);
  const double m =
      is_batch ? static_cast<double>(std::max<int64_t>(1, result[result.size() - 2])) : results / n;
  const double k = std::max(1.0, flops / (2 * results));
  const bool a_transposed = is_transposed(inputs[0].layout),
             b_transposed = is_linear || is_transposed(inputs[1].layout);
  return {.family = a_transposed   ? "matmul.tn"
                    : b_transposed ? "matmul.nt"
                                   : "matmul.nn",
          .where = {m, n, k},
          .amount = flops,
          .per_thread = is_batch && 2 * m * n * k < 2 * kContractionPieceFlops,
          .own = op.role == OpRole::matmul_epilogue ? std::string(op.name) : std::string(),
          .arithmetic = arithmetic_name(kernel)};
}

FamilyWork tile_work(std::string_view primitive, int64_t elements, bool wide) {
  return {.family = join_text("tile.", primitive),
          .amount = static_cast<double>(elements) * (wide ? 2 : 1),
          .per_thread = true};
}

// What it takes to bring an operand of a tile program into place, where it does not lie there.
void add_transfer(const compiler::OperandRef& ref, const Shape& shape,
                  std::vector<FamilyWork>& parts) {
  const int64_t elements = numel(shape);
  const ComputeType type = compute_type(ref.dtype);
  const Layout* layouts[] = {&ref.layout};
  const kernels::LoopNest nest = kernels::make_nest(shape, layouts);
  if (nest.is_constant(0)) return;
  if (ref.dtype != natural_dtype(type)) {
    parts.push_back(tile_work("convert", elements, false));
  } else if (!nest.is_flat(0)) {
    const int64_t stride = nest.strides[0][static_cast<size_t>(nest.rank - 1)];
    parts.push_back(tile_work(stride <= 1 ? "spread" : "gather", elements, false));
  }
}

void add_tiles(const compiler::Kernel& kernel, std::vector<FamilyWork>& parts) {
  const bool wide = compute_bytes(compute_type(kernel.outputs[0].dtype)) == 8;
  for (const compiler::KernelPart& part : kernel.parts) {
    if (has_tiles(*part.op)) parts.push_back(tile_work(part.op->name, part.elements, wide));
  }
  if (has_op(kernel, OpKind::contraction) || has_op(kernel, OpKind::reduce)) return;
  if (!kernel.op && !kernel.attachments.empty()) {  // a group: each program has a shape of its own
    for (const compiler::Attachment& own : kernel.attachments) {
      const Shape& shape = kernel.outputs[static_cast<size_t>(own.outputs[0])].layout.shape;
      for (int i : own.inputs) add_transfer(kernel.inputs[static_cast<size_t>(i)], shape, parts);
      for (int i : own.outputs) add_transfer(kernel.outputs[static_cast<size_t>(i)], shape, parts);
    }
    return;
  }
  const Shape& shape = kernel.outputs[0].layout.shape;
  for (const compiler::OperandRef& ref : kernel.inputs) add_transfer(ref, shape, parts);
  for (const compiler::OperandRef& ref : kernel.outputs) add_transfer(ref, shape, parts);
}

// Whole rows go to their places, as tokens to experts: one index for all of a row.
bool scatters_rows(const compiler::Kernel& kernel) {
  const std::vector<compiler::CoreOperand> inputs =
      compiler::core_operands(kernel.core_inputs, kernel.inputs);
  const Layout& index = inputs[1].layout;
  return index.rank() > 1 && index.shape[index.rank() - 1] > 1 &&
         index.strides[index.rank() - 1] == 0;
}

// Rows lie along the last axis; a reduction that keeps that axis adds up columns.
FamilyWork other_work(const compiler::Kernel& kernel, const compiler::KernelPart& part) {
  const compiler::OperandRef* largest = &kernel.outputs[0];
  for (const std::vector<compiler::OperandRef>* refs : {&kernel.inputs, &kernel.outputs}) {
    for (const compiler::OperandRef& ref : *refs) {
      if (numel(ref.layout.shape) > numel(largest->layout.shape)) largest = &ref;
    }
  }
  const Shape& shape = largest->layout.shape;
  std::string family(part.op->name);
  auto row = static_cast<double>(shape.empty() ? 1 : std::max<int64_t>(1, shape.back()));
  auto elements = static_cast<double>(std::max<int64_t>(1, part.elements));
  if (part.op->kind == OpKind::reduce && kernel.attrs.has("axes")) {
    const Axes& axes = kernel.attrs.list("axes");
    const bool rows =
        axes.empty() || std::find(axes.begin(), axes.end(), shape.size() - 1) != axes.end();
    family += rows ? ".row" : ".column";
    if (rows && axes.size() == shape.size()) row = elements;
  }
  if (part.op->role == OpRole::copy && !kernel.inputs[0].layout.is_contiguous())
    family += ".strided";
  if (part.op->role == OpRole::scatter_add && scatters_rows(kernel)) family += ".rows";
  const bool adds_rows = part.op->role == OpRole::embedding_backward;
  if (part.op->kind == OpKind::gather || adds_rows) {
    // The table is larger than what is touched.
    const compiler::OperandRef& moved = adds_rows ? kernel.inputs[0] : kernel.outputs[0];
    elements = static_cast<double>(std::max<int64_t>(1, numel(moved.layout.shape)));
  }
  return {.family = std::move(family),
          .where = {elements, row},
          .amount = elements,
          .arithmetic = arithmetic_name(kernel)};
}

int64_t pieces_of(const compiler::Kernel& kernel) {
  if (has_op(kernel, OpKind::contraction))
    return std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(kernel.cost.flops) / kContractionPieceFlops));
  int64_t elements = 1;
  for (const compiler::KernelPart& part : kernel.parts)
    elements = std::max(elements, part.elements);
  return (elements + kernels::kPieceElements - 1) / kernels::kPieceElements;
}

}  // namespace

KernelWork work_of(const compiler::Kernel& kernel) {
  KernelWork work{.parts = {}, .pieces = pieces_of(kernel)};
  for (const compiler::Member& member : kernel.members) {
    const KernelWork own = work_of(compiler::alone(kernel, member));
    work.parts.insert(work.parts.end(), own.parts.begin(), own.parts.end());
  }
  if (!kernel.members.empty()) return work;
  const bool copy = kernel.parts.size() == 1 && kernel.parts[0].op->role == OpRole::copy;
  if (!copy) add_tiles(kernel, work.parts);
  for (const compiler::KernelPart& part : kernel.parts) {
    if (part.op->kind == OpKind::contraction) {
      work.parts.push_back(contraction_work(kernel, *part.op));
    } else if (copy || !has_tiles(*part.op)) {
      work.parts.push_back(other_work(kernel, part));
    }
  }
  return work;
}

std::string_view arithmetic_name(const compiler::Kernel& kernel) {
  if (kernel.inputs.empty()) return {};
  switch (kernel.inputs[0].dtype) {
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::f8e4m3:
    case DType::f8e5m2: return "fp8";
    case DType::f32: return kernel.attrs.has("tf32") && kernel.attrs.flag("tf32") ? "tf32" : "";
    default: return {};
  }
}

std::string kernel_signature(const compiler::Kernel& kernel) {
  if (!kernel.op || kernel.op->kind != OpKind::contraction || !kernel.core_inputs.empty())
    return {};
  std::string text = join_text("kernel.", kernel.op->name);
  for (const compiler::OperandRef& ref : kernel.inputs)
    text += join_text(" ", ref.dtype, ref.layout.shape, "/", ref.layout.strides);
  text += " ->";
  for (const compiler::OperandRef& ref : kernel.outputs)
    text += join_text(" ", ref.dtype, ref.layout.shape);
  const std::string attrs = to_text(kernel.attrs);
  return attrs.empty() ? text : join_text(text, " ", attrs);
}

std::string_view class_name(KernelClass kernel_class) {
  constexpr std::array<std::string_view, kKernelClasses> names = {"contraction", "normalisation",
                                                                  "elementwise", "other"};
  return names[static_cast<size_t>(kernel_class)];
}

KernelClass class_of(const compiler::Kernel& kernel) {
  if (has_op(kernel, OpKind::contraction)) return KernelClass::contraction;
  if (has_op(kernel, OpKind::reduce)) return KernelClass::normalisation;
  return has_op(kernel, OpKind::elementwise) ? KernelClass::elementwise : KernelClass::other;
}

}  // namespace brrr::cost
