// The plans that `fit` searches, all of which `brrr napkin train` takes:
//
//   tp   divisors of heads, key heads and hidden units within a node; of the node, where there are several
//   pp   divisors of layers, and powers of two; interleave: divisors of layers / pp, or 1 and the most there can be
//        where pp does not divide the layers
//   cp   powers of two up to 64 that leave a device 4096 tokens or more: pieces are priced as parts of whole kernels
//   ep   divisors of experts that divide dp x cp
//   dp   such that nodes are whole and the global batch is a multiple of dp x micro-batch
//   ZeRO 1 to 3 where dp x cp > 1, and recomputation none, selective or full; 2 only where a step is one micro-batch,
//        since it would otherwise send gradients with each
#pragma once

#include "brrr/plan/cluster/run_question.h"

namespace brrr::plan {

constexpr compiler::RematPolicy kFitPolicies[] = {
    compiler::RematPolicy::none, compiler::RematPolicy::selective, compiler::RematPolicy::full};
constexpr int64_t kMostFitContext = 64;
constexpr int64_t kLeastContextPart = 4096;  // tokens of a sequence on one of cp devices

// The model of a question; throws Error where there is but a number of parameters.
const ModelConfig& fit_model(const RunQuestion& question);
std::vector<int64_t> divisors_of(int64_t number);

// Nodes are whole beyond the first.
bool makes_nodes(int64_t count, int64_t node_size);

// Degrees of tp, pp and cp of at most `most` devices; the rest of a layout is as by default.
std::vector<ParallelLayout> possible_cuts(const RunQuestion& question, int64_t most);
inline int64_t devices_of(const ParallelLayout& cut) { return cut.tp * cut.pp * cut.cp; }

// Degrees of ep for a cut, and shares of ZeRO, of dp copies.
std::vector<ParallelLayout> possible_shares(const RunQuestion& question, const ParallelLayout& cut,
                                            int64_t dp);
// Virtual stages of a device.
std::vector<int64_t> possible_interleaves(const RunQuestion& question, const ParallelLayout& cut);

// Copies of a cut up to `most` devices, ascending: nodes whole, and the batch divided where it is given.
std::vector<int64_t> possible_copies(const RunQuestion& question, const ParallelLayout& cut,
                                     int64_t most);

// The above in a sentence.
std::string_view fit_space_text();

// "tp 8 pp 18 (interleave 7) cp 1 ep 1 dp 64, ZeRO 1, recompute selective"
std::string plan_text(const ParallelLayout& layout, int64_t dp, compiler::RematPolicy recompute);

}  // namespace brrr::plan
