#include "brrr/device/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "brrr/device/cuda/runtime.h"
#include "brrr/tensor/tensor.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// What a piece of code did to a ledger that others have used before.
class Change {
 public:
  explicit Change(Device device = Device::cpu()) : device_(device) {
    for (int c = 0; c < kCategories; ++c) before_.push_back(ledger(device).live(Category(c)));
    total_ = ledger(device).live();
  }
  Bytes total() const { return ledger(device_).live() - total_; }
  Bytes in(Category category) const {
    return ledger(device_).live(category) - before_[static_cast<size_t>(category)];
  }

 private:
  Device device_;
  Bytes total_;
  std::vector<Bytes> before_;
};

TEST(Ledger, CountsLiveAndPeakPerCategoryToTheByte) {
  Ledger book;
  book.add(Category::parameter, 100);
  book.add(Category::gradient, 40);
  book.add(Category::parameter, -30);
  book.add(Category::gradient, 7);
  EXPECT_EQ(book.live(), 117_B);
  EXPECT_EQ(book.live(Category::parameter), 70_B);
  EXPECT_EQ(book.live(Category::gradient), 47_B);
  EXPECT_EQ(book.live(Category::optimizer), 0_B);
  EXPECT_EQ(book.peak(), 140_B) << "of the total, not the sum of the peaks";
  EXPECT_EQ(book.peak(Category::parameter), 100_B);
  EXPECT_EQ(book.peak(Category::gradient), 47_B);
}

TEST(Ledger, ResetPeakStartsAgainFromWhatIsAlive) {
  Ledger book;
  book.add(Category::data, 500);
  book.add(Category::data, -450);
  book.reset_peak();
  EXPECT_EQ(book.peak(), 50_B);
  EXPECT_EQ(book.peak(Category::data), 50_B);
  book.add(Category::workspace, 20);
  book.add(Category::workspace, -20);
  EXPECT_EQ(book.peak(), 70_B);
  EXPECT_EQ(book.peak(Category::workspace), 20_B);
}

TEST(Ledger, MoveChangesCategoriesAndNotTheTotal) {
  Ledger book;
  book.add(Category::activation, 64);
  book.move(Category::activation, Category::parameter, 64);
  EXPECT_EQ(book.live(), 64_B);
  EXPECT_EQ(book.peak(), 64_B);
  EXPECT_EQ(book.live(Category::activation), 0_B);
  EXPECT_EQ(book.live(Category::parameter), 64_B);
}

