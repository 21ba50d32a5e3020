#include "brrr/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "brrr/base/cgroup.h"
#include "brrr/base/error.h"

namespace brrr {
namespace {

constexpr int kMostThreads = 1024;

// Set while this thread runs a piece: a nested call must not wait for the team it belongs to.
thread_local bool inside_piece = false;

// Pieces that a thread takes first: a range of its own, on a cache line of its own. The same call on
// the same data then finds each part in the cache of the core that had it last.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// One call of for_each_piece. A thread works through its own share, then helps with the others'.
struct Job {
  void (*call)(const void*, int64_t) = nullptr;
  const void* object = nullptr;
  std::span<Share> shares;
  std::mutex error_mutex;
  int64_t error_piece = -1;
  std::exception_ptr error;

  void cut(int64_t pieces) {
    const auto count = static_cast<int64_t>(shares.size());
    for (int64_t i = 0; i < count; ++i) {
      shares[static_cast<size_t>(i)].next.store(i * pieces / count, std::memory_order_relaxed);
      shares[static_cast<size_t>(i)].end = (i + 1) * pieces / count;
    }
  }

  void work(size_t own) {
    inside_piece = true;
    for (size_t i = 0; i < shares.size(); ++i) {
      Share& share = shares[(own + i) % shares.size()];
      for (int64_t piece;
           (piece = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
        run_piece(piece);
      }
    }
    inside_piece = false;
  }

  void run_piece(int64_t piece) {
    try {
      call(object, piece);
    } catch (...) {
      std::lock_guard lock(error_mutex);
      if (error_piece < 0 || piece < error_piece) {
        error_piece = piece;
        error = std::current_exception();
      }
    }
  }
};

}  // namespace

struct ThreadPool::Team {
  std::mutex call_mutex;  // one parallel call at a time; a second caller works alone
  std::mutex mutex;
  std::condition_variable start, done;
  Job* job = nullptr;
  std::atomic<uint64_t> generation{0};
  std::atomic<int> busy{0};   // changed under `mutex`, watched without
  std::vector<Share> shares;  // one a thread, the caller's first
  bool stopping = false;
  std::vector<std::thread> workers;

  explicit Team(int threads) : shares(static_cast<size_t>(threads)) {}

  void worker_loop(size_t own) {
    uint64_t seen = 0;
    for (;;) {
      spin_until_new_job(seen);
      std::unique_lock lock(mutex);
      start.wait(lock, [&] { return stopping || generation.load() != seen; });
      if (stopping) return;
      seen = generation.load();
      Job* current = job;
      if (!current) continue;  // the caller finished it alone before we woke
      ++busy;
      lock.unlock();
      current->work(own);
      lock.lock();
      if (--busy == 0) done.notify_all();
    }
  }

  // Ops follow one another within microseconds; sleeping and waking costs more than a short spin.
  void spin_until_new_job(uint64_t seen) const {
    for (int i = 0; i < 2000 && generation.load(std::memory_order_relaxed) == seen; ++i)
      pause_briefly();
  }

  // The last pieces of other threads end soon after the caller's own.
  void spin_until_done() const {
    for (int i = 0; i < 500 && busy.load(std::memory_order_relaxed) != 0; ++i) pause_briefly();
  }
};

ThreadPool::ThreadPool(int threads)
    : team_(std::make_unique<Team>(std::clamp(threads, 1, kMostThreads))) {
  check(threads >= 1 && threads <= kMostThreads, "threads must be between 1 and ", kMostThreads,
        ", not ", threads);
  try {
    for (int i = 1; i < threads; ++i) {
      team_->workers.emplace_back(
          [team = team_.get(), i] { team->worker_loop(static_cast<size_t>(i)); });
    }
  } catch (...) {  // the system gives no more threads: end those that started
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    std::lock_guard lock(team_->mutex);
    team_->stopping = true;
    team_->generation.fetch_add(1);
  }
  team_->start.notify_all();
  for (std::thread& worker : team_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(team_->workers.size()) + 1; }

void ThreadPool::run(int64_t pieces, PieceFn call, const void* object) {
  Job job;
  job.call = call;
  job.object = object;
  std::unique_lock sole_caller(team_->call_mutex, std::defer_lock);
  const bool alone = inside_piece || team_->workers.empty() || !sole_caller.try_lock();
  if (alone) {
    const bool outer = inside_piece;
    Share everything;
    job.shares = {&everything, 1};
    job.cut(pieces);
    job.work(0);
    inside_piece = outer;
  } else {
    {
      std::lock_guard lock(team_->mutex);
      job.shares = team_->shares;
      job.cut(pieces);
      team_->job = &job;
      team_->generation.fetch_add(1);
    }
    team_->start.notify_all();
    job.work(0);
    team_->spin_until_done();
    std::unique_lock lock(team_->mutex);
    team_->job = nullptr;  // late wakers find nothing and go back to sleep
    team_->done.wait(lock, [&] { return team_->busy == 0; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

namespace {

std::unique_ptr<ThreadPool>& pool_slot() {
  static std::unique_ptr<ThreadPool> pool = std::make_unique<ThreadPool>(available_cores());
  return pool;
}

}  // namespace

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int in_mask = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                          ? CPU_COUNT(&allowed)
                          : static_cast<int>(std::thread::hardware_concurrency());
  // A share of 1.5 cores keeps two threads busy.
  const double granted = std::min<double>(in_mask, cgroup_cores().value_or(kMostThreads));
  return std::clamp(static_cast<int>(std::ceil(granted)), 1, kMostThreads);
}

ThreadPool& thread_pool() { return *pool_slot(); }

void set_num_threads(int threads) { pool_slot() = std::make_unique<ThreadPool>(threads); }

}  // namespace brrr
