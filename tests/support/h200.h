// Programs for an H200, planned where there is none.
#pragma once

#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/target.h"

namespace brrr {

inline const compiler::Target& h200() {
  static const compiler::Target target = compiler::parse_target("cuda:h200");
  return target;
}

inline compiler::PipelineOptions for_h200() {
  compiler::PipelineOptions options;
  options.device = Device::null();
  options.target = h200();
  return options;
}

}  // namespace brrr
