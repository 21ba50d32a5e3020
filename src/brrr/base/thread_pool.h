// brrr's own threads. Work is cut into pieces by the *shape* of the problem, never by the number of
// threads, so results do not depend on how many threads run them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace brrr {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(piece) once for every piece in [0, pieces), the caller's thread included, and returns
  // when all are done. One piece, one thread, or a call from inside a piece runs in place. When
  // pieces throw, the error of the lowest-numbered one is rethrown after the others have ended.
  template <typename Body>
  void for_each_piece(int64_t pieces, const Body& body) {
    if (pieces == 1) {
      body(int64_t{0});
      return;
    }
    run(
        pieces,
        [](const void* object, int64_t piece) { (*static_cast<const Body*>(object))(piece); },
        &body);
  }

 private:
  using PieceFn = void (*)(const void* object, int64_t piece);
  void run(int64_t pieces, PieceFn call, const void* object);
  void stop();

  struct Team;
  std::unique_ptr<Team> team_;
};

// The pool that kernels use, made at first use with `available_cores()` threads.
ThreadPool& thread_pool();

// Replaces the pool. Not to be called while an op is running.
void set_num_threads(int threads);

// Cores that this process may use: affinity mask and cgroup quota, not the size of the machine.
int available_cores();

}  // namespace brrr
