// How much work a test does: sanitizers make everything ten to fifty times slower, and see in a part of the
// cases what they would see in all of them.
#pragma once

#include <cstdint>

namespace brrr {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// `count`, or a tenth of it under a sanitizer.
constexpr int64_t tenth_if_sanitized(int64_t count) { return kIsSanitized ? count / 10 : count; }

}  // namespace brrr
