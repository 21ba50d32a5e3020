#include "brrr/device/cuda/nvrtc.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/device/cuda/nvrtc_library.h"
#include "brrr/device/cuda/rtc_headers.h"

namespace brrr::cuda {
namespace {

namespace fs = std::filesystem;

// --fmad=false: a product and a sum stay two roundings unless an op says fma, as on the CPU.
// --device-as-default-execution-space: the headers are shared with the host, and their functions carry no marks.
// 1097: g++'s attributes mean nothing to it.
constexpr const char* kOptions[] = {"-std=c++20", "--fmad=false", "-lineinfo",
                                    "--device-as-default-execution-space", "-diag-suppress=1097"};
constexpr const char* kStandardHeaders[] = {"cmath", "concepts", "cstdint", "limits",
                                            "type_traits"};
constexpr const char* kStandard = "#include \"brrr/device/cuda/rtc_std.h\"\n";

constexpr uint64_t kFnvStart = 0xcbf29ce484222325U, kFnvPrime = 0x100000001b3U;
uint64_t hash_text(std::string_view text, uint64_t hash = kFnvStart) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  return hash;
}

uint64_t hash_of_headers() {
  static const uint64_t hash = [] {
    uint64_t all = kFnvStart;
    for (const RtcHeader& header : rtc_headers()) all = hash_text(header.text, all);
    return all;
  }();
  return hash;
}

// Everything that machine code depends on. Stored with it, so that two keys of one hash are told apart.
std::string key_of(const SourceText& source, std::string_view architecture) {
  std::string key = join_text(compiler_name(), " ", architecture, " ", hash_of_headers());
  for (const char* option : kOptions) key += join_text(" ", option);
  return join_text(key, "\n", source.text);
}

std::string cache_path(const std::string& key) {
  const std::string folder = kernel_cache_folder();
  if (folder.empty()) return {};
  char name[40];
  std::snprintf(name, sizeof(name), "/%016llx.cubin",
                static_cast<unsigned long long>(hash_text(key)));
  return folder + name;
}

// A file is the length of the key, the key, and the machine code.
std::optional<std::string> read_cache(const std::string& key) {
  std::ifstream file(cache_path(key), std::ios::binary);
  size_t length = 0;
  if (!(file >> length) || length != key.size() || file.get() != '\n') return {};
  std::string stored(length, '\0');
  if (!file.read(stored.data(), static_cast<std::streamsize>(length)) || stored != key) return {};
  std::string code(std::istreambuf_iterator<char>(file), {});
  return code.empty() ? std::nullopt : std::optional(std::move(code));
}

// Under another name first: two processes may compile the same kernel. A cache that cannot be written
// costs time and nothing else.
void write_cache(const std::string& key, const std::string& code) {
  const std::string path = cache_path(key);
  if (path.empty()) return;
  static std::atomic<int> next = 0;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const std::string unfinished = join_text(path, ".", getpid(), ".", next++);
  {
    std::ofstream file(unfinished, std::ios::binary);
    file << key.size() << '\n' << key << code;
    if (!file.flush()) {
      fs::remove(unfinished, error);
      return;
    }
  }
  fs::rename(unfinished, path, error);
}

struct Program {
  NvrtcLibrary::Program handle = nullptr;
  ~Program() {
    if (handle) nvrtc_library().destroy(&handle);
  }
};

std::string log_of(const NvrtcLibrary& library, NvrtcLibrary::Program program) {
  size_t size = 0;
  library.log_size(program, &size);
  std::string log(size, '\0');
  if (size > 0) library.log(program, log.data());
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

std::string compile(const SourceText& source, std::string_view architecture) {
  const NvrtcLibrary& library = nvrtc_library();
  std::vector<const char*> names, texts;
  for (const RtcHeader& header : rtc_headers())
    names.push_back(header.name), texts.push_back(header.text);
  for (const char* header : kStandardHeaders) names.push_back(header), texts.push_back(kStandard);
  Program program;
  const std::string file = join_text(source.name, ".cu");
  int status = library.create(&program.handle, source.text.c_str(), file.c_str(),
                              static_cast<int>(names.size()), texts.data(), names.data());
  check(status == 0, "NVRTC: ", library.error_text(status), " for ", file);
  const std::string target = join_text("-arch=", architecture);
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(target.c_str());
  status = library.compile(program.handle, static_cast<int>(options.size()), options.data());
  check(status == 0, "NVRTC: ", library.error_text(status), ": ", file, " for ", architecture, "\n",
        log_of(library, program.handle), "\n", source.text);
  size_t size = 0;
  library.cubin_size(program.handle, &size);
  std::string code(size, '\0');
  library.cubin(program.handle, code.data());
  return code;
}

struct Memory {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const std::string>> codes;
  CompilerCounts counts;
};
Memory& memory() {
  static Memory memory;
  return memory;
}

}  // namespace

bool has_compiler() { return nvrtc_library().is_loaded(); }
void switch_compiler_off(std::string reason) { refuse_nvrtc_library(std::move(reason)); }

const std::string& compiler_name() {
  const NvrtcLibrary& library = nvrtc_library();
  return library.is_loaded() ? library.name : library.problem;
}

std::string kernel_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return join_text(cache, "/brrr/kernels");
  if (const char* home = std::getenv("HOME"); home && *home)
    return join_text(home, "/.cache/brrr/kernels");
  return {};
}

std::shared_ptr<const std::string> compile_source(const SourceText& source,
                                                  std::string_view architecture) {
  check(has_compiler(), "kernels cannot be generated: ", compiler_name());
  Memory& all = memory();
  const std::string key = key_of(source, architecture);
  {
    const std::lock_guard lock(all.mutex);
    if (const auto known = all.codes.find(key); known != all.codes.end()) {
      ++all.counts.from_memory;
      return known->second;
    }
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::optional<std::string> stored = read_cache(key);
  const bool is_new = !stored;
  if (is_new) {
    stored = compile(source, architecture);
    write_cache(key, *stored);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::lock_guard lock(all.mutex);
  ++(is_new ? all.counts.compiled : all.counts.from_disk);
  if (is_new) all.counts.compile_seconds += seconds;
  return all.codes.emplace(key, std::make_shared<const std::string>(std::move(*stored)))
      .first->second;
}

CompilerCounts compiler_counts() {
  const std::lock_guard lock(memory().mutex);
  return memory().counts;
}

}  // namespace brrr::cuda
