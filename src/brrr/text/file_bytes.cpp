#include "brrr/text/file_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "brrr/base/error.h"

namespace brrr::text {

std::string read_tokenizer_file(const std::string& path) {
  std::error_code error;
  check(!std::filesystem::is_directory(path, error), "\"", path, "\" is a folder, not a file");
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), "\"", path, "\" cannot be opened: ", std::strerror(errno));
  std::string content;
  std::string block(1 << 16, '\0');
  // Not by the size that the file claims: /dev/zero claims none.
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    content.append(block.data(), static_cast<size_t>(file.gcount()));
    check(static_cast<int64_t>(content.size()) <= kMaxTokenizerFileBytes, "\"", path,
          "\" has more than ", kMaxTokenizerFileBytes, " bytes; is it a tokenizer?");
  }
  check(!file.bad(), "\"", path, "\" cannot be read to its end: ", std::strerror(errno));
  return content;
}

void replace_file(const std::string& path, std::string_view content) {
  const std::string beside = path + ".new";
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  check(file >= 0, "\"", beside, "\" cannot be written: ", std::strerror(errno));
  bool written = true;
  while (written && !content.empty()) {
    const ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    written = count > 0;
    if (written) content.remove_prefix(static_cast<size_t>(count));
  }
  written = written && ::fsync(file) == 0;
  const int reason = errno;
  ::close(file);
  if (!written || std::rename(beside.c_str(), path.c_str()) != 0) {
    const int why = written ? errno : reason;
    ::unlink(beside.c_str());
    fail("\"", path, "\" cannot be written: ", std::strerror(why));
  }
}

}  // namespace brrr::text
