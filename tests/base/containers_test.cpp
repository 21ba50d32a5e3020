// InlineVector, SmallVector and Ref: who owns what, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "brrr/base/inline_vector.h"
#include "brrr/base/ref.h"
#include "brrr/base/small_vector.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Four = InlineVector<int64_t, 4>;

template <typename Vector>
auto list(const Vector& values) {
  return std::vector(values.begin(), values.end());
}

TEST(InlineVector, IsMadeFromAListASpanOrACount) {
  EXPECT_THAT(list(Four{}), ElementsAre());
  EXPECT_THAT(list(Four{5, 6}), ElementsAre(5, 6));
  EXPECT_THAT(list(Four(3, 7)), ElementsAre(7, 7, 7));
  const std::vector<int64_t> values = {1, 2, 3, 4};
  const Four four{std::span<const int64_t>(values)};
  EXPECT_EQ(list(four), values);
  EXPECT_EQ(std::span<const int64_t>(four).size(), 4U);
}

TEST(InlineVector, InsertsErasesAndResizesInPlace) {
  Four v{1, 3};
  v.insert(1, 2);
  EXPECT_THAT(list(v), ElementsAre(1, 2, 3));
  v.insert(0, 0);
  EXPECT_THAT(list(v), ElementsAre(0, 1, 2, 3));
  v.erase(1);
  v.erase(2);
  EXPECT_THAT(list(v), ElementsAre(0, 2));
  v.insert(2, 9);
  EXPECT_EQ(v.back(), 9);
  v.pop_back();
  v.resize(4);
  EXPECT_THAT(list(v), ElementsAre(0, 2, 0, 0)) << "new elements are zero, whatever was there";
  v.resize(1);
  EXPECT_TRUE(v.contains(0));
  EXPECT_FALSE(v.contains(2)) << "elements past the end are gone";
}

TEST(InlineVector, EqualityLooksAtTheElementsInUseOnly) {
  Four a{1, 2, 3};
  a.pop_back();
  EXPECT_EQ(a, (Four{1, 2}));
  EXPECT_NE(a, (Four{1, 2, 3}));
  EXPECT_NE(a, (Four{1, 3}));
}

TEST(InlineVector, RefusesMoreThanItsCapacity) {
  const auto too_many = ThrowsMessage<Error>(AllOf(HasSubstr("5"), HasSubstr("at most 4")));
  const std::vector<int64_t> five(5, 1);
  EXPECT_THAT([&] { Four v{std::span<const int64_t>(five)}; }, too_many);
  EXPECT_THAT([] { Four v(5, 0); }, too_many);
  Four full{1, 2, 3, 4};
  EXPECT_THAT([&] { full.push_back(5); }, too_many);
  EXPECT_THAT([&] { full.insert(0, 5); }, too_many);
  EXPECT_THAT([&] { full.resize(5); }, too_many);
  EXPECT_THAT(list(full), ElementsAre(1, 2, 3, 4)) << "a refused change changes nothing";
}

TEST(InlineVector, PrintsAsAList) {
  EXPECT_EQ(to_text(Four{}), "[]");
  EXPECT_EQ(to_text(Four{2, 3}), "[2, 3]");
}

// Knows where it lives and counts its copies: catches elements moved as raw bytes, destroyed twice
// or not at all.
class Tracked {
 public:
  static inline int live = 0;

  Tracked() : Tracked(0) {}
  explicit Tracked(int value) : text_(40, static_cast<char>('a' + value % 26)), value_(value) {
    ++live;
  }
  Tracked(const Tracked& other) : text_(other.text_), value_(other.value()) { ++live; }
  Tracked(Tracked&& other) noexcept : text_(std::move(other.text_)), value_(other.value()) {
    ++live;
  }
  Tracked& operator=(const Tracked&) = delete;
  ~Tracked() {
    EXPECT_EQ(self_, this);
    self_ = nullptr;
    --live;
  }

  int value() const {
    EXPECT_EQ(self_, this) << "the element was moved as raw bytes";
    return value_;
  }
  bool is_whole() const { return text_ == std::string(40, static_cast<char>('a' + value_ % 26)); }

 private:
  const Tracked* self_ = this;
  std::string text_;  // on the heap, so that a lost element is a leak
  int value_;
};

using Few = SmallVector<Tracked, 3>;

Few counted(int count) {
  Few v;
  for (int i = 0; i < count; ++i) v.push_back(Tracked(i));
  return v;
}

void expect_counted(const Few& v, int count) {
  ASSERT_EQ(v.size(), count);
  EXPECT_EQ(v.empty(), count == 0);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(v[i].value(), i);
    EXPECT_TRUE(v[i].is_whole());
  }
}

bool is_inside(const Few& v) {
  const auto* object = reinterpret_cast<const std::byte*>(&v);
  const auto* first = reinterpret_cast<const std::byte*>(v.begin());
  return first >= object && first < object + sizeof(v);
}

class SmallVectorTest : public ::testing::TestWithParam<int> {
 protected:
  void TearDown() override { EXPECT_EQ(Tracked::live, 0) << "elements leaked or died twice"; }
};

TEST_P(SmallVectorTest, GrowsOntoTheHeapAndKeepsItsElements) {
  const Few v = counted(GetParam());
  expect_counted(v, GetParam());
  EXPECT_EQ(is_inside(v), GetParam() <= 3) << "the first three live in the object";
  EXPECT_EQ(Tracked::live, GetParam());
}

