#include "brrr/plan/conventions.h"

#include "brrr/base/join_names.h"

namespace brrr::plan {
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

// Forward FLOPs of a token's attention.
double attention_by(Convention convention, const FlopFacts& facts) {
  switch (convention) {
    case Convention::exact: return facts.attention;
    case Convention::six_n: return 0;
    case Convention::llmc: return facts.attention_full / 2;
    default: return facts.attention_full;
  }
}

}  // namespace

const ConventionInfo& info_of(Convention convention) {
  return kInfos[static_cast<size_t>(convention)];
}

Convention parse_convention(std::string_view name) {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<Convention>(i);
  }
  fail("there is no convention \"", name, "\"; use one of ",
       join_names(kInfos, &ConventionInfo::name));
}

FlopFacts flop_facts(const ModelConfig& config, const StepCost& cost, int64_t tokens) {
  const auto per_token = [&](double flops) { return flops / static_cast<double>(tokens); };
  return {.parameters = static_cast<double>(active_parameter_count(config)),
          .embedding = cost.embedding,
          .positions = cost.positions,
          .products = per_token(cost.products) / 2,
          .attention = per_token(cost.attention),
          .attention_full = per_token(cost.attention_all),
          .head = per_token(cost.head),
          .recomputed = per_token(cost.recomputed),
          .recomputed_attention = per_token(cost.recomputed_attention)};
}

FlopFacts flop_facts(double parameters) {
  return {.parameters = parameters, .products = parameters};
}

double flops_per_token(Convention convention, const FlopFacts& facts) {
  const double n = facts.parameters, attention = 3 * attention_by(convention, facts);
  switch (convention) {
    case Convention::exact:
    case Convention::megatron: return 6 * facts.products + attention;
    case Convention::six_n:
    case Convention::palm:
    case Convention::llmc: return 6 * n + attention;
    case Convention::nanogpt: return 6 * (n - facts.positions) + attention;
    case Convention::torchtitan: return 6 * (n - (facts.embedding - facts.positions)) + attention;
  }
  fail("a convention that is none");
}

double recomputed_per_token(Convention convention, const FlopFacts& facts,
                            compiler::RematPolicy recompute) {
  const double attention = attention_by(convention, facts);
  switch (recompute) {
    case compiler::RematPolicy::full: return 2 * facts.products - facts.head + attention;
    case compiler::RematPolicy::selective: return attention;
    default: break;
  }
  const double share = facts.attention > 0 ? facts.recomputed_attention / facts.attention : 0;
  return facts.recomputed - facts.recomputed_attention + share * attention;
}

}  // namespace brrr::plan
