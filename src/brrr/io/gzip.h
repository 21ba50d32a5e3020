// Files of gzip (RFC 1952), unpacked by zlib. Reading only.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "brrr/base/units.h"

namespace brrr {

bool is_gzip(std::span<const std::byte> file);

// The content, with its checksum checked. Throws Error, with `name`, for what is damaged, ends early, or
// unpacks to more than `largest`. Files after each other are one; nothing else may follow.
std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name,
                              Bytes largest = 4_GiB);

}  // namespace brrr
