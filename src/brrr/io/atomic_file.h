// A file that is there whole or not at all: written beside its place as PATH.partial, synced, renamed.
// A crash or a full disk at any instant leaves what stood at PATH before.
//
//   AtomicFile file("model.bin");
//   file.write(bytes);
//   file.commit();                  // without it, nothing happens to model.bin
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace brrr {

class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);  // throws Error when somebody else writes it now
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);                     // at the end
  void write_at(int64_t offset, std::span<const std::byte> bytes);  // over bytes written before
  int64_t size() const { return size_; }
  void commit();

 private:
  void flush();
  void open_partial();

  std::filesystem::path path_, partial_;
  int file_ = -1;
  int64_t size_ = 0;
  std::vector<std::byte> buffer_;  // the last bytes of the file, not handed to the system yet
};

// Waits until a file, or the names in a folder, are on disk.
void sync_path(const std::filesystem::path& path);

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace brrr
