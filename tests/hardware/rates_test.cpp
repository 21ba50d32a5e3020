// Rates: interpolation, and files that are read as if a stranger had written them.
#include "brrr/hardware/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

hardware::RateGrid plane() {
  return {.unit = "flop/s",
          .axes = {{"m", {1, 100}}, {"n", {10, 1000, 100000}}},
          .values = {1, 2, 4, 100, 200, 400}};
}

double at(const hardware::RateGrid& grid, std::vector<double> where) { return grid.at(where); }

TEST(RateGrid, IsExactAtItsPoints) {
  EXPECT_DOUBLE_EQ(at(plane(), {1, 10}), 1);
  EXPECT_DOUBLE_EQ(at(plane(), {1, 100000}), 4);
  EXPECT_DOUBLE_EQ(at(plane(), {100, 10}), 100);
  EXPECT_DOUBLE_EQ(at(plane(), {100, 1000}), 200);
}

TEST(RateGrid, IsLinearInLogarithmsBetween) {
  EXPECT_NEAR(at(plane(), {10, 10}), 10, 1e-12);              // the geometric mean of 1 and 100
  EXPECT_NEAR(at(plane(), {1, 100}), std::sqrt(2.0), 1e-12);  // of 1 and 2
  EXPECT_NEAR(at(plane(), {10, 100}), 10 * std::sqrt(2.0), 1e-12);
}

TEST(RateGrid, KeepsItsEdgeOutside) {
  EXPECT_DOUBLE_EQ(at(plane(), {0.1, 1}), 1);
  EXPECT_DOUBLE_EQ(at(plane(), {1e9, 1e9}), 400);
  EXPECT_DOUBLE_EQ(at(hardware::constant_rate("s", 7), {}), 7);
  EXPECT_DOUBLE_EQ(plane().largest(), 400);
}

hardware::Rates sample() {
  hardware::Rates rates = hardware::rates_from_peaks(
      "a machine", {.flops_per_second = 1e11, .bytes_per_second = 1e10, .launch_seconds = 1e-6});
  rates.grids["layer_norm"] = {.unit = "element/s",
                               .axes = {{"elements", {100, 1000}}, {"row", {10}}},
                               .values = {1.5e9, 2.25e9}};
  rates.threads = 3;
  rates.calibrated = true;
  return rates;
}

TEST(Rates, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const std::string path = (folder / "sub" / "rates.json").string();
  hardware::save_rates(sample(), path);
  const hardware::Rates read = hardware::load_rates(path);
  EXPECT_EQ(hardware::to_json(read), hardware::to_json(sample()));
  EXPECT_EQ(read.threads, 3);
  EXPECT_TRUE(read.calibrated);
  EXPECT_EQ(read.grid("layer_norm").values, (std::vector<double>{1.5e9, 2.25e9}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "sub"), {}), 1)
      << "nothing is left next to it";
}

TEST(Rates, SayHowMuchOfThemWasMeasured) {
  hardware::Rates rates = sample();
  EXPECT_EQ(rates.kind(), hardware::RatesKind::full);
  rates.quick = true;
  EXPECT_EQ(hardware::parse_rates(hardware::to_json(rates), "rates.json").kind(),
            hardware::RatesKind::quick);
  EXPECT_EQ(hardware::to_text(rates.kind()), "quick");
  nlohmann::json file = nlohmann::json::parse(hardware::to_json(sample()));
  file.erase("quick");  // as files were before
  EXPECT_EQ(hardware::parse_rates(file.dump(), "rates.json").kind(), hardware::RatesKind::full);
  rates.calibrated = false;
  EXPECT_EQ(rates.kind(), hardware::RatesKind::assumed);
}

// A valid file with one thing changed.
std::string error_with(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json file = nlohmann::json::parse(hardware::to_json(sample()));
  change(file);
  return error_of([&] { hardware::parse_rates(file.dump(), "rates.json"); });
}

TEST(Rates, RefusesFilesThatAreNotWhole) {
  using nlohmann::json;
  EXPECT_THAT(error_with([](json& f) { f["version"] = 99; }),
              HasSubstr("rates.json: has version 99, and this program reads 1"));
  EXPECT_THAT(error_with([](json& f) { f["packs_operands"] = 1; }),
              HasSubstr("neither true nor false"));
  EXPECT_THAT(error_with([](json& f) { f["format"] = "else"; }), HasSubstr("not a file of rates"));
  EXPECT_THAT(error_with([](json& f) { f.erase("threads"); }), HasSubstr("no field \"threads\""));
  EXPECT_THAT(error_with([](json& f) { f["threads"] = 0; }), HasSubstr("\"threads\" is 0"));
  EXPECT_THAT(error_with([](json& f) { f["grids"].erase("launch"); }),
              HasSubstr("lacks the family \"launch\""));
  EXPECT_THAT(error_with([](json& f) { f["grids"]["launch"]["values"] = {-1.0}; }),
              HasSubstr("not a positive number"));
  EXPECT_THAT(error_with([](json& f) { f["grids"]["launch"]["values"] = {"fast"}; }),
              HasSubstr("not a number"));
  EXPECT_THAT(error_with([](json& f) {
                f["grids"]["launch"]["values"] = {1.0, 2.0};
              }),
              HasSubstr("2 values for 1 points"));
  EXPECT_THAT(error_with([](json& f) {
                f["grids"]["layer_norm"]["axes"][0]["points"] = {5, 5};
              }),
              HasSubstr("do not ascend"));
  EXPECT_THAT(error_with([](json& f) { f["grids"]["matmul.nn"] = f["grids"]["launch"]; }),
              HasSubstr("0 axes instead of 3"));
  EXPECT_EQ(error_with([](json&) {}), "no error");
}

TEST(Rates, RefusesFilesThatAreCutOff) {
  const std::string whole = hardware::to_json(sample());
  for (size_t length : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 3})
    EXPECT_THAT(error_of([&] { hardware::parse_rates(whole.substr(0, length), "r"); }),
                HasSubstr("not JSON"));
  EXPECT_THAT(error_of([] { hardware::load_rates("/nowhere/rates.json"); }),
              HasSubstr("run `brrr calibrate`"));
}

}  // namespace
}  // namespace brrr
