#include "brrr/base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "brrr/base/error.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// How often each piece ran. Plain ints: every piece has its own, and the caller reads them after the
// call, so a sanitizer reports it when the pool does not order the two.
std::vector<int> runs_of_pieces(ThreadPool& pool, int64_t pieces) {
  std::vector<int> runs(static_cast<size_t>(pieces), 0);
  pool.for_each_piece(pieces, [&](int64_t piece) { ++runs[static_cast<size_t>(piece)]; });
  return runs;
}

// True when both pieces of one call were running at the same time. A pool that runs them one after
// the other would wait for ever, hence the time limit.
bool two_pieces_meet(ThreadPool& pool) {
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  pool.for_each_piece(2, [&](int64_t) {
    ++arrived;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    if (arrived < 2) met = false;
  });
  return met;
}

TEST(ThreadPool, RunsEveryPieceExactlyOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t pieces : {0, 1, 2, 7, 1000}) {
      const std::vector<int> runs = runs_of_pieces(pool, pieces);
      EXPECT_THAT(runs, Each(1)) << threads << " threads, " << pieces << " pieces";
    }
  }
}

TEST(ThreadPool, RunsPiecesAtTheSameTime) {
  ThreadPool pool(2);
  for (int repeat = 0; repeat < 20; ++repeat) ASSERT_TRUE(two_pieces_meet(pool));
}

TEST(ThreadPool, OneThreadRunsPiecesInOrderOnTheCaller) {
  ThreadPool pool(1);
  std::vector<int64_t> order;
  pool.for_each_piece(5, [&](int64_t piece) { order.push_back(piece); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPool, NestedCallsRunInPlaceOnTheThreadOfTheirPiece) {
  ThreadPool pool(4);
  constexpr int64_t kOuter = 16, kInner = 50;
  std::vector<int> runs(kOuter * kInner, 0);
  std::atomic<int> strangers{0};
  pool.for_each_piece(kOuter, [&](int64_t outer) {
    const auto self = std::this_thread::get_id();
    pool.for_each_piece(kInner, [&](int64_t inner) {
      ++runs[static_cast<size_t>(outer * kInner + inner)];
      if (std::this_thread::get_id() != self) ++strangers;
    });
  });
  EXPECT_THAT(runs, Each(1));
  EXPECT_EQ(strangers, 0);
  EXPECT_TRUE(two_pieces_meet(pool)) << "a nested call must not leave its thread marked as inside";
}

TEST(ThreadPool, RethrowsTheErrorOfTheLowestPieceAfterAllHaveRun) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<int> runs(200, 0);
      const auto call = [&] {
        pool.for_each_piece(200, [&](int64_t piece) {
          ++runs[static_cast<size_t>(piece)];
          if (piece % 50 == 7) fail("piece ", piece, " failed");
        });
      };
      ASSERT_THAT(call, ThrowsMessage<Error>("piece 7 failed"));
      ASSERT_THAT(runs, Each(1));
    }
    EXPECT_THAT(runs_of_pieces(pool, 100), Each(1)) << "the pool works on after an error";
  }
}

TEST(ThreadPool, ErrorsOfSinglePiecesAndOfNestedCallsReachTheCaller) {
  ThreadPool pool(3);
  EXPECT_THAT([&] { pool.for_each_piece(1, [](int64_t) { fail("alone"); }); },
              ThrowsMessage<Error>("alone"));
  const auto nested = [&] {
    pool.for_each_piece(8, [&](int64_t outer) {
      pool.for_each_piece(8, [&](int64_t inner) {
        if (outer >= 2 && inner >= 3) fail(outer, ".", inner);
      });
    });
  };
  EXPECT_THAT(nested, ThrowsMessage<Error>("2.3"));
  EXPECT_TRUE(two_pieces_meet(pool));
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  ThreadPool pool(3);
  constexpr int kCallers = 4;
  std::vector<int> failures(kCallers, 0);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&pool, &failures, caller] {
      for (int call = 0; call < 200; ++call) {
        std::vector<int64_t> squares(20, -1);
        pool.for_each_piece(
            20, [&](int64_t piece) { squares[static_cast<size_t>(piece)] = piece * piece; });
        const int64_t sum = std::accumulate(squares.begin(), squares.end(), int64_t{0});
        if (sum != 2470) ++failures[static_cast<size_t>(caller)];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(failures, Each(0));
}

TEST(ThreadPool, SurvivesManySmallJobs) {
  ThreadPool pool(4);
  int64_t total = 0;
  for (int job = 0; job < 20'000; ++job) {
    int64_t parts[5] = {};
    pool.for_each_piece(2 + job % 4, [&](int64_t piece) { parts[piece] = piece + 1; });
    total += std::accumulate(std::begin(parts), std::end(parts), int64_t{0});
  }
  // 1+2, 1+2+3, 1+2+3+4 and 1+...+5 take turns.
  EXPECT_EQ(total, 5'000 * (3 + 6 + 10 + 15));
}

TEST(ThreadPool, StartsAndStopsWithAndWithoutWork) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    ThreadPool pool(1 + repeat % 5);
    if (repeat % 2 == 0) {
      EXPECT_THAT(runs_of_pieces(pool, 3), Each(1));
    }
  }
}

TEST(ThreadPool, RefusesSizesThatMakeNoSense) {
  EXPECT_THAT([] { ThreadPool pool(0); }, ThrowsMessage<Error>(HasSubstr("not 0")));
  EXPECT_THAT([] { ThreadPool pool(1025); },
              ThrowsMessage<Error>(AllOf(HasSubstr("1024"), HasSubstr("1025"))));
}

TEST(ThreadPool, SetNumThreadsReplacesTheSharedPool) {
  const int before = thread_pool().threads();
  EXPECT_EQ(before, available_cores());
  for (int threads : {3, 1, 2}) {
    set_num_threads(threads);
    EXPECT_EQ(thread_pool().threads(), threads);
    EXPECT_THAT(runs_of_pieces(thread_pool(), 50), Each(1));
  }
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_EQ(thread_pool().threads(), 2) << "a refused size leaves the pool as it was";
  set_num_threads(before);
}

TEST(ThreadPool, AvailableCoresAreThoseOfTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(available_cores(), 1);
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace
}  // namespace brrr
