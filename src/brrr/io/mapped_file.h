// A file as bytes in memory, read by the system when they are touched and not before, so a file may be
// larger than the machine's memory. The file must not shrink while it is mapped: our own files are never
// changed in place (io/atomic_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace brrr {

class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws Error naming the path
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Tells the system that reads jump about: it then reads what is touched and not megabytes around it.
  void expect_jumps() const;
  // Asks the system to begin reading a part that will be touched soon.
  void will_need(size_t offset, size_t count) const;
  // Takes the pages out of the process. Bytes stay valid: touching them maps them anew, from the page
  // cache when they are still there. This is what bounds the memory that a long run seems to use.
  void forget() const;

 private:
  std::string name_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace brrr
