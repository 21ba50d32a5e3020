// Files of gzip, unpacked (RFC 1951, deflate; RFC 1952, gzip). Reading only.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "brrr/base/units.h"

namespace brrr {

bool is_gzip(std::span<const std::byte> file);

// The content, with its checksum checked. Throws Error, with `name`, for what is damaged, ends early, or
// unpacks to more than `largest`.
std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name,
                              Bytes largest = 4_GiB);

}  // namespace brrr