TEST(Ledger, IsExactWhenSeveralThreadsUseIt) {
  Ledger book;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&book] {
      for (int i = 0; i < 5'000; ++i) {
        book.add(Category::activation, 3);
        book.add(Category::activation, -2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(book.live(), 20'000_B);
  EXPECT_EQ(book.live(Category::activation), 20'000_B);
  EXPECT_GE(book.peak(), 20'000_B);
  EXPECT_LE(book.peak(), 20'012_B) << "at most one tensor of each thread above the end";
}

TEST(Ledger, TwoTensorsOf32By32MoveItByExactly8192Bytes) {
  const Change change;
  {
    const Tensor a = empty({32, 32});
    EXPECT_EQ(change.total(), 4096_B);
    const Tensor b = empty({32, 32});
    EXPECT_EQ(change.total(), 8192_B);
  }
  EXPECT_EQ(change.total(), 0_B);
}

TEST(Ledger, CopiesOfAHandleCostNothingAndTheLastOneFrees) {
  const Change change;
  Tensor a = empty({10});
  Tensor b = a;
  EXPECT_EQ(change.total(), 40_B);
  a = {};
  EXPECT_EQ(change.total(), 40_B);
  b = {};
  EXPECT_EQ(change.total(), 0_B);
}

TEST(Ledger, OddSizesAreNotRounded) {
  const Change change;
  const Tensor bytes = empty({3, 7}, DType::u8), nibbles = empty({5}, DType::i4),
               scalar = empty({}, DType::bf16), nothing = empty({0, 9});
  EXPECT_EQ(change.total(), Bytes(21 + 3 + 2 + 0));
}

TEST(Ledger, PeakRemembersTensorsThatAreGone) {
  ledger().reset_peak();
  const Bytes before = ledger().peak();
  for (int i = 0; i < 3; ++i) empty({256}, DType::f32);  // one after the other
  EXPECT_EQ(ledger().peak() - before, 1_KiB);
}

TEST(Ledger, ScopesNameWhatNewTensorsAreFor) {
  const Change change;
  EXPECT_EQ(current_category(), Category::activation);
  Tensor parameter, state, gradient;
  {
    CategoryScope outer(Category::parameter);
    parameter = empty({1}, DType::u8);
    {
      CategoryScope inner(Category::optimizer);
      state = empty({2}, DType::u8);
    }
    EXPECT_EQ(current_category(), Category::parameter) << "the outer scope returns";
    std::thread([] { EXPECT_EQ(current_category(), Category::activation); }).join();
  }
  const Tensor activation = empty({4}, DType::u8);
  EXPECT_EQ(change.in(Category::parameter), 1_B);
  EXPECT_EQ(change.in(Category::optimizer), 2_B);
  EXPECT_EQ(change.in(Category::activation), 4_B);
}

TEST(Ledger, SetCategoryMovesBytesAndTheyAreFreedWhereTheyWent) {
  const Change change;
  {
    const Tensor x = empty({8}, DType::f64);
    EXPECT_EQ(change.in(Category::activation), 64_B);
    x.set_category(Category::gradient);
    EXPECT_EQ(change.in(Category::activation), 0_B);
    EXPECT_EQ(change.in(Category::gradient), 64_B);
    EXPECT_EQ(change.total(), 64_B);
  }
  EXPECT_EQ(change.in(Category::gradient), 0_B);
}

TEST(Ledger, CategoriesHaveNames) {
  EXPECT_EQ(category_name(Category::parameter), "parameter");
  EXPECT_EQ(category_name(Category::gradient), "gradient");
  EXPECT_EQ(category_name(Category::optimizer), "optimizer");
  EXPECT_EQ(category_name(Category::activation), "activation");
  EXPECT_EQ(category_name(Category::data), "data");
  EXPECT_EQ(category_name(Category::workspace), "workspace");
}

TEST(NullDevice, CountsATrillionElementsWithoutMemory) {
  const Change on_null(Device::null()), on_cpu;
  const Tensor x = empty({1'000'000, 1'000'000}, DType::f32, Device::null());
  EXPECT_EQ(x.numel(), 1'000'000'000'000);
  EXPECT_EQ(on_null.total(), Bytes(4'000'000'000'000));
  EXPECT_EQ(on_cpu.total(), 0_B);
  EXPECT_FALSE(x.device().has_data());
  EXPECT_EQ(x.storage().data(), nullptr);
}

TEST(NullDevice, RefusesToShowElements) {
  const Tensor x = empty({1}, DType::f32, Device::null());
  EXPECT_THAT([&] { x.item<float>(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("null"), HasSubstr("no elements"))));
  EXPECT_THROW(x.data<float>(), Error);
  EXPECT_THROW(store_float(x, 0, 1), Error);
}

TEST(Device, RefusesMoreBytesThanTheMachineHasAndNamesTheSizes) {
  const Change change;
  EXPECT_THAT(
      [] {
        empty({1024, 1024, 1024, 1024});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("out of memory"), HasSubstr("4 TiB"),
                                 HasSubstr("on the cpu"), HasSubstr("null device"))));
  EXPECT_EQ(change.total(), 0_B) << "what was refused is not on the books";
}

TEST(Device, CudaWithoutAGpuIsAnErrorAndNotOnTheBooks) {
  if (cuda::gpu_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  const Change on_cpu, on_cuda(Device::cuda(0));
  EXPECT_THAT(
      [] {
        empty({2, 2}, DType::f32, Device::cuda(0));
      },
      ThrowsMessage<Error>(HasSubstr("cuda:0")));
  EXPECT_EQ(on_cpu.total(), 0_B);
  EXPECT_EQ(on_cuda.total(), 0_B);
}

TEST(Device, MemoryIsAlignedToCacheLines) {
  for (int64_t count : {1, 3, 1000, 100'000}) {
    const Tensor x = empty({count}, DType::u8);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data<uint8_t>()) % 64, 0U);
  }
}

TEST(Device, NamesRoundTrip) {
  EXPECT_EQ(to_text(Device::cpu()), "cpu");
  EXPECT_EQ(to_text(Device::null()), "null");
  EXPECT_EQ(to_text(Device::cuda(3)), "cuda:3");
  for (Device device : {Device::cpu(), Device::null(), Device::cuda(0), Device::cuda(9)}) {
    EXPECT_EQ(parse_device(to_text(device)), device);
  }
  EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
}

TEST(Device, UnknownNamesAreRefusedAndQuoted) {
  for (const char* text : {"", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:99", "cpu "}) {
    EXPECT_THAT([&] { parse_device(text); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr(join_text('"', text, '"')), HasSubstr("cpu, null or cuda:0"))));
  }
}

}  // namespace
}  // namespace brrr
