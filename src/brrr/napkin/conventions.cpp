#include "brrr/napkin/conventions.h"

namespace brrr {
namespace {

constexpr std::array<ConventionInfo, kConventions> kInfos = {{
    {"exact", "6 N_products + 3 * attention over visible pairs", "brrr: the graph"},
    {"6n", "6 N", "Kaplan, Chinchilla, the lecture"},
    {"palm", "6 N + 12 L a d s", "PaLM, MosaicML"},
    {"nanogpt", "6 (N - positions) + 12 L a d s", "nanoGPT"},
    {"torchtitan", "6 (N - input table) + 12 L a d s", "torchtitan, TinyLlama"},
    {"megatron", "6 N_products + 12 L a d s", "Megatron, DGX Cloud, MaxText"},
    {"llmc", "6 N + 6 L a d s", "llm.c, llmq"},
}};

int64_t active_parameters(const ModelConfig& config) {
  const auto* llama = std::get_if<LlamaConfig>(&config);
  return llama ? llama->active_parameter_count() : parameter_count(config);
}

}  // namespace

const ConventionInfo& info_of(Convention convention) {
  return kInfos[static_cast<size_t>(convention)];
}

Convention parse_convention(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<Convention>(i);
    known += join_text(known.empty() ? "" : ", ", kInfos[i].name);
  }
  fail("there is no convention \"", name, "\"; use one of ", known);
}

FlopFacts flop_facts(const ModelConfig& config, const StepCost& cost, int64_t tokens) {
  const auto per_token = [&](double flops) { return flops / static_cast<double>(tokens); };
  return {.parameters = static_cast<double>(active_parameters(config)),
          .embedding = cost.embedding,
          .positions = cost.positions,
          .products = per_token(cost.products) / 2,
          .attention = per_token(cost.attention),
          .attention_full = per_token(cost.attention_all),
          .head = per_token(cost.head),
          .recomputed = per_token(cost.recomputed)};
}

FlopFacts flop_facts(double parameters) {
  return {.parameters = parameters, .products = parameters};
}

double flops_per_token(Convention convention, const FlopFacts& facts) {
  const double n = facts.parameters;
  switch (convention) {
    case Convention::exact: return 6 * facts.products + 3 * facts.attention;
    case Convention::six_n: return 6 * n;
    case Convention::palm: return 6 * n + 3 * facts.attention_full;
    case Convention::nanogpt: return 6 * (n - facts.positions) + 3 * facts.attention_full;
    case Convention::torchtitan:
      return 6 * (n - (facts.embedding - facts.positions)) + 3 * facts.attention_full;
    case Convention::megatron: return 6 * facts.products + 3 * facts.attention_full;
    case Convention::llmc: return 6 * n + 1.5 * facts.attention_full;
  }
  fail("a convention that is none");
}

double recomputed_per_token(const FlopFacts& facts, RematPolicy recompute) {
  const double layers = 2 * facts.products - facts.head + facts.attention_full;
  switch (recompute) {
    case RematPolicy::full: return layers;
    case RematPolicy::selective: return facts.attention_full;
    default: return facts.recomputed;
  }
}

}  // namespace brrr
