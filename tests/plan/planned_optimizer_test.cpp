// The planner's bytes of optimizer state are those of the optimizer that training makes.
#include "brrr/plan/cluster/planned_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/plan/cluster/run_question.h"
#include "brrr/train/setup.h"
#include "support/error_of.h"

namespace brrr {
namespace {

// On one device without sharding: tables of tokens and positions, untied heads, experts.
TEST(PlannedOptimizer, StatesAreThoseOfTheTrainersOptimizer) {
  for (const OptimizerEntry* entry : optimizer_entries()) {
    for (const char* model : {"gpt2-124m", "llama-tiny", "llama-moe-tiny", "qwen2.5-0.5b"}) {
      plan::RunQuestion q;
      q.model = model_preset(model);
      q.tokens = 1e9, q.gpu = "h200";
      q.seq = 64, q.global_batch = 1;
      q.optimizer = entry->name;
      training::StepSpec spec = training::on_paper(training::default_step(*q.model, 1, 64));
      spec.optimizer = entry->name;
      EXPECT_EQ(plan::answer(q).memory.optimizer,
                static_cast<double>(training::make_parts(spec).optimizer->state_bytes().value()))
          << entry->name << " of " << model;
    }
  }
}

// What a plan shares out among devices instead of cutting it is a word of the registry, not of the planner.
TEST(PlannedOptimizer, NeedsWholeMatricesWhereTheRegistrySaysSo) {
  for (const OptimizerEntry* entry : optimizer_entries()) {
    EXPECT_EQ(plan::planned_optimizer(entry->name).whole_matrices, entry->whole_matrices);
    EXPECT_EQ(entry->whole_matrices, entry->name == "muon" ? "Newton-Schulz products" : "")
        << entry->name;
  }
  EXPECT_EQ(plan::planned_optimizer("adafactor").whole_matrices, "");
}

// Of GPT-2 124M's 124,439,808 parameters 84,934,656 are matrices between layers.
TEST(PlannedOptimizer, MuonKeepsTwoMomentsOfTables) {
  plan::RunQuestion q;
  q.model = model_preset("gpt2-124m");
  q.tokens = 1e9, q.gpu = "h200";
  q.seq = 1024, q.global_batch = 1;
  q.optimizer = "muon";
  EXPECT_EQ(plan::answer(q).memory.optimizer,
            4 * 84'934'656.0 + 8 * (124'439'808.0 - 84'934'656.0) + 8);
}

TEST(PlannedOptimizer, OfOtherSystemsKeepsLess) {
  const auto bytes = [](const char* name) {
    return plan::matrix_state_bytes(plan::planned_optimizer(name));
  };
  EXPECT_EQ(bytes("adamw"), 8);
  EXPECT_EQ(bytes("adamw8bit"), 2);
  EXPECT_EQ(bytes("adamw-bf16"), 4);
  EXPECT_DOUBLE_EQ(bytes("adafactor"), 0.02);
  for (const char* name : {"sgd", "momentum", "nesterov", "lion", "muon"})
    EXPECT_EQ(bytes(name), 4) << name;
  EXPECT_EQ(error_of([] { plan::planned_optimizer("adamz"); }),
            "there is no optimizer \"adamz\"; use one of " + plan::planned_optimizer_names());
}

}  // namespace
}  // namespace brrr
