// Scales of 8-bit operands. A tensor becomes 8-bit as cast(x * scale), the scale chosen so that the
// largest magnitude of the last steps just fits; so a step does not wait for its own largest magnitude.
// Two states for each format (forward operands are e4m3, gradients e5m2), one row an operand:
//
//   fp8.e4m3.amax  [operands, steps]   largest magnitudes, newest first
//   fp8.e4m3.scale [operands]          largest number of the format / largest of the row; 1 at first
#pragma once

#include "brrr/compiler/graph_builder.h"
#include "brrr/compiler/precision.h"

namespace brrr {

class Fp8Scale {
 public:
  Fp8Scale(GraphBuilder& to, const PrecisionOptions& options, Device device)
      : to_(to), steps_(options.amax_steps), states_(*options.states), device_(device) {
    check(steps_ > 0, "precision: amax_steps ", steps_, " must be at least 1");
  }

  struct Operand {
    ValueId value;    // in 8 bits
    ValueId inverse;  // of its scale: the product of the operands is multiplied by both of them
  };
  // `x` is f32 or low.
  Operand quantize(ValueId x, DType format);

  // Once all operands are known: the states and their next values.
  void finish();

 private:
  struct Format {
    ValueId scales, inverses, history;  // [operands], [operands], [operands, steps]
    ValueIds amax;                      // of each operand, f32[]
  };
  Format& open(DType format);
  void finish_format(Format& format, DType dtype);

  GraphBuilder& to_;
  int64_t steps_;
  AddedStates& states_;
  Device device_;
  Format e4m3_, e5m2_;
};

}  // namespace brrr
