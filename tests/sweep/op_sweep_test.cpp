// Every op under every check of the sweep.
#include <gtest/gtest.h>

#include "brrr/sweep/sweep.h"

namespace brrr {
namespace {

using SweepCase = std::tuple<const OpDef*, sweep::Check>;

class OpSweep : public testing::TestWithParam<SweepCase> {};

TEST_P(OpSweep, Holds) {
  const auto& [op, check] = GetParam();
  try {
    check.run(*op);
  } catch (const std::exception& error) {
    FAIL() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpSweep,
                         testing::Combine(testing::ValuesIn(all_ops()),
                                          testing::ValuesIn(sweep::checks().begin(),
                                                            sweep::checks().end())),
                         [](const testing::TestParamInfo<SweepCase>& test) {
                           return std::string(std::get<0>(test.param)->name) + "_" +
                                  std::string(std::get<1>(test.param).name);
                         });

}  // namespace
}  // namespace brrr
