// safetensors: named tensors in one file. Eight bytes with the length of the header, a JSON header with
// dtype, shape and place of each tensor, then the elements.
//
//   save_safetensors("model.safetensors", model.named_parameters(), {{"step", "100"}});
//   const SafetensorsFile file("model.safetensors");
//   Tensor weight = file.load("wte.weight");
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "brrr/io/mapped_file.h"
#include "brrr/nn/module.h"

namespace brrr {

using TextByName = std::map<std::string, std::string>;

// Tensors in their order, each contiguous; the file is there whole or not at all.
void save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                      const TextByName& metadata = {});

// A file from anywhere: every number in its header is checked before it is used.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    TensorType type;
    size_t begin = 0, end = 0;  // bytes in the file
  };

  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<Entry>& entries() const { return entries_; }  // by place in the file
  const TextByName& metadata() const { return metadata_; }
  const Entry* find(const std::string& name) const;  // nullptr when there is none

  Tensor load(const std::string& name) const;  // a copy; throws Error naming the file
  // Into elements that exist, which must have the same shape; other dtypes convert.
  void load_into(const std::string& name, const Tensor& target) const;

 private:
  void read_entries(size_t header_end, const std::string& header);
  void require_no_gaps(size_t header_end) const;

  MappedFile file_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> places_;
  TextByName metadata_;
};

}  // namespace brrr
