// A GPT of four layers, trained with AdamW under every way to keep and recompute: the same bits, and the
// memory that was asked for.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/lower/peak_holders.h"
#include "brrr/device/ledger.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/create/creation.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"
#include "support/thread_count.h"

namespace brrr {
namespace {

constexpr int64_t kBatch = 4, kSeq = 32;
constexpr int kSteps = 5;

Tensor ids(int64_t factor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < kBatch * kSeq; ++i) values.push_back(i * i * factor % 256);
  return from_values(values, {kBatch, kSeq});
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> parameters;
  int64_t arena_bytes = 0;
  int64_t touched_bytes = 0;
  std::vector<compiler::KeptValue> kept;
};

Trained train(const compiler::PipelineOptions& options, int steps = kSteps) {
  const ThreadCount two(2);  // scratch, which no choice can save, grows with threads
  Random random(3);
  const Gpt2 model(gpt2_preset("gpt2-tiny"), random);
  AdamW optimizer(model.named_parameters(), {.weight_decay = 0.1});
  auto step = runtime::compile(
      [&](const Tensor& tokens, const Tensor& targets) {
        const Tensor loss = model.loss(tokens, targets);
        std::vector<Tensor> grads = grad(loss, optimizer.parameters());
        clip_global_norm(grads, 1.0);
        optimizer.update(grads, 1e-2);
        return loss.detach();
      },
      options);
  const Tensor batch[] = {ids(1), ids(3)};
  Trained run;
  for (int i = 0; i < steps; ++i) run.losses.push_back(step(batch[0], batch[1]).item<float>());
  for (const Tensor& x : model.parameters()) run.parameters.push_back(x.to_vector<float>());
  const runtime::Executable& program = step.function().executable(batch);
  run.arena_bytes = program.plan().arena_bytes;
  run.touched_bytes = program.cost().bytes_read + program.cost().bytes_written;
  run.kept = compiler::kept_values(program.graph());
  return run;
}

const Trained& keep_all() {
  static const Trained run = train({.remat = {.policy = compiler::RematPolicy::none}});
  return run;
}

void expect_same_bits(const Trained& found, const char* what) {
  EXPECT_EQ(found.losses, keep_all().losses) << what;
  EXPECT_EQ(found.parameters, keep_all().parameters) << what;
}

TEST(Gpt2Remat, EveryPolicyKeepsTheBits) {
  EXPECT_LT(keep_all().losses.back(), keep_all().losses.front());
  for (const compiler::RematPolicy policy :
       {compiler::RematPolicy::selective, compiler::RematPolicy::full,
        compiler::RematPolicy::budget}) {
    const std::string name(compiler::policy_name(policy));
    expect_same_bits(train({.remat = {.policy = policy}}), name.c_str());
    expect_same_bits(train({.remat = {.policy = policy}, .without = {"fuse"}}), name.c_str());
  }
}

TEST(Gpt2Remat, PoliciesUseLessMemory) {
  const Trained selective = train({.remat = {.policy = compiler::RematPolicy::selective}}, 1),
                full = train({.remat = {.policy = compiler::RematPolicy::full}}, 1);
  EXPECT_LT(selective.arena_bytes, 0.8 * static_cast<double>(keep_all().arena_bytes));
  EXPECT_LT(full.arena_bytes, selective.arena_bytes);
}

// Without a budget nothing is bought but speed.
TEST(Gpt2Remat, NoBudgetMovesNoMoreBytes) {
  EXPECT_LE(train({}, 1).touched_bytes, keep_all().touched_bytes);
}

// What a budget below every plan says the smallest one is.
int64_t smallest_arena() {
  static const int64_t bytes = [] {
    const std::string message =
        error_of([] { train({.remat = {.memory_budget = Bytes(1000)}}, 1); });
    const std::string before = "needs at least ";
    const size_t at = message.find('(', message.find(before));
    std::string digits;
    for (const char c : message.substr(at, message.find(" B)", at) - at)) {
      if (c >= '0' && c <= '9') digits += c;
    }
    return static_cast<int64_t>(std::stoll(digits));
  }();
  return bytes;
}

TEST(Gpt2Remat, BudgetsAreHeldAndKeepTheBits) {
  int64_t before = keep_all().arena_bytes;
  for (const double share : {0.8, 0.5, 0.2}) {
    const auto room = static_cast<double>(keep_all().arena_bytes - smallest_arena());
    const int64_t budget = smallest_arena() + static_cast<int64_t>(share * room);
    const Trained run = train({.remat = {.memory_budget = Bytes(budget)}});
    EXPECT_LE(run.arena_bytes, budget);
    EXPECT_LT(run.arena_bytes, before) << "the peak falls with the budget";
    before = run.arena_bytes;
    expect_same_bits(run, "budget");
  }
}

// The plan is not a promise: the ledger sees exactly these bytes.
TEST(Gpt2Remat, TightestBudgetRuns) {
  const Trained run = train({.remat = {.memory_budget = Bytes(smallest_arena())}});
  EXPECT_LE(run.arena_bytes, smallest_arena());
  EXPECT_LT(run.arena_bytes, 0.6 * static_cast<double>(keep_all().arena_bytes));
  expect_same_bits(run, "tightest budget");
  const std::string below =
      error_of([] { train({.remat = {.memory_budget = Bytes(smallest_arena() - 1)}}, 1); });
  EXPECT_NE(below.find("needs at least"), std::string::npos) << below;
}

TEST(Gpt2Remat, InfeasibleBudgetSaysWhatHoldsTheMemory) {
  const std::string message = error_of([] { train({.remat = {.memory_budget = Bytes(1000)}}, 1); });
  EXPECT_NE(message.find("1000 B"), std::string::npos) << message;
  EXPECT_NE(message.find("At its fullest, while "), std::string::npos) << message;
  EXPECT_NE(message.find(" KiB"), std::string::npos) << message;
  EXPECT_NE(message.find("f32[4, 32, "), std::string::npos) << message;
}

// Why store activations? Four wide values a layer, each with who needs it and what it costs to make.
TEST(Gpt2Remat, ReportsKeptActivations) {
  int wide = 0;
  for (const compiler::KeptValue& kept : keep_all().kept) {
    EXPECT_TRUE(kept.needed_by.valid());
    if (kept.bytes == kBatch * kSeq * 4 * 64 * 4) ++wide;  // 4 x width, f32
    if (kept.name == "linear of h.0.mlp.c_fc.weight") {
      EXPECT_GT(kept.recompute_seconds, 0);
    }
  }
  EXPECT_GE(wide, 2 * 4);  // around the gelu of every layer; the logits are as large
}

}  // namespace
}  // namespace brrr
