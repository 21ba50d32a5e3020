// Which algorithm runs each kind of matrix product: timed once, kept in a file, stored with a run. Algorithms are
// opaque here, so this needs no GPU. Another algorithm is another order of additions: the same seed gives the same
// bits only with the same choices.
//
//   choice of a run (pinned)  >  made by this process, or read from the file  >  timed now
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace brrr::kernels {

// cuBLASLt's description of an algorithm, as the library fills it in.
struct GemmAlgorithm {
  std::array<uint64_t, 8> data{};
  bool operator==(const GemmAlgorithm&) const = default;
};
std::string to_text(const GemmAlgorithm& algorithm);        // 128 hexadecimal digits
GemmAlgorithm parse_gemm_algorithm(std::string_view text);  // throws Error on anything else

// Threads may use one table at once.
class GemmChoices {
 public:
  // A choice that is asked for is used, and part of the run.
  std::optional<GemmAlgorithm> find(const std::string& product);
  void add(const std::string& product, const GemmAlgorithm& algorithm);

  // Lines "product = algorithm", sorted.
  std::string text() const;       // all
  std::string used_text() const;  // what this process has asked for: the choices of its run
  // What was asked for so far is not part of the run: a calibration before it asked. Pinned choices remain.
  void forget_uses();

  // The choices of a run: no file changes them. Throws Error, before any is taken and naming `origin`, on a line of
  // another form.
  void pin(std::string_view lines, const std::string& origin = "the choices of the run");
  // Reads choices from this file if it is there, and adds every new one to it.
  void keep_in(const std::string& path);

 private:
  struct Choice {
    GemmAlgorithm algorithm;
    bool is_pinned = false, is_used = false;
  };
  void take(std::string_view lines, bool are_pinned, const std::string& origin);
  std::string lines_of(bool used_only) const;

  mutable std::mutex mutex_;
  std::map<std::string, Choice> choices_;
  std::string path_;
};

using GemmClock = std::function<double(const GemmAlgorithm&)>;  // seconds of one turn

// The known algorithm of a product, or the one of the candidates that `clock` finds fastest, which is known from then
// on. Without a clock the first, the library's own advice.
//
// Candidates take turns until `heat_seconds` have gone by, so that a GPU that slows down slows all of them; turns of the
// second half count. Those far behind after the first round are out.
GemmAlgorithm choose_gemm_algorithm(GemmChoices& choices, const std::string& product,
                                    std::span<const GemmAlgorithm> candidates,
                                    const GemmClock& clock, double heat_seconds = 0);

// ---- Choices of a run.

// What a checkpoint keeps. Choices mean nothing to another GPU, driver or library.
struct AlgorithmChoices {
  std::string library;  // "NVIDIA H200 driver 13000 cublasLt 130100"; empty: none were made
  std::string lines;
  bool operator==(const AlgorithmChoices&) const = default;
};

// Pins the choices of a run that goes on. Returns what the user must know: empty where the bits stay, else why not.
std::string restore_choices(GemmChoices& choices, const AlgorithmChoices& saved,
                            const std::string& library_here);

}  // namespace brrr::kernels
