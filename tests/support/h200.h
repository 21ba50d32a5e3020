// Programs for an H200, planned where there is none.
#pragma once

#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/target.h"

namespace brrr {

inline const Target& h200() {
  static const Target target = parse_target("cuda:h200");
  return target;
}

inline PipelineOptions for_h200() {
  PipelineOptions options;
  options.device = Device::null();
  options.target = h200();
  return options;
}

}  // namespace brrr
