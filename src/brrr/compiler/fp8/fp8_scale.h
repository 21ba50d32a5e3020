// Scales of 8-bit operands. A tensor becomes 8-bit as cast(x * scale), the scale chosen so that the
// largest magnitude of the last steps just fits; so a step does not wait for its own largest magnitude.
// Two states for each format (forward operands are e4m3, gradients e5m2), one row an operand:
//
//   fp8.e4m3.amax  [operands, steps]   largest magnitudes, newest first
//   fp8.e4m3.scale [operands]          largest number of the format / largest of the row; 1 at first
//
// The operands of a body of a repeat have their rows in the states of the program around it: the body is
// given their scales, and the largest magnitude of a step is that over all micro-batches.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision.h"
#include "brrr/compiler/rewrite/body_operands.h"
#include "brrr/compiler/rewrite/graph_builder.h"

namespace brrr::compiler {

class Fp8Scale {
 public:
  // In a body `around` has the scales of the program around it; elsewhere it is null, and so are the ports.
  Fp8Scale(GraphBuilder& to, const PrecisionOptions& options, BodyPorts* ports, Fp8Scale* around)
      : to_(to),
        steps_(options.amax_steps),
        states_(*options.states),
        ports_(ports),
        around_(around) {
    check(steps_ > 0, "precision: amax_steps ", steps_, " must be at least 1");
  }

  struct Operand {
    ValueId value;    // in 8 bits
    ValueId inverse;  // of its scale: the product of the operands is multiplied by both of them
  };
  // `x` is f32 or low.
  Operand quantize(ValueId x, DType format);

  // Once all operands are known: the states and their next values, or what a body hands on.
  void finish();

 private:
  struct Format {
    DType dtype;
    ValueId scales = {}, inverses = {}, history = {};  // [rows], [rows], [rows, steps]
    int64_t rows = 0;
    ValueIds amax = {};  // f32[] of an operand, f32[rows] of a body
  };
  Format& format_of(DType dtype) { return dtype == DType::f8e4m3 ? e4m3_ : e5m2_; }
  void open(Format& format);
  int64_t add_rows(Format& format, int64_t rows);  // returns the first of them
  ValueId scales_of_body(Format& format, int64_t rows);
  ValueId stacked_amax(const Format& format);
  void finish_format(Format& format);
  void finish_states(Format& format, ValueId amax);

  GraphBuilder& to_;
  int64_t steps_;
  AddedStates& states_;
  BodyPorts* ports_;
  Fp8Scale* around_;
  Format e4m3_{.dtype = DType::f8e4m3}, e5m2_{.dtype = DType::f8e5m2};
};

}  // namespace brrr::compiler
