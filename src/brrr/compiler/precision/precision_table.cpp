#include "brrr/compiler/precision/precision_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "brrr/base/join_names.h"

namespace brrr::compiler {
namespace {

// The update works in f32 whatever the op says: its factors are those of a matmul, and no other op has any there.
constexpr std::string_view kUpdateReason = "the update works on f32 masters, gradients and state";
constexpr PrecisionRule kUpdateMatmul{.take = Take::wide, .factors = 0b11, .reason = kUpdateReason};
constexpr PrecisionRule kUpdate{.take = Take::wide, .reason = kUpdateReason};

// Of ops that say nothing.
constexpr PrecisionRule kContraction{.take = Take::low,
                                     .reason = "products of low operands, added in f32"};
constexpr PrecisionRule kReduction{.take = Take::wide,
                                   .reason = "sums are f32, and so are their results"};
constexpr PrecisionRule kAnyOther{
    .take = Take::follow,
    .reason = "activations between kernels are low; chains that only f32 readers see stay f32"};

// The rules that ops declare, each with the names of those ops, in the order of the list of ops.
std::vector<PrecisionRow> declared_rows() {
  std::vector<PrecisionRow> rows;
  for (const OpDef* op : all_ops()) {
    if (!op->precision) continue;
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const PrecisionRow& row) {
      return row.rule == op->precision;
    });
    if (known == rows.end()) {
      rows.push_back({.ops = std::string(op->name), .rule = op->precision});
    } else {
      known->ops += join_text("|", op->name);
    }
  }
  return rows;
}

std::string bits_text(uint32_t bits) {
  std::string out;
  for (int i = 0; i < 32; ++i) {
    if ((bits >> i & 1U) != 0) out += fmt::format("{}{}", out.empty() ? "" : ",", i);
  }
  return out.empty() ? "-" : out;
}

struct Choice {
  std::string_view name;
  int value;
};

template <size_t kCount>
int parse_choice(std::string_view what, std::string_view name, const Choice (&choices)[kCount]) {
  for (const Choice& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  fail("there is no ", what, " named \"", name, "\"; use one of ",
       join_names(choices, &Choice::name));
}

}  // namespace

std::string_view precision_name(Precision precision) {
  constexpr std::string_view names[] = {"f32", "bf16_mixed", "f16_mixed", "fp8_mixed"};
  return names[static_cast<size_t>(precision)];
}

Precision parse_precision(std::string_view name) {
  constexpr Choice choices[] = {{"f32", 0},        {"bf16", 1},      {"f16", 2},      {"fp8", 3},
                                {"bf16_mixed", 1}, {"f16_mixed", 2}, {"fp8_mixed", 3}};
  return static_cast<Precision>(parse_choice("precision", name, choices));
}

std::string_view matmul_precision_name(MatmulPrecision precision) {
  constexpr std::string_view names[] = {"ieee", "tf32", "bf16"};
  return names[static_cast<size_t>(precision)];
}

MatmulPrecision parse_matmul_precision(std::string_view name) {
  constexpr Choice choices[] = {{"ieee", 0}, {"tf32", 1}, {"bf16", 2}};
  return static_cast<MatmulPrecision>(parse_choice("matmul precision", name, choices));
}

PrecisionOverride parse_precision_override(std::string_view text) {
  const size_t equals = text.rfind('=');
  check(equals != std::string_view::npos && equals > 0, "precision override \"", text,
        "\" must be PATTERN=PRECISION, as in h.*.attn=f32");
  return {std::string(text.substr(0, equals)), parse_precision(text.substr(equals + 1))};
}

std::string_view take_name(Take take) {
  constexpr std::string_view names[] = {"low", "stored", "follow", "table", "f32"};
  return names[static_cast<size_t>(take)];
}

const PrecisionRule& find_precision_rule(const Node& node) {
  if (node.phase == Phase::update) return is_matmul(*node.op) ? kUpdateMatmul : kUpdate;
  if (node.op->precision) return *node.op->precision;
  switch (node.op->kind) {
    case OpKind::contraction: return kContraction;
    case OpKind::reduce: return kReduction;
    default: return kAnyOther;
  }
}

std::vector<PrecisionRow> precision_rows() {
  std::string matmuls;
  for (const OpDef* op : all_ops()) {
    if (is_matmul(*op)) matmuls += join_text(matmuls.empty() ? "" : "|", op->name);
  }
  std::vector<PrecisionRow> rows{{.ops = matmuls, .phase = Phase::update, .rule = &kUpdateMatmul},
                                 {.phase = Phase::update, .rule = &kUpdate}};
  for (PrecisionRow& row : declared_rows()) rows.push_back(std::move(row));
  rows.push_back({.kind = OpKind::contraction, .rule = &kContraction});
  rows.push_back({.kind = OpKind::reduce, .rule = &kReduction});
  rows.push_back({.rule = &kAnyOther});
  return rows;
}

DType low_dtype(Precision precision) {
  switch (precision) {
    case Precision::f32: return DType::f32;
    case Precision::f16_mixed: return DType::f16;
    case Precision::bf16_mixed:
    case Precision::fp8_mixed: return DType::bf16;
  }
  return DType::f32;
}

std::string to_text(const PrecisionOptions& options) {
  std::string out =
      fmt::format("policy {} (low type {}), products of f32 {}\n", precision_name(options.policy),
                  to_text(low_dtype(options.policy)), matmul_precision_name(options.matmul));
  for (const PrecisionOverride& entry : options.overrides)
    out += fmt::format("override {} = {}\n", entry.pattern, precision_name(entry.precision));
  const auto add_row = [&](const auto&... cells) {
    out += fmt::format("{:<50} {:<12} {:<9} {:<7} {:<8} {:<5} {}\n", cells...);
  };
  add_row("ops", "kind", "phase", "takes", "f32 in", "fp8", "because");
  for (const PrecisionRow& row : precision_rows()) {
    const PrecisionRule& rule = *row.rule;
    add_row(row.ops.empty() ? "*" : row.ops, row.kind ? kind_name(*row.kind) : "*",
            row.phase ? graph::phase_name(*row.phase) : "*", take_name(rule.take),
            bits_text(rule.wide_inputs), rule.takes_fp8 ? bits_text(rule.factors) : "-",
            rule.reason);
  }
  return out;
}

}  // namespace brrr::compiler
