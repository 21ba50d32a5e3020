#include "brrr/text/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "brrr/base/error.h"

namespace brrr::text {

void read_in_parts(std::istream& in, const std::string& name, const TakePart& take,
                   const StreamOptions& options) {
  check(options.block_bytes > 0, "blocks of 0 bytes");
  std::string buffer;
  size_t wanted = options.block_bytes;
  for (;;) {
    const size_t kept = buffer.size();
    buffer.resize(kept + wanted);
    in.read(buffer.data() + kept, static_cast<std::streamsize>(wanted));
    const auto got = static_cast<size_t>(in.gcount());
    check(!in.bad(), "\"", name, "\" cannot be read to its end: ", std::strerror(errno));
    buffer.resize(kept + got);
    const bool at_end = got < wanted;
    const size_t taken = take(buffer, at_end ? TextEnd::here : TextEnd::later);
    if (at_end) {
      invariant(taken == buffer.size(), "read_in_parts: ", buffer.size() - taken,
                " bytes are left");
      return;
    }
    // A word as long as the buffer: reading as much again keeps the number of attempts small.
    wanted = taken == 0 ? std::max(options.block_bytes, buffer.size()) : options.block_bytes;
    buffer.erase(0, taken);
  }
}

void read_file_in_parts(const std::string& path, const TakePart& take,
                        const StreamOptions& options) {
  check(!std::filesystem::is_directory(path), "\"", path, "\" is a folder; name the files in it");
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), "\"", path, "\" cannot be opened: ", std::strerror(errno));
  read_in_parts(file, path, take, options);
}

namespace {

// What read_in_parts needs to encode, and how many bytes have passed.
struct PartEncoder {
  const Tokenizer& tokenizer;
  Specials specials;
  const TakeIds& take;
  int64_t bytes = 0;

  size_t operator()(std::string_view text, TextEnd end) {
    const EncodedPart part = tokenizer.encode_part(text, end, specials);
    if (!part.ids.empty()) take(part.ids);
    bytes += static_cast<int64_t>(part.bytes);
    return part.bytes;
  }
};

}  // namespace

int64_t encode_stream(const Tokenizer& tokenizer, std::istream& in, const std::string& name,
                      Specials specials, const TakeIds& take, const StreamOptions& options) {
  PartEncoder encoder{tokenizer, specials, take};
  read_in_parts(in, name, std::ref(encoder), options);
  return encoder.bytes;
}

int64_t encode_file(const Tokenizer& tokenizer, const std::string& path, Specials specials,
                    const TakeIds& take, const StreamOptions& options) {
  PartEncoder encoder{tokenizer, specials, take};
  read_file_in_parts(path, std::ref(encoder), options);
  return encoder.bytes;
}

}  // namespace brrr::text
