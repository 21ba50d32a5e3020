// Event files for TensorBoard: scalars and texts by tag and step.
//
//   TensorBoardWriter board("runs/first", {});
//   board.scalar("loss/train", step, loss);
//   board.text("sample", step, "Once upon a time ...");
//
// A file is a list of records: the length, its masked CRC-32C, the bytes, their masked CRC-32C; the bytes
// are a protocol buffer of type tensorflow.Event. Both are written by hand: ten fields need no library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace brrr::runs {

struct TensorBoardOptions {
  // A run that goes on after this step: TensorBoard then drops what earlier files say of later ones.
  int64_t resumed_after_step = 0;
};

// A new file "events.out.tfevents.<seconds>.<host>" in the folder for every writer.
class TensorBoardWriter {
 public:
  explicit TensorBoardWriter(const std::filesystem::path& folder,
                             const TensorBoardOptions& options = {});
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  void scalar(std::string_view tag, int64_t step, double value);
  void text(std::string_view tag, int64_t step, std::string_view text);  // shown as Markdown
  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);

  std::filesystem::path path_;
  int file_ = -1;
  int64_t size_ = 0;  // bytes of whole records
};

// The events themselves, as protocol buffers; `wall_time` in seconds since 1970.
std::string version_event(double wall_time);
std::string restart_event(double wall_time, int64_t first_step);
std::string scalar_event(double wall_time, std::string_view tag, int64_t step, double value);
std::string text_event(double wall_time, std::string_view tag, int64_t step, std::string_view text);

// An event as it lies in a file, between its lengths and checksums.
std::string framed(std::string_view event);

}  // namespace brrr::runs
