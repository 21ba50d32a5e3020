#include "brrr/base/error.h"

#include <fmt/format.h>

namespace brrr {

std::string to_text(double value) { return fmt::format("{:g}", value); }

void fail_invariant(const std::string& message, std::source_location where) {
  throw InternalError(
      fmt::format("brrr has a bug: {} ({}:{})", message, where.file_name(), where.line()));
}

}  // namespace brrr
