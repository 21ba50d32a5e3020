#include "brrr/run/run_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "brrr/base/error.h"
#include "brrr/io/atomic_file.h"

namespace brrr::runs {
namespace {

std::filesystem::path facts_path(const std::filesystem::path& folder) {
  return folder / "run.json";
}
std::filesystem::path log_path(const std::filesystem::path& folder) { return folder / "log.jsonl"; }

// A copy and no mapping: a run that resumes shortens its log, and a mapping must not shrink.
std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  check(file.is_open() && !file.bad(), path.string(), ": cannot be read");
  return text;
}

// Calls take(line, number, offset of the next) for each line that has an end.
template <typename Take>
void each_whole_line(std::string_view text, const Take& take) {
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return;
    take(text.substr(begin, end - begin), number, end + 1);
    begin = end + 1;
  }
}

std::string place(const std::filesystem::path& path, int64_t line) {
  return join_text(path.string(), ":", line);
}

[[noreturn]] void fail_log(const std::filesystem::path& path, int reason) {
  fail(path.string(), ": cannot be written: ", std::strerror(reason),
       reason == ENOSPC || reason == EDQUOT ? "; free some space and resume" : "",
       "; the lines before are unchanged");
}

}  // namespace

void write_run_facts(const std::filesystem::path& folder, const RunFacts& facts) {
  write_file_atomically(facts_path(folder), to_json(facts));
}

RunFacts read_run_facts(const std::filesystem::path& folder) {
  const std::filesystem::path path = facts_path(folder);
  check(std::filesystem::is_directory(folder), folder.string(),
        " is not a folder; a run is the folder that `brrr train --out` made");
  check(
      std::filesystem::exists(path), folder.string(),
      " has no run.json, so it is not a run of brrr; name the folder that `brrr train --out` made");
  return parse_run_facts(read_text(path), path.string());
}

RunLog read_run_log(const std::filesystem::path& folder) {
  RunLog run{.facts = read_run_facts(folder), .steps = {}};
  const std::filesystem::path path = log_path(folder);
  if (!std::filesystem::exists(path)) return run;  // before its first step
  each_whole_line(read_text(path), [&](std::string_view line, int64_t number, size_t) {
    StepRecord record = parse_step_record(line, place(path, number));
    const int64_t before = run.steps.empty() ? 0 : run.steps.back().step;
    check(record.step > before, place(path, number), ": step ", record.step, " comes after step ",
          before, "; steps must grow");
    run.steps.push_back(std::move(record));
  });
  return run;
}

RunLogWriter::RunLogWriter(const std::filesystem::path& folder, int64_t keep_through_step)
    : path_(log_path(folder)) {
  std::filesystem::create_directories(folder);
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail_log(path_, errno);
  try {
    check(::flock(file_, LOCK_EX | LOCK_NB) == 0, path_.string(),
          ": another process is training into this folder; stop it, or choose another folder");
    keep_through(keep_through_step);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

RunLogWriter::~RunLogWriter() { ::close(file_); }

// The longest beginning of whole lines that are as they should be and not past `step`. After a crash of
// the machine the end of a file may be anything.
void RunLogWriter::keep_through(int64_t step) {
  const std::string text = read_text(path_);
  bool keeps = true;
  each_whole_line(text, [&](std::string_view line, int64_t number, size_t end) {
    try {
      const int64_t here = keeps ? parse_step_record(line, place(path_, number)).step : 0;
      keeps = here > last_step_ && here <= step;
      if (keeps) last_step_ = here;
    } catch (const Error&) {
      keeps = false;
    }
    if (keeps) {
      size_ = static_cast<int64_t>(end);
    } else {
      ++dropped_lines_;
    }
  });
  if (!text.empty() && text.back() != '\n') ++dropped_lines_;
  if (::ftruncate(file_, size_) != 0) fail_log(path_, errno);
}

void RunLogWriter::add(const StepRecord& record) {
  check(record.step > last_step_, path_.string(), ": step ", record.step,
        " was logged already; the last one is ", last_step_);
  const std::string line = to_json(record) + "\n";
  ssize_t written = 0;
  do {
    written = ::write(file_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line.size())) {
    const int reason =
        written < 0 ? errno : ENOSPC;  // a part was written: there was no room for more
    if (::ftruncate(file_, size_) != 0) fail_log(path_, errno);
    fail_log(path_, reason);
  }
  size_ += written;
  last_step_ = record.step;
}

void RunLogWriter::sync() {
  if (::fdatasync(file_) != 0 && errno != EINVAL) fail_log(path_, errno);
}

}  // namespace brrr::runs
