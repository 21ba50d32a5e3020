#include "brrr/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "brrr/base/error.h"

namespace brrr {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

[[noreturn]] void fail_write(const std::filesystem::path& path) {
  const int reason = errno;
  fail(path.string(), ": cannot be written: ", std::strerror(reason),
       reason == ENOSPC || reason == EDQUOT ? "; free some space and try again" : "",
       "; what was there before is unchanged");
}

void write_all(int file, std::span<const std::byte> bytes, int64_t offset,
               const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_write(path);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

}  // namespace

void sync_path(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_write(path);
  const bool synced =
      ::fsync(file) == 0 || errno == EINVAL;  // some file systems have nothing to sync
  ::close(file);
  if (!synced) fail_write(path);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += ".partial";
  open_partial();
  buffer_.reserve(kBufferBytes);
}

// One name, not one for each process, so that crashes do not pile files up; a lock tells a file that
// was left behind from one that is being written.
void AtomicFile::open_partial() {
  while (true) {
    file_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) fail_write(partial_);
    const bool locked = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
    struct stat mine = {}, named = {};
    // Between open and lock its writer may have renamed it: then it is a finished file, not ours.
    const bool current = locked && ::fstat(file_, &mine) == 0 &&
                         ::stat(partial_.c_str(), &named) == 0 && mine.st_ino == named.st_ino;
    if (current && ::ftruncate(file_, 0) == 0) return;
    ::close(std::exchange(file_, -1));
    check(locked, partial_.string(), ": somebody else is writing this file now");
  }
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::unlink(partial_.c_str());  // not committed; unlinked before the lock is gone
  ::close(file_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_all(file_, bytes, size_, partial_);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  size_ += static_cast<int64_t>(bytes.size());
}

void AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  invariant(offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= size_,
            "write_at past the end");
  flush();
  write_all(file_, bytes, offset, partial_);
}

void AtomicFile::flush() {
  write_all(file_, buffer_, size_ - static_cast<int64_t>(buffer_.size()), partial_);
  buffer_.clear();
}

void AtomicFile::commit() {
  invariant(file_ >= 0, "commit after commit");
  flush();
  if (::fsync(file_) != 0) fail_write(path_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail_write(path_);
  ::close(std::exchange(file_, -1));
  // A rename is only on disk when the folder that holds the name is.
  sync_path(path_.parent_path().empty() ? "." : path_.parent_path());
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace brrr
