#include "brrr/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "brrr/base/error.h"

namespace brrr {
namespace {

constexpr size_t kSmallestFile = 18;  // a header of 10 bytes, checksum and length
constexpr int kGzipWindow =
    MAX_WBITS + 16;  // zlib's way to say: with the header and checksum of gzip

// One file of gzip inside `file`, as zlib unpacks it.
class Member {
 public:
  Member(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {
    check(inflateInit2(&stream_, kGzipWindow) == Z_OK, name_, ": zlib could not start");
  }
  ~Member() { inflateEnd(&stream_); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Appends the content to `out`, which may grow to `largest` bytes; returns the bytes of the file that it took.
  size_t unpack(std::vector<std::byte>& out, size_t largest) {
    constexpr size_t kFirstChunk = size_t{1} << 16, kMostChunk = size_t{1} << 30;
    int code = Z_OK;
    while (code != Z_STREAM_END) {
      // One byte more than is allowed, so that content of exactly the largest size is told from more.
      const size_t before = out.size();
      const size_t more =
          std::min(std::clamp(before, kFirstChunk, kMostChunk), largest - before + 1);
      out.resize(before + more);
      code = step(std::span(out).subspan(before));
      out.erase(out.end() - static_cast<std::ptrdiff_t>(stream_.avail_out), out.end());
      check(out.size() <= largest, name_, ": unpacks to more than ",
            to_text(Bytes(static_cast<int64_t>(largest))));
    }
    return taken_;
  }

 private:
  // One call of zlib, which counts in 32 bits: a larger file is given in parts.
  int step(std::span<std::byte> out) {
    const std::span<const std::byte> in = file_.subspan(taken_);
    const auto given = static_cast<uInt>(std::min(in.size(), size_t{1} << 30));
    // zlib reads through a pointer that is not const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    taken_ += given - stream_.avail_in;
    require_progress(code);
    return code;
  }
  void require_progress(int code) const {
    check(code != Z_MEM_ERROR, name_, ": no memory left for unpacking");
    check(code != Z_BUF_ERROR, name_, ": damaged or cut off: ends inside its content");
    check(code == Z_OK || code == Z_STREAM_END, name_,
          ": damaged: ", stream_.msg ? stream_.msg : "zlib refuses it");
  }

  std::span<const std::byte> file_;
  const std::string& name_;
  z_stream stream_ = {};
  size_t taken_ = 0;
};

}  // namespace

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name,
                              Bytes largest) {
  std::vector<std::byte> out;
  while (!file.empty()) {  // files put after each other are one file
    check(file.size() >= kSmallestFile && is_gzip(file), name, ": not a gzip file, or cut off");
    const size_t taken = Member(file, name).unpack(out, static_cast<size_t>(largest.value()));
    file = file.subspan(taken);
  }
  return out;
}

}  // namespace brrr
