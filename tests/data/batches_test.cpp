// Batches: every window once an epoch, any step from its number alone, documents known to attention.
#include "brrr/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "brrr/data/prefetch.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Token i is i, so a token tells where it came from.
TokenSet counting(const std::string& name, int32_t count, std::vector<uint64_t> starts = {},
                  int32_t first = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return whole_file(TokenFile::from_memory(
      {.name = name, .tokens = std::move(tokens), .document_starts = std::move(starts)}));
}

std::vector<int64_t> inputs(const Batch& batch) { return batch.inputs.to_vector<int64_t>(); }

TEST(Batches, TargetsAreTheNextTokens) {
  const Batches batches({{.tokens = counting("text", 10)}}, {.batch = 2, .context = 4});
  const Batch batch = batches.at(0);
  EXPECT_EQ(batch.inputs.type(), (TensorType{{2, 4}, DType::i64}));
  std::vector<int64_t> next = inputs(batch);
  for (int64_t& token : next) ++token;
  EXPECT_EQ(batch.targets.to_vector<int64_t>(), next);
}

TEST(Batches, AnEpochUsesEveryWindowOnce) {
  // 101 tokens hold (101 - 1) / 7 = 14 windows, over two ranges of one source.
  TokenSet tokens = counting("text", 101);
  const TokenRange whole = tokens.ranges[0];
  tokens.ranges = {{whole.file, 0, 50}, {whole.file, 50, 51}};  // 7 and 7 windows
  const Batches batches({{.tokens = tokens}}, {.batch = 7, .context = 7, .seed = 5});
  ASSERT_EQ(batches.windows(0), 14);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> firsts;
    for (int64_t step = 2 * epoch; step < 2 * epoch + 2; ++step) {
      const auto rows = inputs(batches.at(step));
      for (size_t i = 0; i < rows.size(); i += 7) firsts.push_back(rows[i]);
    }
    orders.push_back(firsts);
    std::ranges::sort(firsts);
    EXPECT_THAT(firsts, ElementsAre(0, 7, 14, 21, 28, 35, 42, 50, 57, 64, 71, 78, 85, 92));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(Batches, AreAFunctionOfSeedAndStep) {
  const auto make = [](uint64_t seed) {
    return Batches({{.tokens = counting("text", 1000)}}, {.batch = 4, .context = 8, .seed = seed});
  };
  const Batches one = make(1), again = make(1), other = make(2);
  const auto wanted = inputs(one.at(17));
  for (int64_t step : {3, 0, 99}) one.at(step);  // asking for others changes nothing
  EXPECT_EQ(inputs(one.at(17)), wanted);
  EXPECT_EQ(inputs(again.at(17)), wanted);
  EXPECT_NE(inputs(other.at(17)), wanted);
}

TEST(Batches, PartsOfAStepAreItsRows) {
  const Batches batches({{.tokens = counting("text", 1000)}}, {.batch = 6, .context = 8});
  std::vector<int64_t> joined;
  for (int64_t first : {0, 2, 4}) {
    const auto part = inputs(batches.rows(11, first, 2));
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, inputs(batches.at(11)));
  EXPECT_THAT(error_of([&] { batches.rows(0, 5, 2); }), HasSubstr("rows 5 to 7 of a batch of 6"));
}

TEST(Batches, SequentialOrderReadsTheTextThrough) {
  const Batches batches({{.tokens = counting("text", 13)}},
                        {.batch = 2, .context = 4, .order = WindowOrder::sequential});
  EXPECT_THAT(inputs(batches.at(0)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(inputs(batches.at(1)), ElementsAre(8, 9, 10, 11, 0, 1, 2, 3));
}

TEST(Batches, RandomStartsLieInTheText) {  // the lecture's: starts in [0, len - L), B = 2, L = 4
  const Batches batches({{.tokens = counting("text", 10)}},
                        {.batch = 2, .context = 4, .order = WindowOrder::random_starts});
  std::set<int64_t> starts;
  for (int64_t step = 0; step < 200; ++step) {
    const Batch batch = batches.at(step);
    EXPECT_EQ(batch.inputs.shape(), (Shape{2, 4}));
    for (int64_t row : {0, 1}) starts.insert(batch.inputs.data<int64_t>()[4 * row]);
  }
  EXPECT_THAT(starts, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Batches, MixSourcesByWeight) {
  const Batches batches({{.tokens = counting("a", 2001), .weight = 3},
                         {.tokens = counting("b", 401, {}, 10'000), .weight = 1}},
                        {.batch = 8, .context = 4, .seed = 2});
  int64_t of_b = 0;
  std::set<int64_t> b_starts;
  for (int64_t step = 0; step < 50; ++step) {
    const auto tokens = inputs(batches.at(step));
    for (size_t i = 0; i < tokens.size(); i += 4) {
      if (tokens[i] < 10'000) continue;
      ++of_b;
      b_starts.insert(tokens[i]);
    }
  }
  EXPECT_EQ(of_b, 100) << "a quarter of 400 rows";
  EXPECT_EQ(b_starts.size(), 100u) << "which are one epoch of its 100 windows";
}

TEST(Batches, DocumentsAreNumberedInEachRow) {
  const Batches batches({{.tokens = counting("text", 13, {0, 2, 6, 11})}},
                        {.batch = 3, .context = 4, .order = WindowOrder::sequential});
  EXPECT_THAT(batches.at(0).documents.to_vector<int64_t>(),
              ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1));
  const Batches without({{.tokens = counting("text", 13)}},
                        {.batch = 3, .context = 4, .documents = false});
  EXPECT_FALSE(without.at(0).documents.defined());
}

TEST(Batches, RowsCanHoldWholeDocuments) {
  // Documents of 2, 3, 9, 3 and 2 tokens; rows of 6. The last token is a target only.
  const Batches batches({{.tokens = counting("text", 19, {0, 2, 5, 14, 17})}},
                        {.batch = 4,
                         .context = 6,
                         .order = WindowOrder::sequential,
                         .cut = WindowCut::whole_documents});
  ASSERT_EQ(batches.windows(0), 4);
  const Batch batch = batches.at(0);
  EXPECT_THAT(inputs(batch), ElementsAre(0, 1, 2, 3, 4, 0,   // two documents, and one place left
                                         5, 6, 7, 8, 9, 10,  // longer than a row
                                         11, 12, 13, 14, 15, 16,  // its rest, and one more
                                         17, 0, 0, 0, 0, 0));
  constexpr int64_t kNone = kIgnoredTarget;
  EXPECT_THAT(batch.targets.to_vector<int64_t>(),
              ElementsAre(1, 2, 3, 4, 5, kNone,    //
                          6, 7, 8, 9, 10, 11,      //
                          12, 13, 14, 15, 16, 17,  //
                          18, kNone, kNone, kNone, kNone, kNone));
  EXPECT_THAT(batch.documents.to_vector<int64_t>(), ElementsAre(0, 0, 1, 1, 1, 2,  //
                                                                0, 0, 0, 0, 0, 0,  //
                                                                0, 0, 0, 1, 1, 1,  //
                                                                0, 1, 1, 1, 1, 1));
}

TEST(Batches, WholeDocumentsUseEveryTargetOnce) {
  std::vector<uint64_t> starts;
  for (uint64_t at = 0; at < 500; at += 3 + (at * 7) % 23) starts.push_back(at);
  const Batches batches({{.tokens = counting("text", 500, starts)}},
                        {.batch = 1, .context = 32, .seed = 3, .cut = WindowCut::whole_documents});
  std::multiset<int64_t> targets;
  for (int64_t step = 0; step < batches.windows(0); ++step) {
    const Batch batch = batches.at(step);
    EXPECT_TRUE(
        std::ranges::count(starts, static_cast<uint64_t>(batch.inputs.data<int64_t>()[0])) == 1)
        << "a row begins where a document does";
    for (int64_t target : batch.targets.to_vector<int64_t>()) {
      if (target != kIgnoredTarget) targets.insert(target);
    }
  }
  EXPECT_EQ(targets.size(), 499u);
  EXPECT_EQ(std::set<int64_t>(targets.begin(), targets.end()).size(), 499u);
}

TEST(Batches, WholeDocumentsNeedToBeKnown) {
  EXPECT_THAT(error_of([] {
                Batches({{.tokens = counting("text", 50)}},
                        {.context = 8, .cut = WindowCut::whole_documents});
              }),
              HasSubstr("text: does not say where documents start"));
}

// What attention makes of packed documents is what it makes of each alone.
TEST(Batches, DocumentsKeepAttentionInside) {
  const Batches batches({{.tokens = counting("text", 9, {0, 3})}},
                        {.batch = 1, .context = 8, .order = WindowOrder::sequential});
  const Batch batch = batches.at(0);
  const Tensor q = normal({1, 2, 8, 4}, RandomKey{.seed = 1}),
               k = normal({1, 2, 8, 4}, RandomKey{.seed = 2}),
               v = normal({1, 2, 8, 4}, RandomKey{.seed = 3});
  const Tensor packed = attention(q, k, v, {.causal = true, .documents = batch.documents});
  const auto part = [](const Tensor& x, int64_t from, int64_t to) {
    return slice(x, 2, {.start = from, .stop = to});
  };
  for (const auto& [from, to] : {std::pair(0, 3), std::pair(3, 8)}) {
    const Tensor alone =
        attention(part(q, from, to), part(k, from, to), part(v, from, to), {.causal = true});
    const auto a = alone.to_vector<float>(), b = part(packed, from, to).to_vector<float>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);  // other tiles, other sums
  }
}

TEST(Batches, SaysWhatDoesNotFit) {
  EXPECT_THAT(error_of([] { Batches({{.tokens = counting("short", 8)}}, {.context = 8}); }),
              HasSubstr("short: 8 tokens do not fill one window of 8 tokens and a target"));
  const Batches batches(
      {{.tokens = counting("text", 100)}},
      {.batch = 1, .context = 8, .order = WindowOrder::sequential, .vocab_size = 20});
  batches.at(0);
  EXPECT_THAT(error_of([&] { batches.at(2); }),
              HasSubstr("text: token 20 at position 20 is outside the vocabulary of 20"));
}

// ---- the thread that makes them ahead ------------------------------------------------------------------
TEST(PrefetchThreads, BatchesComeInOrder) {
  const Batches batches({{.tokens = counting("text", 1000)}}, {.batch = 4, .context = 8});
  Prefetcher prefetch([&](int64_t step) { return batches.at(step); },
                      {.first_step = 5, .ahead = 3});
  for (int64_t step = 5; step < 40; ++step) {
    const Batch batch = prefetch.next();
    EXPECT_EQ(batch.step, step);
    EXPECT_EQ(inputs(batch), inputs(batches.at(step)));
  }
}

TEST(PrefetchThreads, NoMoreAreMadeThanMayWait) {
  std::atomic<int64_t> made = 0;
  Prefetcher prefetch(
      [&](int64_t step) {
        ++made;
        return Batch{.step = step};
      },
      {.ahead = 2});
  prefetch.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(made, 3) << "one taken, two waiting";
}

TEST(PrefetchThreads, ErrorsComeAtTheirStep) {
  Prefetcher prefetch(
      [](int64_t step) {
        check(step < 2, "no batch for step ", step);
        return Batch{.step = step};
      },
      {.ahead = 8});
  EXPECT_EQ(prefetch.next().step, 0);
  EXPECT_EQ(prefetch.next().step, 1);
  EXPECT_EQ(error_of([&] { prefetch.next(); }), "no batch for step 2");
  EXPECT_EQ(error_of([&] { prefetch.next(); }), "no batch for step 2");
}

TEST(PrefetchThreads, StopAtAnyTime) {
  const Batches batches({{.tokens = counting("text", 1000)}}, {.batch = 4, .context = 8});
  for (int taken = 0; taken < 20; ++taken) {
    Prefetcher prefetch([&](int64_t step) { return batches.at(step); }, {.ahead = 4});
    for (int i = 0; i < taken % 5; ++i) prefetch.next();
  }
}

TEST(BatchesThreads, ReadOneFileTogether) {
  const Batches batches({{.tokens = counting("text", 5000)}}, {.batch = 4, .context = 16});
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  const auto wanted = inputs(batches.at(3));
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int64_t step = 0; step < 20; ++step) batches.at(step);
      wrong += inputs(batches.at(3)) == wanted ? 0 : 1;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace brrr
