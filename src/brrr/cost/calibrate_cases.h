// The fixed list of small programs that calibration times: one kernel of a family at one point of its
// grid each. No model is among them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "brrr/hardware/rates.h"
#include "brrr/runtime/compile.h"

namespace brrr::cost {

enum class CaseMeasure : uint8_t {
  kernel,  // the kernels that run `op`: their work in a second
  bytes    // the whole program: bytes touched in a second
};

struct CalibrationCase {
  std::string family;
  size_t index;  // of the point in the family's grid
  std::string op;
  CaseMeasure measure = CaseMeasure::kernel;
  runtime::CompiledFunction program;
  std::vector<Tensor> inputs;
};

struct CalibrationList {
  std::map<std::string, hardware::RateGrid, std::less<>> grids;  // with axes, without values
  std::vector<CalibrationCase> cases;
};

enum class CalibrationSize : uint8_t {
  full,
  quick,  // the same families on coarse grids, within a second on an idle machine
  small   // on coarser grids of small sizes: for tests
};
CalibrationList make_calibration_list(CalibrationSize size);

}  // namespace brrr::cost
