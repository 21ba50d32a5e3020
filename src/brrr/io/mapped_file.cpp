#include "brrr/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "brrr/base/error.h"

namespace brrr {

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const int file = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  check(file >= 0, name_, ": cannot be opened: ", std::strerror(errno));
  struct stat status = {};
  const bool known = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  void* memory = nullptr;
  if (known && status.st_size > 0) {  // a mapping of no bytes is not allowed, and not needed
    size_ = static_cast<size_t>(status.st_size);
    memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
  }
  const int reason = errno;
  ::close(file);  // a mapping keeps its file
  check(known, name_, ": not a regular file, so it cannot be mapped");
  check(memory != MAP_FAILED, name_, ": cannot be mapped: ", std::strerror(reason));
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::expect_jumps() const {
  if (data_) (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_RANDOM);
}

void MappedFile::will_need(size_t offset, size_t count) const {
  if (offset >= size_) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t start = offset / page * page;
  const size_t end = offset + std::min(count, size_ - offset);
  // Only advice: when it is not taken, the bytes are read at the first touch.
  (void)::madvise(const_cast<std::byte*>(data_) + start, end - start, MADV_WILLNEED);
}

void MappedFile::forget() const {
  if (data_) (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

}  // namespace brrr
