#include "brrr/plan/fit/fit_space.h"

#include <fmt/format.h>

#include <algorithm>

namespace brrr::plan {
const ModelConfig& fit_model(const RunQuestion& question) {
  if (!question.model) fail("a search over layouts needs the shape of the model; give --model");
  return *question.model;
}

std::vector<int64_t> divisors_of(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// Powers of two fill nodes; stages that do not divide the layers differ by one layer.
std::vector<int64_t> possible_stages(int64_t layers) {
  std::vector<int64_t> stages = divisors_of(layers);
  for (int64_t power = 1; power <= layers; power *= 2) stages.push_back(power);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

bool makes_nodes(int64_t count, int64_t node_size) {
  return count <= node_size || count % node_size == 0;
}

std::vector<ParallelLayout> possible_cuts(const RunQuestion& question, int64_t most) {
  const ModelConfig& model = fit_model(question);
  const ModelShape shape = shape_of(model);
  // A recurrent model is not cut: its steps follow each other.
  const bool is_cut = shape.heads > 0;
  std::vector<ParallelLayout> cuts;
  for (int64_t tp = 1; tp <= std::min(question.node_size, most); ++tp) {
    if (!splits_by(model, tp)) continue;
    for (const int64_t pp : possible_stages(is_cut ? shape.layers : 1)) {
      for (int64_t cp = 1; cp <= (is_cut ? kMostFitContext : 1); cp *= 2) {
        if (tp * pp * cp > most) break;
        const bool has_tokens =
            cp == 1 || (question.seq % cp == 0 && question.seq / cp >= kLeastContextPart);
        if (has_tokens) cuts.push_back({.tp = tp, .pp = pp, .cp = cp});
      }
    }
  }
  return cuts;
}

std::vector<ParallelLayout> possible_shares(const RunQuestion& question, const ParallelLayout& cut,
                                            int64_t dp) {
  const int64_t experts = shape_of(fit_model(question)).experts, ranks = dp * cut.cp;
  std::vector<ParallelLayout> layouts;
  for (const int64_t ep : divisors_of(std::max<int64_t>(1, experts))) {
    if (ranks % ep != 0) continue;
    ParallelLayout layout = cut;
    layout.ep = ep;
    if (ranks == 1) {
      layouts.push_back(layout);
      continue;
    }
    for (layout.zero = 1; layout.zero <= 3; ++layout.zero) layouts.push_back(layout);
  }
  return layouts;
}

std::vector<int64_t> possible_interleaves(const RunQuestion& question, const ParallelLayout& cut) {
  if (cut.pp == 1) return {1};
  const int64_t layers = shape_of(fit_model(question)).layers;
  if (layers % cut.pp == 0) return divisors_of(layers / cut.pp);
  const int64_t most = (layers + 2) / cut.pp;  // the ends may be without a layer
  return most > 1 ? std::vector<int64_t>{1, most} : std::vector<int64_t>{1};
}

std::vector<int64_t> possible_copies(const RunQuestion& question, const ParallelLayout& cut,
                                     int64_t most) {
  const int64_t devices = devices_of(cut), longest = most / devices;
  std::vector<int64_t> copies;
  const auto add = [&](int64_t dp) {
    const int64_t count = devices * dp;
    const bool splits_nodes = count > question.node_size && question.node_size % cut.tp != 0;
    if (dp <= longest && makes_nodes(count, question.node_size) && !splits_nodes)
      copies.push_back(dp);
  };
  if (question.global_batch > 0) {
    check(question.global_batch % question.micro_batch == 0, "a global batch of ",
          question.global_batch, " sequences is not a multiple of micro-batch ",
          question.micro_batch);
    for (const int64_t dp : divisors_of(question.global_batch / question.micro_batch)) add(dp);
  } else {
    for (int64_t dp = 1; dp <= longest; ++dp) add(dp);
  }
  return copies;
}

std::string_view fit_space_text() {
  return "tp over divisors of heads within a node, pp of layers and powers of two, interleave of "
         "layers / pp (1 and the most there can be where pp does not divide), ep of experts; cp "
         "over powers of two that leave 4096 tokens a device; ZeRO 1 and 3, and 2 "
         "where a step is one micro-batch; recomputation none, selective and full; nodes whole";
}

std::string plan_text(const ParallelLayout& l, int64_t dp, compiler::RematPolicy recompute) {
  const std::string virtual_stages =
      l.interleave > 1 ? fmt::format(" (interleave {})", l.interleave) : "";
  return fmt::format("tp {} pp {}{} cp {} ep {} dp {}, ZeRO {}, recompute {}", l.tp, l.pp,
                     virtual_stages, l.cp, l.ep, dp, l.zero, compiler::policy_name(recompute));
}

}  // namespace brrr::plan
