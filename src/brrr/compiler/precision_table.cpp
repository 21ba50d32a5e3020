#include "brrr/compiler/precision_table.h"

#include <fmt/format.h>

#include "brrr/base/join_names.h"

namespace brrr {
namespace {

constexpr PrecisionRule kRules[] = {
    {.ops = "matmul|linear",
     .phase = Phase::update,
     .take = Take::wide,
     .factors = 0b11,
     .reason = "the update works on f32 masters, gradients and state"},
    {.phase = Phase::update,
     .take = Take::wide,
     .reason = "the update works on f32 masters, gradients and state"},
    {.ops = "matmul|linear",
     .take = Take::low,
     .factors = 0b11,
     .stores_sums = true,
     .takes_fp8 = true,
     .reason =
         "tensor cores multiply low operands and add in f32; weight gradients keep the f32 sum"},
    {.ops = "attention",
     .take = Take::low,
     .factors = 0b111,
     .reason = "products of low operands; scores, softmax and logsumexp are f32 inside"},
    {.ops = "attention_backward",
     .take = Take::low,
     .factors = 0b100111,
     .wide_inputs = 0b1010000,
     .reason = "as attention; the logsumexp and its gradient are f32"},
    {.kind = OpKind::contraction,
     .take = Take::low,
     .reason = "products of low operands, added in f32"},
    {.ops = "layer_norm",
     .take = Take::stored,
     .wide_inputs = 0b110,
     .reason = "f32 inside, f32 weights and statistics; the rows as they are stored"},
    {.ops = "rms_norm",
     .take = Take::stored,
     .wide_inputs = 0b10,
     .reason = "f32 inside, f32 weights and statistics; the rows as they are stored"},
    {.ops = "layer_norm_backward",
     .take = Take::stored,
     .wide_inputs = 0b1110,
     .reason = "f32 inside; gradients of weights are f32"},
    {.ops = "rms_norm_backward",
     .take = Take::stored,
     .wide_inputs = 0b110,
     .reason = "f32 inside; gradients of weights are f32"},
    {.ops = "cross_entropy",
     .take = Take::stored,
     .reason = "f32 inside and f32 losses; logits as they are stored"},
    {.ops = "cross_entropy_backward",
     .take = Take::stored,
     .wide_inputs = 0b11100,
     .reason = "f32 inside; logits as they are stored"},
    {.ops = "classifier",
     .take = Take::stored,
     .wide_inputs = 0b100,
     .reason = "f32 inside and f32 losses; logits as they are stored"},
    {.ops = "draw_tokens",
     .take = Take::stored,
     .wide_inputs = 0b10,
     .reason = "f64 inside; logits as they are stored, settings with all their digits"},
    {.ops = "cast", .take = Take::stored, .reason = "the model asked for this dtype"},
    {.ops = "embedding", .take = Take::table, .reason = "rounding a row and taking it commute"},
    {.ops = "max|min|argmax|argmin|any|all|softmax*|log_softmax*",
     .take = Take::follow,
     .reason = "exact in every type, or f32 inside"},
    {.ops = "nll|cumsum", .take = Take::wide, .reason = "losses and sums are f32"},
    {.kind = OpKind::reduce,
     .take = Take::wide,
     .reason = "sums are f32, and so are their results"},
    {.take = Take::follow,
     .reason = "activations between kernels are low; chains that only f32 readers see stay f32"}};

bool names_op(std::string_view ops, std::string_view name) {
  if (ops.empty()) return true;
  while (!ops.empty()) {
    const size_t end = std::min(ops.find('|'), ops.size());
    if (matches_pattern(ops.substr(0, end), name)) return true;
    ops.remove_prefix(std::min(end + 1, ops.size()));
  }
  return false;
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

std::span<const PrecisionRule> precision_rules() { return kRules; }

const PrecisionRule& find_precision_rule(const Node& node) {
  for (const PrecisionRule& rule : kRules) {
    if (rule.phase && *rule.phase != node.phase) continue;
    if (rule.kind && *rule.kind != node.op->kind) continue;
    if (names_op(rule.ops, node.op->name)) return rule;
  }
  invariant(false, "the last precision rule fits every node");
  return kRules[0];
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
  for (const PrecisionRule& rule : kRules) {
    add_row(rule.ops.empty() ? "*" : rule.ops, rule.kind ? kind_name(*rule.kind) : "*",
            rule.phase ? phase_name(*rule.phase) : "*", take_name(rule.take),
            bits_text(rule.wide_inputs), rule.takes_fp8 ? bits_text(rule.factors) : "-",
            rule.reason);
  }
  return out;
}

}  // namespace brrr
