// Choices of algorithms with a made-up library: candidates are numbers, and timings are what a test says.
#include "brrr/kernels/cuda/gemm/gemm_choices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/error_of.h"

namespace brrr {
namespace {

kernels::GemmAlgorithm algorithm(uint64_t number) {
  return {{number, 0, 0, 0, 0, 0, 0, number << 60}};
}

const std::vector<kernels::GemmAlgorithm> kCandidates = {algorithm(1), algorithm(2), algorithm(3)};

// A clock by which this algorithm is the fastest.
auto fastest(uint64_t number) {
  return [number](const kernels::GemmAlgorithm& each) {
    return each == algorithm(number) ? 1.0 : 2.0;
  };
}

// A fresh place for a file.
std::string path_for(const std::string& name) {
  const auto path = std::filesystem::temp_directory_path() / ("brrr_gemm_choices_" + name);
  std::filesystem::remove(path);
  return path.string();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(GemmChoices, TimesAProductOnceAndRemembers) {
  kernels::GemmChoices choices;
  int timings = 0;
  const auto clock = [&](const kernels::GemmAlgorithm& each) {
    ++timings;
    return each == algorithm(3) ? 1.0 : 2.0;
  };
  EXPECT_EQ(kernels::choose_gemm_algorithm(choices, "m8 n8 k8", kCandidates, clock), algorithm(3));
  EXPECT_EQ(kernels::choose_gemm_algorithm(choices, "m8 n8 k8", kCandidates, clock), algorithm(3));
  EXPECT_EQ(timings, 3);
  EXPECT_EQ(kernels::choose_gemm_algorithm(choices, "m9 n9 k9", kCandidates, {}), algorithm(1))
      << "without a clock the library's advice";
}

// Algorithm 1 is fastest while the GPU is cool, 2 when it is hot, and 3 is never.
TEST(GemmChoices, WhatIsFastestOnAHotGpuIsTaken) {
  kernels::GemmChoices choices;
  double heat = 0;
  int hopeless = 0;
  const auto clock = [&](const kernels::GemmAlgorithm& each) {
    hopeless += each == algorithm(3) ? 1 : 0;
    const double seconds = each == algorithm(3)   ? 0.02
                           : each == algorithm(2) ? 0.011
                           : heat < 0.1           ? 0.010
                                                  : 0.012;
    heat += seconds;
    return seconds;
  };
  EXPECT_EQ(kernels::choose_gemm_algorithm(choices, "cool", kCandidates, clock), algorithm(1));
  heat = 0, hopeless = 0;
  EXPECT_EQ(kernels::choose_gemm_algorithm(choices, "hot", kCandidates, clock, 0.4), algorithm(2));
  EXPECT_EQ(hopeless, 1) << "far behind after one round";
  EXPECT_GE(heat, 0.4);
  EXPECT_LT(heat, 0.5);
}

// The promise of a run: whatever the clocks say, the choice file decides.
TEST(GemmChoices, TheSameFileGivesTheSameAlgorithmsFromTwoColdCaches) {
  kernels::GemmChoices first;
  for (const char* product : {"a", "b", "c"})
    kernels::choose_gemm_algorithm(first, product, kCandidates, fastest(2));
  const std::string file = first.used_text();
  for (const uint64_t other : {1, 3}) {
    kernels::GemmChoices cold;
    cold.pin(file);
    for (const char* product : {"c", "a", "b"})
      EXPECT_EQ(kernels::choose_gemm_algorithm(cold, product, kCandidates, fastest(other)),
                algorithm(2));
    EXPECT_EQ(cold.used_text(), file);
  }
}

TEST(GemmChoices, ThoseOfARunWinOverTheFileOfTheMachine) {
  const std::string path = path_for("precedence");
  std::ofstream(path) << "a = " << kernels::to_text(algorithm(1))
                      << "\nb = " << kernels::to_text(algorithm(1)) << '\n';
  const std::string run = "a = " + kernels::to_text(algorithm(3)) + "\n";
  kernels::GemmChoices before, after;
  before.pin(run);
  before.keep_in(path);
  after.keep_in(path);
  after.pin(run);
  for (kernels::GemmChoices* choices : {&before, &after}) {
    EXPECT_EQ(choices->find("a"), algorithm(3));
    EXPECT_EQ(choices->find("b"), algorithm(1));
  }
  EXPECT_EQ(text_of(path).find(kernels::to_text(algorithm(3))), std::string::npos)
      << "a run does not change the choices of others";
}

TEST(GemmChoices, NewOnesAreAddedToTheFileAndFoundByTheNextProcess) {
  const std::string path = path_for("kept");
  kernels::GemmChoices first;
  first.keep_in(path);
  kernels::choose_gemm_algorithm(first, "a", kCandidates, fastest(2));
  kernels::GemmChoices second;
  second.keep_in(path);
  EXPECT_EQ(kernels::choose_gemm_algorithm(second, "a", kCandidates, fastest(3)), algorithm(2));
}

TEST(GemmChoices, ARunHasWhatItUsedAndNotAllThatIsKnown) {
  kernels::GemmChoices choices;
  const std::string path = path_for("used");
  std::ofstream(path) << "a = " << kernels::to_text(algorithm(1))
                      << "\nb = " << kernels::to_text(algorithm(2)) << '\n';
  choices.keep_in(path);
  choices.find("b");
  EXPECT_EQ(choices.used_text(), "b = " + kernels::to_text(algorithm(2)) + "\n");
  EXPECT_NE(choices.text().find("a = "), std::string::npos);
}

TEST(GemmChoices, ARunDoesNotHaveWhatACalibrationBeforeItUsed) {
  kernels::GemmChoices choices;
  choices.pin("a = " + kernels::to_text(algorithm(1)) + "\n");
  choices.add("b", algorithm(2));
  choices.forget_uses();
  EXPECT_EQ(choices.used_text(), "a = " + kernels::to_text(algorithm(1)) + "\n");
  EXPECT_EQ(choices.find("b"), algorithm(2)) << "it is still known";
  EXPECT_NE(choices.used_text().find("b = "), std::string::npos);
}

TEST(GemmChoices, TextComesBackAndDamageIsNamed) {
  kernels::GemmChoices choices, copy;
  choices.add("m4096 n768 k768 a:bf16r768+0@16", algorithm(9));
  copy.pin(choices.text());
  EXPECT_EQ(copy.text(), choices.text());
  const std::string good = "a = " + kernels::to_text(algorithm(1)) + "\n";
  EXPECT_NE(error_of([&] {
              copy.pin(good + "nonsense\n", "run/algorithms.txt");
            }).find("run/algorithms.txt is damaged: \"nonsense\""),
            std::string::npos);
  EXPECT_EQ(copy.find("a"), std::nullopt) << "nothing is taken of a damaged text";
  EXPECT_NE(error_of([&] { copy.pin("a = 12ff\n"); }).find("no algorithm"), std::string::npos);
}

TEST(GemmChoices, AResumedRunPinsItsOwnOrSaysThatBitsDiffer) {
  const std::string here = "NVIDIA H200 driver 13000 cublasLt 130100";
  const kernels::AlgorithmChoices saved{here, "a = " + kernels::to_text(algorithm(3)) + "\n"};
  kernels::GemmChoices choices;
  EXPECT_EQ(kernels::restore_choices(choices, saved, here), "");
  EXPECT_EQ(kernels::choose_gemm_algorithm(choices, "a", kCandidates, fastest(1)), algorithm(3));

  kernels::GemmChoices elsewhere;
  const std::string words =
      kernels::restore_choices(elsewhere, saved, "NVIDIA A100 driver 12080 cublasLt 1");
  EXPECT_NE(words.find("bits of later losses differ"), std::string::npos) << words;
  EXPECT_NE(words.find("A100"), std::string::npos) << words;
  EXPECT_EQ(elsewhere.find("a"), std::nullopt);
  EXPECT_NE(kernels::restore_choices(elsewhere, saved, "").find("this is no GPU"),
            std::string::npos);
  EXPECT_NE(kernels::restore_choices(elsewhere, {}, here).find("bits of later losses differ"),
            std::string::npos);
  EXPECT_EQ(kernels::restore_choices(elsewhere, {}, ""), "") << "the cpu has one algorithm";
}

}  // namespace
}  // namespace brrr
