// A folder that is there whole or not at all, with the checksum of every file in it: written beside its
// place as PATH.partial, synced, renamed. A crash or a full disk at any instant leaves what was there
// before; damage afterwards is found before anything of it is used.
//
//   SealedFolderWriter folder("checkpoints/step-100");
//   save_safetensors(folder.path() / "model.safetensors", tensors);
//   folder.commit();                                  // without it, nothing happens
//   check_sealed_folder("checkpoints/step-100");      // throws Error naming the file that is damaged
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "brrr/base/units.h"

namespace brrr {

class SealedFolderWriter {
 public:
  // Makes the folders above it; throws Error where `path` is there already. What an earlier writer of
  // the same path left half done is removed.
  explicit SealedFolderWriter(std::filesystem::path path);
  ~SealedFolderWriter();  // without commit, removes what was written
  SealedFolderWriter(const SealedFolderWriter&) = delete;
  SealedFolderWriter& operator=(const SealedFolderWriter&) = delete;

  const std::filesystem::path& path() const {
    return partial_;
  }  // where files are put until commit
  // Writes manifest.json, syncs everything and gives the folder its name. No folders inside.
  void commit();

 private:
  std::filesystem::path path_, partial_;
  bool committed_ = false;
};

struct SealedFile {
  std::string name;
  Bytes size;
};

// The files of a folder, each read and compared with the manifest. Throws Error naming the first one that
// is missing, longer, shorter or changed, or the manifest itself.
std::vector<SealedFile> check_sealed_folder(const std::filesystem::path& path);

}  // namespace brrr
