// How a reduction on a GPU is cut into parts: from shape, strides and dtype, without a device, so that its scratch
// is known where a program is only planned.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels::reduction {

struct Cut {
  int64_t outputs, length;       // results, and elements folded into each
  int64_t splits, split_length;  // parts of a result, and the elements of one
  bool by_columns;
  bool by_strips;        // of whole chunks of columns, where the first is at 16 bytes
  int64_t strip_groups;  // blocks of strips along the columns, 32 chunks each

  // Partial sums, 8 bytes each; none where a result has one part.
  int64_t workspace_bytes() const { return splits > 1 ? splits * outputs * 8 : 0; }
};

Cut cut_of(const CudaCall& call);

}  // namespace brrr::kernels::reduction
