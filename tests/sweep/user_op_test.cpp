// An op from outside the tree: registered, called, differentiated and swept like brrr's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"
#include "brrr/sweep/sweep.h"

namespace brrr {
namespace {

Tensors hardswish_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  return {x * minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0};
}

const OpDef hardswish_op{.name = "test_hardswish",
                         .formula = "x min(max(x + 3, 0), 6) / 6",
                         .kind = OpKind::elementwise,
                         .infer = infer_same,
                         .compose = hardswish_compose,
                         .samples = samples_any};

TEST(UserOp, PassesTheSweepWithAComposition) { EXPECT_NO_THROW(sweep::run(hardswish_op)); }

TEST(UserOp, IsFoundByNameOnceRegistered) {
  register_op(hardswish_op);
  EXPECT_EQ(find_op("test_hardswish"), &hardswish_op);
  EXPECT_THROW(register_op(hardswish_op), Error) << "the name is taken";
}

TEST(UserOp, HasAGradientFromItsComposition) {
  const Tensor x = tensor({1, 4}, DType::f64);
  x.require_grad();
  sum(call_one(hardswish_op, {x})).backward();
  EXPECT_NEAR(x.grad().to_vector<double>()[0], (2 * 1 + 3) / 6.0, 1e-12);
  EXPECT_NEAR(x.grad().to_vector<double>()[1], 1, 1e-12);
}

// A key is i64 whatever dtype the op is swept in, and has bits that f64 does not hold; uniform refuses
// any other.
const OpDef noise_op{.name = "test_noise",
                     .formula = "uniform in [0, 1)",
                     .kind = OpKind::random,
                     .dtypes = kAnyDType,
                     .infer = [](const InferCall&) -> TensorTypes {
                       return {{{4}, DType::f32}};
                     },
                     .compose = [](const ComposeCall& call) -> Tensors {
                       const Tensor& key = call.input(0);
                       return {uniform({4}, key, {}, {.device = key.device()})};
                     },
                     .samples = []() -> std::vector<Sample> {
                       return {{{key_tensor({.seed = 0x8000'0000'0000'0005})}, {}}};
                     }};

TEST(UserOp, KeepsTheBitsOfItsKeyInTheSweep) { EXPECT_NO_THROW(sweep::run(noise_op)); }

// Faults that the sweep must find: a check that cannot fail checks nothing.
std::string failure_of(const OpDef& op) {
  try {
    sweep::run(op);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "passed";
}

TEST(Sweep, FindsAWrongGradient) {
  OpDef wrong = hardswish_op;
  wrong.grad = [](const GradCall& call) -> Tensors { return {call.output_grad(0) * 1.5}; };
  EXPECT_THAT(failure_of(wrong), testing::HasSubstr("central differences"));
}

TEST(Sweep, FindsAGradientThatReadsWhatItDidNotDeclare) {
  OpDef wrong = hardswish_op;
  wrong.grad = [](const GradCall& call) -> Tensors {
    return {call.output_grad(0) * call.input(0)};
  };
  EXPECT_THAT(failure_of(wrong), testing::HasSubstr("grad_reads"));
}

TEST(Sweep, FindsAKernelThatDiffersFromItsComposition) {
  OpDef wrong = hardswish_op;
  wrong.cpu = [](const KernelCall& call) {
    std::fill_n(call.output(0).data<float>(), call.output(0).count(), 1.0F);
  };
  wrong.dtypes = dtype_set(DType::f32);
  EXPECT_THAT(failure_of(wrong), testing::HasSubstr("the result differs at element"));
}

TEST(Sweep, FindsAKernelThatWritesPastItsOutput) {
  OpDef wrong = *find_op("neg");
  wrong.cpu = [](const KernelCall& call) {
    find_op("neg")->cpu({*find_op("neg"), call.inputs, call.outputs, call.attrs, {}, call.pool});
    // Only where guards are: past the end of a plain tensor there is nobody's memory.
    const int64_t count = call.output(0).count();
    if (reinterpret_cast<unsigned char*>(call.output(0).data<float>() + count)[0] == 0xa5)
      call.output(0).data<float>()[count] = 0;
  };
  wrong.dtypes = dtype_set(DType::f32);
  const auto& guards = sweep::checks()[5];
  ASSERT_EQ(guards.name, "guards");
  EXPECT_THROW(guards.run(wrong), Error);
}

TEST(Sweep, FindsATypeThatWasNotPromised) {
  OpDef wrong = hardswish_op;
  wrong.infer = [](const InferCall& call) -> TensorTypes { return {{call.shape(0), DType::f64}}; };
  EXPECT_THAT(failure_of(wrong), testing::HasSubstr("promised"));
}

}  // namespace
}  // namespace brrr
