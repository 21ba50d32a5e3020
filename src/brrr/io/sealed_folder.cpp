#include "brrr/io/sealed_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/io/atomic_file.h"
#include "brrr/io/crc32c.h"

namespace brrr {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "brrr sealed folder";
constexpr int kVersion = 1;

// Read block by block: pages of a mapped file would count as memory of the run.
std::string checksum_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), path.string(), " cannot be read");
  std::vector<char> block(1 << 20);
  uint32_t checksum = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)
    checksum =
        crc32c(std::as_bytes(std::span(block).first(static_cast<size_t>(file.gcount()))), checksum);
  check(file.eof(), path.string(), " cannot be read to its end");
  return crc32c_text(checksum);
}

Json manifest_of(const fs::path& folder) {
  Json files = Json::object();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    invariant(entry.is_regular_file(), "a sealed folder has files only: ", entry.path().string());
    files[entry.path().filename().string()] = {{"bytes", entry.file_size()},
                                               {"checksum", checksum_of(entry.path())}};
  }
  return {{"format", kFormat}, {"version", kVersion}, {"files", files}};
}

Json read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  std::ifstream file(path, std::ios::binary);
  check(file.good(), folder.string(), " is damaged: it has no ", kManifest);
  const Json manifest = Json::parse(file, nullptr, false);
  check(manifest.is_object() && manifest.value("format", "") == kFormat &&
            manifest.contains("files") && manifest["files"].is_object(),
        path.string(), " is damaged: it is no manifest of a sealed folder");
  const Json& version = manifest.contains("version") ? manifest["version"] : Json();
  check(version == kVersion, path.string(), " has version ", version.dump(),
        "; this program reads ", kVersion);
  return manifest;
}

void check_file(const fs::path& path, const Json& expected) {
  check(expected.is_object() && expected.contains("bytes") &&
            expected["bytes"].is_number_unsigned() && expected.contains("checksum") &&
            expected["checksum"].is_string(),
        path.parent_path().string(), " is damaged: its manifest says nothing of ",
        path.filename().string());
  std::error_code missing;
  const uintmax_t size = fs::file_size(path, missing);
  check(!missing, path.string(), " is missing");
  check(size == expected["bytes"].get<uintmax_t>(), path.string(), " is damaged: it has ", size,
        " bytes and was written with ", expected["bytes"].get<uintmax_t>());
  const std::string checksum = checksum_of(path);
  check(checksum == expected["checksum"].get<std::string>(), path.string(), " is damaged: its ",
        checksum, " is not the ", expected["checksum"].get<std::string>(), " of its writing");
}

}  // namespace

SealedFolderWriter::SealedFolderWriter(fs::path path) : path_(std::move(path)), partial_(path_) {
  if (path_.filename().empty()) path_ = partial_ = path_.parent_path();  // "run/" is "run"
  partial_ += ".partial";
  check(!fs::exists(path_), path_.string(), " is there already");
  std::error_code failure;
  fs::remove_all(partial_, failure);
  if (!failure) fs::create_directories(partial_, failure);
  check(!failure, partial_.string(), ": cannot be made: ", failure.message());
}

SealedFolderWriter::~SealedFolderWriter() {
  if (committed_) return;
  std::error_code ignored;  // a folder that stays behind is removed by the next writer
  fs::remove_all(partial_, ignored);
}

void SealedFolderWriter::commit() {
  invariant(!committed_, "commit after commit");
  for (const fs::directory_entry& entry : fs::directory_iterator(partial_)) sync_path(entry.path());
  write_file_atomically(partial_ / kManifest, manifest_of(partial_).dump(2) + "\n");
  std::error_code failure;
  fs::rename(partial_, path_, failure);
  check(!failure, path_.string(), ": cannot be written: ", failure.message());
  committed_ = true;
  sync_path(path_.parent_path().empty() ? "." : path_.parent_path());
}

std::vector<SealedFile> check_sealed_folder(const fs::path& path) {
  const Json manifest = read_manifest(path);
  std::vector<SealedFile> files;
  for (const auto& [name, expected] : manifest["files"].items()) {
    check(fs::path(name).filename() == name, path.string(),
          " is damaged: its manifest names a file outside, \"", name, "\"");
    check_file(path / name, expected);
    files.push_back({.name = name, .size = Bytes(expected["bytes"].get<int64_t>())});
  }
  return files;
}

}  // namespace brrr
