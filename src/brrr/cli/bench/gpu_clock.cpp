#include "brrr/cli/bench/gpu_clock.h"

#include <algorithm>
#include <vector>

namespace brrr::cli {

double gpu_seconds(cuda::Stream stream, int rounds, const std::function<void()>& work) {
  constexpr int kCalls = 20;
  for (int i = 0; i < 3; ++i) work();  // loads code, captures
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) {
    cuda::Event begin, end;
    begin.record(stream);
    for (int call = 0; call < kCalls; ++call) work();
    end.record(stream);
    end.wait();
    all.push_back(cuda::seconds_between(begin, end) / kCalls);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace brrr::cli
