// libFuzzer on the reader of shape specs: a fault inside the text, or terms that lie in it one after
// another.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "brrr/ops/einops/named_shape.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const brrr::ShapeSpec spec = brrr::parse_shape_spec({reinterpret_cast<const char*>(data), size});
  if (spec.fault != brrr::SpecFault::none) {
    if (spec.fault_position >= size) std::abort();
    return 0;
  }
  if (spec.count > brrr::kMaxRank + 1 || spec.dots >= spec.count) std::abort();
  size_t end = 0;
  for (int i = 0; i < spec.count; ++i) {
    const brrr::SpecTerm& term = spec.terms[static_cast<size_t>(i)];
    if (term.position < end || term.length == 0 || term.size < 0) std::abort();
    end = term.position + term.length;
  }
  if (end > size) std::abort();
  return 0;
}
