// Finding chains: a step passes its value on when the next step is the only one to read it. A step by
// itself is a chain of one: chains take constants from a register.
#include <algorithm>

#include "brrr/compiler/tiles/tile_program.h"

namespace brrr::compiler {
namespace {

constexpr size_t kNone = SIZE_MAX;

class ChainFinder {
 public:
  ChainFinder(const std::vector<TileStep>& steps, const std::vector<bool>& is_kept)
      : steps_(steps),
        is_kept_(is_kept),
        reads_(is_kept.size(), 0),
        reader_(is_kept.size(), kNone),
        previous_(steps.size(), kNone),
        is_passed_on_(steps.size(), false) {
    for (size_t s = 0; s < steps.size(); ++s) {
      for (int slot : steps[s].inputs) {
        ++reads_[static_cast<size_t>(slot)];
        reader_[static_cast<size_t>(slot)] = s;
      }
    }
  }

  std::vector<TileStep> run() {
    link();
    std::vector<TileStep> steps;
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (is_passed_on_[s]) continue;  // its chain runs where the last of its steps was
      steps.push_back(steps_[s].code == ChainCode::none ? steps_[s] : chain_to(s));
    }
    return steps;
  }

 private:
  void link() {
    std::vector<size_t> length(steps_.size(), 1);
    for (size_t s = 0; s < steps_.size(); ++s) {
      const auto slot = static_cast<size_t>(steps_[s].output);
      const size_t next = reader_[slot];
      if (steps_[s].code == ChainCode::none || is_kept_[slot] || reads_[slot] != 1) continue;
      if (steps_[next].code == ChainCode::none || previous_[next] != kNone) continue;
      if (length[s] + 2 > kernels::kMaxChainInputs) continue;
      previous_[next] = s;
      length[next] = length[s] + 1;
      is_passed_on_[s] = true;
    }
  }

  TileStep chain_to(size_t last) const {
    std::vector<size_t> members;
    for (size_t s = last; s != kNone; s = previous_[s]) members.push_back(s);
    std::reverse(members.begin(), members.end());
    TileStep chain{.kind = TileStep::Kind::chain,
                   .inputs = {steps_[members[0]].inputs[0]},
                   .output = steps_[last].output,
                   .type = ComputeType::f32,
                   .chain = {}};
    int value = chain.inputs[0];  // the slot that the chain stands for so far
    for (size_t s : members) {
      const TileStep& step = steps_[s];
      kernels::ChainOp op{.code = step.code};
      if (step.inputs.size() == 2) {
        op.reversed = step.inputs[0] != value;
        op.input = chain.inputs.size();
        chain.inputs.push_back(step.inputs[op.reversed ? 0 : 1]);
      }
      chain.chain.push_back(op);
      value = step.output;
    }
    return chain;
  }

  const std::vector<TileStep>& steps_;
  const std::vector<bool>& is_kept_;
  std::vector<int> reads_;        // by slot
  std::vector<size_t> reader_;    // by slot: one that reads it
  std::vector<size_t> previous_;  // by step: the one that hands its value over
  std::vector<bool> is_passed_on_;
};

}  // namespace

std::vector<TileStep> form_chains(const std::vector<TileStep>& steps,
                                  const std::vector<bool>& is_kept) {
  return ChainFinder(steps, is_kept).run();
}

}  // namespace brrr::compiler
