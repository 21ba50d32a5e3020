// state.json: what comes back, and how old and damaged files are met.
#include "brrr/train/state.h"

#include <gtest/gtest.h>

#include "support/error_of.h"

namespace brrr {
namespace {

training::TrainingState some_state() {
  training::TrainingState state{.step = 120, .brrr_version = "0.1.0", .tokenizer_hash = "abc"};
  state.guard.losses = {2.5, 2.25};
  state.guard.limits = {{}, {.loss = 3.5}, {.loss = 3, .grad_norm = 7}};
  state.best_loss = 2.25;
  return state;
}

TEST(TrainingStateFile, KeepsTheAlgorithmsOfAGpu) {
  training::TrainingState state = some_state();
  state.algorithms = {
      .library = "NVIDIA H200 driver 13000 cublasLt 130100",
      .lines = "m8 n8 k8 = " + kernels::to_text(kernels::GemmAlgorithm{{1, 2, 3, 4, 5, 6, 7, 8}}) +
               "\n"};
  const training::TrainingState read =
      training::parse_training_state(training::to_json(state), "state.json");
  EXPECT_EQ(read.algorithms, state.algorithms);
  EXPECT_EQ(read.step, 120);
  EXPECT_EQ(read.guard, state.guard);
}

TEST(TrainingStateFile, OfTheCpuHasNoAlgorithms) {
  const std::string json = training::to_json(some_state());
  EXPECT_EQ(json.find("algorithms"), std::string::npos);
  EXPECT_EQ(training::parse_training_state(json, "state.json").algorithms,
            kernels::AlgorithmChoices{});
}

TEST(TrainingStateFile, NamesDamagedAlgorithms) {
  training::TrainingState state = some_state();
  state.algorithms = {.library = "a GPU", .lines = ""};
  std::string json = training::to_json(state);
  const std::string key = "\"products\"";
  json.replace(json.find(key), key.size(), "\"product_s\"");
  EXPECT_NE(error_of([&] {
              training::parse_training_state(json, "run/state.json");
            }).find("run/state.json is damaged: it has no products"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