TEST_P(SmallVectorTest, CopiesAreIndependent) {
  const int count = GetParam();
  Few a = counted(count);
  Few b = a;
  b.push_back(Tracked(count));
  expect_counted(a, count);
  expect_counted(b, count + 1);
  a = b;
  expect_counted(a, count + 1);
}

TEST_P(SmallVectorTest, MovesLeaveTheSourceEmptyAndUsable) {
  const int count = GetParam();
  Few a = counted(count);
  Few b = std::move(a);
  expect_counted(b, count);
  expect_counted(a, 0);  // NOLINT: promised
  a.push_back(Tracked(0));
  expect_counted(a, 1);
  a = std::move(b);
  expect_counted(a, count);
  expect_counted(b, 0);  // NOLINT: promised
}

TEST_P(SmallVectorTest, SurvivesAssignmentToItself) {
  Few v = counted(GetParam());
  Few& same = v;
  v = same;
  expect_counted(v, GetParam());
  v = std::move(same);
  expect_counted(v, GetParam());
}

TEST_P(SmallVectorTest, ResizeDestroysTheTailAndMakesDefaults) {
  const int count = GetParam();
  Few v = counted(count);
  v.resize(count + 4);
  EXPECT_EQ(Tracked::live, count + 4);
  for (int i = count; i < count + 4; ++i) EXPECT_EQ(v[i].value(), 0);
  v.resize(count);
  expect_counted(v, count);
  v.resize(0);
  EXPECT_EQ(Tracked::live, 0);
  v.push_back(Tracked(0));
  expect_counted(v, 1);
}

TEST_P(SmallVectorTest, ClearGivesTheHeapBack) {
  Few v = counted(GetParam());
  v.clear();
  expect_counted(v, 0);
  EXPECT_TRUE(is_inside(v));
}

TEST_P(SmallVectorTest, CanPushItsOwnElementWhileItGrows) {
  Few v;
  v.push_back(Tracked(5));
  for (int i = 0; i < GetParam(); ++i) v.push_back(v[0]);
  for (const Tracked& element : v) EXPECT_EQ(element.value(), 5);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SmallVectorTest, ::testing::Values(0, 1, 3, 4, 7, 20));

TEST(SmallVector, IsMadeFromAListASpanOrACount) {
  using Ints = SmallVector<int, 2>;
  EXPECT_THAT(list(Ints{1, 2, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(list(Ints(3)), ElementsAre(0, 0, 0));
  const std::vector<int> values = {4, 5, 6};
  EXPECT_EQ(list(Ints(std::span<const int>(values))), values);
  Ints v{1, 2, 3};
  for (int& value : std::span<int>(v)) value *= 10;
  EXPECT_THAT(list(v), ElementsAre(10, 20, 30));
}

struct Base : RefCounted {
  explicit Base(int* deaths) : deaths_(deaths) {}
  ~Base() override { ++*deaths_; }
  int* deaths_;
};
struct Derived final : Base {
  using Base::Base;
};

TEST(Ref, TheLastReferenceDestroysTheObject) {
  int deaths = 0;
  Ref<Base> a = make_ref<Base>(&deaths);
  EXPECT_TRUE(a->is_unique());
  {
    Ref<Base> b = a;
    EXPECT_FALSE(a->is_unique());
    EXPECT_EQ(a, b);
  }
  EXPECT_TRUE(a->is_unique());
  EXPECT_EQ(deaths, 0);
  a = {};
  EXPECT_EQ(deaths, 1);
  EXPECT_FALSE(a);
}

TEST(Ref, MovesDoNotCount) {
  int deaths = 0;
  Ref<Base> a = make_ref<Base>(&deaths);
  Base* object = a.get();
  Ref<Base> b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: promised
  EXPECT_EQ(b.get(), object);
  EXPECT_TRUE(b->is_unique());
}

TEST(Ref, SurvivesAssignmentToItself) {
  int deaths = 0;
  Ref<Base> a = make_ref<Base>(&deaths);
  Ref<Base>& same = a;
  a = same;
  EXPECT_TRUE(a->is_unique());
  a = std::move(same);
  ASSERT_TRUE(a);
  EXPECT_TRUE(a->is_unique());
  EXPECT_EQ(deaths, 0);
}

TEST(Ref, ADerivedObjectMayBeHeldByItsBase) {
  int deaths = 0;
  Ref<Derived> derived = make_ref<Derived>(&deaths);
  Ref<Base> base = derived;
  EXPECT_FALSE(derived->is_unique());
  derived = {};
  EXPECT_TRUE(base->is_unique());
  base = make_ref<Derived>(&deaths);
  EXPECT_EQ(deaths, 1);
}

TEST(Ref, LeakGivesUpTheReferenceButNotTheCount) {
  int deaths = 0;
  Ref<Base> a = make_ref<Base>(&deaths);
  Base* object = a.leak();
  EXPECT_FALSE(a);
  EXPECT_TRUE(object->is_unique());
  object->release();
  EXPECT_EQ(deaths, 1);
}

TEST(Ref, CountsFromSeveralThreads) {
  int deaths = 0;
  Ref<Base> shared = make_ref<Base>(&deaths);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([mine = shared] {
      for (int i = 0; i < 10'000; ++i) Ref<Base> copy = mine;
    });
  }
  shared = {};
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(deaths, 1);
}

}  // namespace
}  // namespace brrr
