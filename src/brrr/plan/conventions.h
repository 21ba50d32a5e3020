// The ways in which people count the FLOPs of a training token, side by side. An MFU without its convention is
// not a number: the same run differs by a tenth between them.
#pragma once

#include <array>
#include <string_view>

#include "brrr/compiler/remat/rematerialize.h"
#include "brrr/plan/model/model_cost.h"

namespace brrr::plan {

enum class Convention : uint8_t {
  exact,       // products with weights and the pairs that a causal mask leaves: the graph itself
  six_n,       // 6 N: no attention (Kaplan, Chinchilla, the lecture)
  palm,        // 6 N + 12 L a d s: all parameters, full square (PaLM, MosaicML)
  nanogpt,     // the same without learned positions
  torchtitan,  // the same without the input table
  megatron,    // products + full square (Megatron, DGX Cloud, MaxText)
  llmc         // 6 N + 6 L a d s: all parameters, half the square (llm.c, llmq)
};
inline constexpr int kConventions = 7;

struct ConventionInfo {
  std::string_view name, formula, used_by;
};
const ConventionInfo& info_of(Convention convention);
Convention parse_convention(std::string_view name);

// What the counts are made of. `products` is the count of weights that one token multiplies.
struct FlopFacts {
  double parameters = 0;  // active ones
  double embedding = 0, positions = 0;
  double products = 0;
  double attention = 0;             // forward FLOPs of a token over the pairs that it sees
  double attention_full = 0;        // over the whole square: 4 L a d s
  double head = 0;                  // forward FLOPs of a token
  double recomputed = 0;            // forward FLOPs of a token that run again, by the graph
  double recomputed_attention = 0;  // of those attention's, over the pairs that it sees
};
// From the graph, for one token of a sequence of options.seq. Without layers or attention (a bare count of
// parameters) all conventions are 6 N.
FlopFacts flop_facts(const ModelConfig& config, const StepCost& cost, int64_t tokens);
FlopFacts flop_facts(double parameters);

double flops_per_token(Convention convention, const FlopFacts& facts);

// What the hardware runs for a token beside the model's own FLOPs: second runs of layers, the head never. Attention is
// counted as the convention counts it, so that HFU / MFU does not depend on pairs that one of the two leaves out.
double recomputed_per_token(Convention convention, const FlopFacts& facts,
                            compiler::RematPolicy recompute);

}  // namespace brrr::plan
