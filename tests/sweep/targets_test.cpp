// Every CPU target that was compiled gives the values of the definition, not only the one that this
// machine would choose.
#include "hwy/targets.h"

#include <gtest/gtest.h>

#include "brrr/sweep/sweep.h"
#include "hwy/highway.h"

namespace brrr {
namespace {

class Targets : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    // The baseline needs no support, and Highway does not list it beside better ones.
    const bool supported = GetParam() == HWY_SCALAR || (hwy::SupportedTargets() & GetParam()) != 0;
    if (!supported) GTEST_SKIP() << "this CPU has no " << hwy::TargetName(GetParam());
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(Targets, GiveTheValuesOfTheDefinition) {
  for (const OpDef* op : all_ops()) {
    for (const sweep::Check& check : sweep::checks()) {
      if (check.name != "values") continue;
      EXPECT_NO_THROW(check.run(*op)) << op->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Targets, testing::Values(HWY_AVX3, HWY_AVX2, HWY_SCALAR),
                         [](const auto& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

}  // namespace
}  // namespace brrr
