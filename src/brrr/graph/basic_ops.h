// The ops that graphs themselves are made with: a trace stores values in another dtype, shows and writes views, and reads
// counts that are constants; the interpreter cuts slices and makes zeros. ops/ defines them, as it does builtin_ops(), so
// nothing here knows an op by its name.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

struct BasicOps {
  const OpDef& cast;          // attribute "dtype"
  const OpDef& copy;          // a value again, in the order of its elements
  const OpDef& full;          // "shape", "dtype", "device", "value"
  const OpDef& number;        // "value": an integer of the host
  const OpDef& select;        // "axis", "index"
  const OpDef& strided_view;  // "shape", "strides", "offset"
  const OpDef& update_view;   // the same: the whole with a view of it replaced
};
const BasicOps& basic_ops();  // set in ops/all_ops.cpp

}  // namespace brrr
