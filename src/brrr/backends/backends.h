// The backends that brrr comes with. Others are values of their own: a Target that names one is all that the compiler
// and the runtime ask for (tests/backends/toy_backend_test.cpp).
#pragma once

#include "brrr/compiler/backend.h"

namespace brrr::backends {

const compiler::Backend& cpu_backend();   // backends/cpu
const compiler::Backend& cuda_backend();  // backends/cuda

}  // namespace brrr::backends
