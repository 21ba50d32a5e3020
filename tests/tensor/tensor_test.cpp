#include "brrr/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

TEST(Creation, LiteralsHaveTheShapeTheyAreWrittenIn) {
  EXPECT_EQ(tensor(5).shape(), Shape{});
  EXPECT_EQ(tensor(5).item<float>(), 5);
  EXPECT_EQ(tensor({1, 2, 3}).shape(), Shape{3});
  const Tensor matrix = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(matrix.dtype(), DType::f32) << "the default";
  EXPECT_EQ(matrix.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  const Tensor blocks = tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, DType::i32);
  EXPECT_EQ(blocks.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(blocks.to_vector<int64_t>(), (Ints{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(tensor({{1}, {2}}).shape(), (Shape{2, 1})) << "a column";
  EXPECT_EQ(tensor({{7}}).shape(), (Shape{1, 1}));
}

TEST(Creation, LiteralsOfUnequalRowsAreRefused) {
  EXPECT_THAT(([] {
                tensor({{1, 2, 3}, {4, 5}});
              }),
              ThrowsMessage<Error>(AllOf(HasSubstr("3"), HasSubstr("2"))));
  EXPECT_THROW(tensor({{{1, 2}, {3, 4}}, {{5, 6}}}), Error);
  EXPECT_THROW(tensor({1, {2, 3}}), Error);
}

TEST(Creation, FilledTensorsHoldTheirValueEverywhere) {
  const Tensor z = zeros({4, 8});
  EXPECT_EQ(z.numel(), 32);
  EXPECT_EQ(z.bytes(), 128_B);
  EXPECT_EQ(z.to_vector<float>(), Floats(32, 0.0F));
  EXPECT_EQ(ones({2, 3}, {.dtype = DType::bf16}).to_vector<float>(), Floats(6, 1.0F));
  EXPECT_EQ(full({3}, 2.5).to_vector<float>(), Floats(3, 2.5F));
  EXPECT_EQ(full({}, 7, {.dtype = DType::i64}).item<int64_t>(), 7);
  EXPECT_EQ(zeros({0, 5}).numel(), 0);
  // More than one piece of work, and not a multiple of one.
  EXPECT_EQ(full({100'003}, -1, {.dtype = DType::i8}).to_vector<int64_t>(), Ints(100'003, -1));
}

TEST(Creation, LikeAnotherTakesItsShapeDTypeAndDevice) {
  const Tensor x = tensor({{1, 2}, {3, 4}}, DType::f16);
  EXPECT_EQ(zeros_like(x).type(), x.type());
  EXPECT_EQ(ones_like(transpose(x)).to_vector<float>(), Floats(4, 1.0F));
  EXPECT_EQ(ones_like(zeros({3}, {.device = Device::null()})).device(), Device::null());
}

TEST(Creation, ArangeStopsBeforeTheEnd) {
  EXPECT_EQ(arange(5).to_vector<int64_t>(), (Ints{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(5).dtype(), DType::i64);
  EXPECT_EQ(arange(1, 10, 3).to_vector<int64_t>(), (Ints{1, 4, 7}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<int64_t>(), (Ints{5, 3, 1}));
  EXPECT_EQ(arange(0, 1, 0.25, {}).to_vector<float>(), (Floats{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(3, 3).numel(), 0);
  EXPECT_EQ(arange(4, 3).numel(), 0);
  EXPECT_THAT([] { arange(0, 5, 0); }, ThrowsMessage<Error>(HasSubstr("step of 0")));
  EXPECT_THROW(arange(0, std::numeric_limits<double>::infinity()), Error);
}

TEST(Creation, LinspaceEndsExactlyAtTheEnd) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector<float>(), (Floats{0, 0.25, 0.5, 0.75, 1}));
  const std::vector<double> tenths = linspace(0, 0.3, 4, {.dtype = DType::f64}).to_vector<double>();
  EXPECT_EQ(tenths.back(), 0.3) << "3 * 0.1 would be above it";
  EXPECT_EQ(linspace(2, 9, 1).to_vector<float>(), Floats{2});
  EXPECT_EQ(linspace(2, 9, 0).numel(), 0);
  EXPECT_THROW(linspace(0, 1, -1), Error);
}

TEST(Creation, EyeHasOnesOnTheDiagonal) {
  EXPECT_EQ(eye(2).to_vector<float>(), (Floats{1, 0, 0, 1}));
  EXPECT_EQ(eye(2, 3, {.dtype = DType::i32}).to_vector<int64_t>(), (Ints{1, 0, 0, 0, 1, 0}));
}

TEST(Creation, FromValuesTakesTheDTypeOfTheCppType) {
  EXPECT_EQ(from_values(std::vector<int32_t>{1, 2}, {2}).dtype(), DType::i32);
  EXPECT_EQ(from_values(std::vector<double>{1, 2}, {1, 2}).dtype(), DType::f64);
  EXPECT_THAT(([] {
                from_values(std::vector<float>{1, 2, 3}, {2, 2});
              }),
              ThrowsMessage<Error>(AllOf(HasSubstr("3 values"), HasSubstr("[2, 2]"))));
}

TEST(BorrowMemory, SeesAndWritesTheBytesOfTheOwner) {
  const Bytes before = ledger().live();
  float owned[] = {1, 2, 3, 4, 5, 6};
  const Tensor x = borrow_memory(owned, {2, 3}, DType::f32);
  EXPECT_EQ(ledger().live(), before) << "not ours, so not on our books";
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  x[1][0].fill(40);
  EXPECT_EQ(owned[3], 40);
  owned[0] = 10;
  EXPECT_EQ(x[0][0].item<float>(), 10);
}

TEST(BorrowMemory, RefusesMisalignedAddresses) {
  alignas(8) std::byte bytes[32] = {};
  EXPECT_THAT([&] { borrow_memory(bytes + 2, {2}, DType::f32); },
              ThrowsMessage<Error>(AllOf(HasSubstr("4 bytes"), HasSubstr("f32"))));
  EXPECT_THROW(borrow_memory(bytes + 4, {2}, DType::f64), Error);
  EXPECT_NO_THROW(borrow_memory(bytes + 2, {2}, DType::bf16));
  EXPECT_NO_THROW(borrow_memory(bytes + 1, {2}, DType::i4));
}

TEST(Tensor, ItemConvertsTheOnlyElement) {
  EXPECT_EQ(tensor(2.75).item<double>(), 2.75);
  EXPECT_EQ(tensor(2.75).item<int>(), 2);
  EXPECT_EQ(full({1, 1}, 7, {.dtype = DType::u8}).item<float>(), 7) << "any shape of one element";
  EXPECT_EQ(full({}, 1, {.dtype = DType::boolean}).item<bool>(), true);
  const int64_t odd = (int64_t{1} << 53) + 1;  // no double holds it
  EXPECT_EQ(from_values(Ints{odd}, {}).item<int64_t>(), odd);
  EXPECT_THAT(
      [] {
        zeros({2, 3}).item<float>();
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("[2, 3]"), HasSubstr("6 elements"))));
  EXPECT_THROW(zeros({0}).item<float>(), Error);
}

TEST(Tensor, ToVectorConvertsInRowMajorOrder) {
  const Tensor x = tensor({{1.5, 2.5}, {-3.5, 4}});
  EXPECT_EQ(transpose(x).to_vector<double>(), (std::vector<double>{1.5, -3.5, 2.5, 4}));
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{1, 2, -3, 4}));
  const Ints wide = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  EXPECT_EQ(from_values(wide, {2}).to_vector<int64_t>(), wide);
  EXPECT_EQ(zeros({0}).to_vector<float>(), Floats{});
}

TEST(Tensor, DataIsTypedAndStartsAtTheFirstElement) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(*x[1].data<float>(), 4);
  EXPECT_THAT([&] { x.data<double>(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("f32"), HasSubstr("f64"), HasSubstr("cast"))));
}

TEST(Tensor, KnowsItsSizes) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(x.rank(), 3);
  EXPECT_EQ(x.dim(0), 2);
  EXPECT_EQ(x.dim(-1), 4);
  EXPECT_EQ(to_text(x.type()), "f32[2, 3, 4]");
  EXPECT_THAT([&] { x.dim(3); }, ThrowsMessage<Error>(HasSubstr("axis 3")));
  EXPECT_EQ(empty({7}, DType::u4).bytes(), 4_B);
}

TEST(Tensor, Gpt3sFeedForwardMatrixTakes2304MiB) {
  const Bytes before = ledger(Device::null()).live();
  const Tensor w = empty({49152, 12288}, DType::f32, Device::null());
  EXPECT_EQ(w.bytes().value(), 2'415'919'104);
  EXPECT_EQ(w.bytes(), 2304_MiB);
  EXPECT_EQ(ledger(Device::null()).live() - before, 2304_MiB);
}

TEST(Tensor, SizesThatOverflowAreRefused) {
  const int64_t big = int64_t{1} << 32;
  const auto made = [](const Shape& shape, DType dtype) { empty(shape, dtype, Device::null()); };
  EXPECT_THAT([&] { made({big, big}, DType::u8); }, ThrowsMessage<Error>(HasSubstr("64-bit")));
  // Countable elements, but not their bits: 2^58 * 32 = 2^63.
  EXPECT_THAT(
      [&] {
        made({big, big >> 6}, DType::f32);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("f32"), HasSubstr("bytes"))));
  EXPECT_NO_THROW(made({big, big >> 7}, DType::f32));
  EXPECT_THROW(made({big, big >> 7}, DType::f64), Error);
  EXPECT_THAT([&] { made({-1}, DType::f32); }, ThrowsMessage<Error>(HasSubstr("negative")));
}

TEST(Tensor, UndefinedTensorsSaySo) {
  const Tensor x;
  EXPECT_FALSE(x.defined());
  const auto undefined = ThrowsMessage<Error>(HasSubstr("undefined"));
  EXPECT_THAT([&] { x.shape(); }, undefined);
  EXPECT_THAT([&] { x.dtype(); }, undefined);
  EXPECT_THAT([&] { x.item<float>(); }, undefined);
  EXPECT_THAT([&] { x.device(); }, undefined);
  EXPECT_THAT([&] { x + 1; }, undefined);
  EXPECT_THAT([&] { transpose(x); }, undefined);
  EXPECT_THAT([&] { tensor(1) + x; }, undefined);
}

TEST(Tensor, AHuskHasAShapeButReadingItIsOurBug) {
  const Tensor husk = make_husk({.shape = {2, 3}, .dtype = DType::bf16});
  EXPECT_EQ(husk.shape(), (Shape{2, 3}));
  EXPECT_THAT([&] { husk.to_vector<float>(); },
              ThrowsMessage<InternalError>(HasSubstr("bf16[2, 3]")));
}

TEST(Devices, OpsOnMixedDevicesAreRefused) {
  const Tensor here = ones({2, 2}), nowhere = ones({2, 2}, {.device = Device::null()});
  const auto mixed =
      ThrowsMessage<Error>(AllOf(HasSubstr("cpu"), HasSubstr("null"), HasSubstr("to(x, device)")));
  EXPECT_THAT([&] { here + nowhere; }, mixed);
  EXPECT_THAT([&] { matmul(nowhere, here); }, mixed);
  EXPECT_THAT([&] { here.copy_from(nowhere); }, mixed);
}

TEST(Devices, NumbersFollowTheirTensor) {
  const Tensor x = ones({3}, {.device = Device::null()});
  EXPECT_EQ((2 * x + 1).device(), Device::null());
}

TEST(Devices, ToNullKeepsShapeAndDTypeAndForgetsElements) {
  const Tensor x = tensor({{1, 2}, {3, 4}}, DType::bf16);
  const Tensor there = to(transpose(x), Device::null());
  EXPECT_EQ(there.type(), x.type());
  EXPECT_EQ(there.device(), Device::null());
  EXPECT_EQ(there.bytes(), 8_B);
  EXPECT_TRUE(shares_storage(to(x, Device::cpu()), x)) << "already there: no copy";
  EXPECT_THAT([&] { to(there, Device::cpu()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("null"), HasSubstr("no elements"))));
}

TEST(Writes, GoUpInVersionSoThatGradientsNotice) {
  const Tensor x = zeros({2, 2});
  const uint32_t before = x.storage().version();
  x[0].fill(1);
  EXPECT_GT(x.storage().version(), before);
}

}  // namespace
}  // namespace brrr
