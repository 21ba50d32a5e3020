// How many blocks the gradient of a norm runs in on a GPU: by shape and chip alone, so that its scratch is known where
// a program is only planned.
#pragma once

#include <algorithm>
#include <cstdint>

namespace brrr::kernels {

inline constexpr int64_t kMostBlocksPerSm = 16, kPlainBlocksPerSm = 4;

// Blocks that have `teams` rows at a time: as many as the SMs hold at once, `each` of them. Fewer where a team would
// have less than 4 rows, since its sums cost as much as a row or two, but two per SM.
inline int64_t norm_backward_blocks(int64_t rows, int64_t teams, int64_t each, int64_t sm_count) {
  const int64_t few = std::min((rows + teams - 1) / teams, 2 * sm_count);
  return std::min(each * sm_count, std::max(few, rows / (4 * teams)));
}

}  // namespace brrr::kernels
