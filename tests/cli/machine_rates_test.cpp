// Rates of this machine: `brrr train` measures them where none are stored, stores them, and reads them the next time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: setenv is POSIX

#include <filesystem>
#include <nlohmann/json.hpp>

#include "brrr/base/thread_pool.h"
#include "brrr/hardware/measure.h"
#include "brrr/hardware/rates.h"
#include "support/run_program.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kMeasuring = "measuring this machine (2 s, once)";

class MachineRates : public testing::Test {
 protected:
  MachineRates() {
    text_ = folder_.write("text.txt", std::string(2000, 'a') + std::string(2000, 'b'));
    use_cache(folder_ / "cache");
  }
  ~MachineRates() override {
    setenv("XDG_CACHE_HOME", cache_before_.c_str(), 1);
    setenv("HOME", home_before_.c_str(), 1);
  }
  static void use_cache(const fs::path& path) { setenv("XDG_CACHE_HOME", path.c_str(), 1); }

  std::string arguments(int threads) const {
    return join_text(
        "train ", text_.string(), " --out ", (folder_ / "run").string(),
        " --device cpu --layers 1 --heads 2 --width 16 --context 16 --batch 4 --steps 3"
        " --sample-every 0 --threads ",
        threads, " ");
  }
  Outcome plan(int threads = 1) const { return run(arguments(threads) + "--dry-run"); }
  nlohmann::json plan_json(int threads = 1) const {
    return nlohmann::json::parse(run(arguments(threads) + "--dry-run --json").output);
  }

  static std::string machine(int threads) {
    return join_text(hardware::cpu_name(), ", ", threads, " threads");
  }
  std::string stored_at(int threads = 1) const {
    std::string name = join_text(hardware::cpu_name(), " ", threads, " threads");
    for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
    return (folder_ / "cache" / "brrr" / join_text("rates-", name, ".json")).string();
  }
  // Rates that no measurement gives.
  static hardware::Rates made_up(hardware::RatesKind kind, int threads = 1) {
    hardware::Rates rates = hardware::rates_from_peaks(
        machine(threads),
        {.flops_per_second = 1e9, .bytes_per_second = 1e9, .launch_seconds = 1e-6});
    rates.threads = threads;
    rates.calibrated = true;
    rates.quick = kind == hardware::RatesKind::quick;
    rates.source = "made up";
    return rates;
  }

  TempFolder folder_;
  fs::path text_;
  const std::string cache_before_ = getenv("XDG_CACHE_HOME"), home_before_ = getenv("HOME");
};

TEST_F(MachineRates, AreMeasuredOnceAndStored) {
  const Outcome first = plan();
  EXPECT_EQ(first.status, 0) << first.output;
  EXPECT_THAT(first.output, AllOf(HasSubstr(kMeasuring), Not(HasSubstr("uncalibrated"))));
  const hardware::Rates stored = hardware::load_rates(stored_at());
  EXPECT_EQ(stored.kind(), hardware::RatesKind::quick);
  EXPECT_EQ(stored.machine, machine(1));
  EXPECT_EQ(stored.threads, 1);

  const std::string bytes = read_file(stored_at());
  EXPECT_THAT(plan().output, Not(HasSubstr("measuring")));
  const auto trained = nlohmann::json::parse(run(arguments(1) + "--json").output);
  EXPECT_EQ(trained["rates"]["kind"], "quick");
  EXPECT_EQ(trained["rates"]["source"], stored.source);
  EXPECT_GT(trained["predicted_step_seconds"], 0);
  const Outcome resumed = run(arguments(1) + "--resume");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, Not(HasSubstr("measuring")));
  EXPECT_EQ(read_file(stored_at()), bytes);
}

TEST_F(MachineRates, BelongToANumberOfThreads) {
  hardware::save_rates(made_up(hardware::RatesKind::quick), stored_at());
  EXPECT_EQ(plan_json()["rates"]["source"], "made up");
  EXPECT_THAT(plan(2).output, HasSubstr(kMeasuring));
  EXPECT_EQ(hardware::load_rates(stored_at(2)).threads, 2);
  EXPECT_EQ(hardware::load_rates(stored_at()).source, "made up");
}

TEST_F(MachineRates, OfAnotherMachineAreNotUsed) {
  hardware::Rates foreign = made_up(hardware::RatesKind::quick);
  foreign.machine = "a faster one, 1 threads";
  hardware::save_rates(foreign, stored_at());
  EXPECT_THAT(plan().output,
              AllOf(HasSubstr(join_text("stored rates are not used: ", stored_at(),
                                        ": holds rates of \"a faster one, 1 threads\", and this "
                                        "machine is \"",
                                        machine(1), "\"")),
                    HasSubstr(kMeasuring)));
  EXPECT_EQ(hardware::load_rates(stored_at()).machine, machine(1));
}

TEST_F(MachineRates, ThatCannotBeStoredAreUsedAllTheSame) {
  use_cache(text_);  // a file: no folder can be made below it
  const Outcome result = plan();
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr(kMeasuring), Not(HasSubstr("uncalibrated")), HasSubstr("a step"),
            HasSubstr("the rates of this machine could not be kept, so the next run measures them "
                      "again: cannot write ")));
  unsetenv("XDG_CACHE_HOME"), unsetenv("HOME");
  EXPECT_THAT(plan().output,
              AllOf(HasSubstr(kMeasuring),
                    HasSubstr("measures them again: neither XDG_CACHE_HOME nor HOME is set")));
}

TEST_F(MachineRates, ThatAreDamagedAreMeasuredAgain) {
  hardware::save_rates(made_up(hardware::RatesKind::quick), stored_at());
  fs::resize_file(stored_at(), 100);
  EXPECT_THAT(plan().output, AllOf(HasSubstr(join_text("stored rates are not used: ", stored_at(),
                                                       ": is not JSON, or was cut off")),
                                   HasSubstr(kMeasuring)));
  EXPECT_EQ(hardware::load_rates(stored_at()).kind(), hardware::RatesKind::quick);
}

TEST_F(MachineRates, InFullAreNotReplacedByQuickOnes) {
  hardware::save_rates(made_up(hardware::RatesKind::full), stored_at());
  const std::string bytes = read_file(stored_at());
  EXPECT_EQ(plan_json()["rates"]["kind"], "full");
  EXPECT_EQ(read_file(stored_at()), bytes);

  hardware::Rates foreign = made_up(hardware::RatesKind::full);
  foreign.machine = "a faster one, 1 threads";
  hardware::save_rates(foreign, stored_at());
  EXPECT_THAT(plan().output,
              AllOf(HasSubstr(kMeasuring), HasSubstr(stored_at() + " holds full rates")));
  EXPECT_EQ(hardware::load_rates(stored_at()).machine, foreign.machine);
}

TEST_F(MachineRates, OfCalibrateReplaceQuickOnes) {
  const int threads = thread_pool().threads();
  hardware::save_rates(made_up(hardware::RatesKind::quick, threads), stored_at(threads));
  EXPECT_EQ(run("calibrate --device cpu --rounds 1").status, 0);
  EXPECT_EQ(hardware::load_rates(stored_at(threads)).kind(), hardware::RatesKind::full);
}

TEST_F(MachineRates, OfTheHardwareTableAreAssumed) {
  const Outcome result = run(arguments(1) + "--hardware H100 --dry-run --json");
  EXPECT_EQ(nlohmann::json::parse(result.output)["rates"]["kind"], "assumed") << result.output;
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

}  // namespace
}  // namespace brrr
