#include "brrr/kernels/cuda/gemm/gemm_choices.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "brrr/base/error.h"

namespace brrr::kernels {

std::string to_text(const GemmAlgorithm& algorithm) {
  std::string text;
  for (const uint64_t word : algorithm.data) {
    char digits[20];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

GemmAlgorithm parse_gemm_algorithm(std::string_view text) {
  GemmAlgorithm algorithm;
  check(text.size() == algorithm.data.size() * 16 &&
            text.find_first_not_of("0123456789abcdef") == std::string_view::npos,
        "matrix product choices: \"", text, "\" is no algorithm of 128 hexadecimal digits");
  for (size_t i = 0; i < algorithm.data.size(); ++i)
    algorithm.data[i] = std::stoull(std::string(text.substr(16 * i, 16)), nullptr, 16);
  return algorithm;
}

std::optional<GemmAlgorithm> GemmChoices::find(const std::string& product) {
  std::lock_guard lock(mutex_);
  const auto found = choices_.find(product);
  if (found == choices_.end()) return std::nullopt;
  found->second.is_used = true;
  return found->second.algorithm;
}

void GemmChoices::add(const std::string& product, const GemmAlgorithm& algorithm) {
  std::lock_guard lock(mutex_);
  choices_[product] = {.algorithm = algorithm, .is_pinned = false, .is_used = true};
  if (path_.empty()) return;
  // A line is added by one write, so two processes that share the file at worst repeat each other.
  std::ofstream(path_, std::ios::app) << join_text(product, " = ", to_text(algorithm), "\n");
}

std::string GemmChoices::lines_of(bool used_only) const {
  std::lock_guard lock(mutex_);
  std::string lines;
  for (const auto& [product, choice] : choices_) {
    if (choice.is_used || !used_only)
      lines += join_text(product, " = ", to_text(choice.algorithm), "\n");
  }
  return lines;
}

std::string GemmChoices::text() const { return lines_of(false); }
std::string GemmChoices::used_text() const { return lines_of(true); }

void GemmChoices::forget_uses() {
  std::lock_guard lock(mutex_);
  for (auto& [product, choice] : choices_) choice.is_used = choice.is_pinned;
}

void GemmChoices::take(std::string_view lines, bool are_pinned, const std::string& origin) {
  std::vector<std::pair<std::string, GemmAlgorithm>> taken;
  std::istringstream stream{std::string(lines)};
  for (std::string line; std::getline(stream, line);) {
    const size_t sign = line.rfind(" = ");
    try {
      check(sign != std::string::npos, "\"", line, "\" is not \"product = algorithm\"");
      taken.emplace_back(line.substr(0, sign),
                         parse_gemm_algorithm(std::string_view(line).substr(sign + 3)));
    } catch (const Error& error) {
      fail(origin, " is damaged: ", error.what(), "; delete it to choose again");
    }
  }
  std::lock_guard lock(mutex_);
  for (const auto& [product, algorithm] : taken) {
    Choice& choice = choices_[product];
    if (choice.is_pinned && !are_pinned) continue;
    // Pinned choices are used from the start: the run that they come from has used them.
    choice = {
        .algorithm = algorithm, .is_pinned = are_pinned, .is_used = choice.is_used || are_pinned};
  }
}

void GemmChoices::pin(std::string_view lines, const std::string& origin) {
  take(lines, true, origin);
}

void GemmChoices::keep_in(const std::string& path) {
  std::ifstream file(path);
  std::stringstream lines;
  lines << file.rdbuf();
  if (file) take(lines.str(), false, path);
  std::lock_guard lock(mutex_);
  path_ = path;
}

namespace {

struct Contestant {
  GemmAlgorithm algorithm;
  std::vector<double> turns = {};  // seconds
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

GemmAlgorithm fastest(std::span<const GemmAlgorithm> candidates, const GemmClock& clock,
                      double heat_seconds) {
  constexpr double kFarBehind = 1.15;
  std::vector<Contestant> contestants;
  for (const GemmAlgorithm& each : candidates) contestants.push_back({each});
  double passed = 0;
  const auto round = [&] {
    double least = std::numeric_limits<double>::infinity();
    for (Contestant& each : contestants) {
      each.turns.push_back(clock(each.algorithm));
      passed += each.turns.back();
      least = std::min(least, each.turns.back());
    }
    return least;
  };
  const double least = round();
  std::erase_if(contestants,
                [&](const Contestant& each) { return each.turns[0] > kFarBehind * least; });
  passed = 0;
  if (contestants.size() > 1) {
    while (passed < heat_seconds) round();
  }
  const auto hot = [](const Contestant& each) {
    const auto half = static_cast<std::ptrdiff_t>(each.turns.size() / 2);
    return median({each.turns.begin() + half, each.turns.end()});
  };
  return std::min_element(contestants.begin(), contestants.end(),
                          [&](const Contestant& a, const Contestant& b) { return hot(a) < hot(b); })
      ->algorithm;
}

}  // namespace

GemmAlgorithm choose_gemm_algorithm(GemmChoices& choices, const std::string& product,
                                    std::span<const GemmAlgorithm> candidates,
                                    const GemmClock& clock, double heat_seconds) {
  if (const auto known = choices.find(product)) return *known;
  check(!candidates.empty(), "cuda: cuBLASLt has no algorithm for ", product);
  const bool is_contest = clock && candidates.size() > 1;
  const GemmAlgorithm best =
      is_contest ? fastest(candidates, clock, heat_seconds) : candidates.front();
  choices.add(product, best);
  return best;
}

std::string restore_choices(GemmChoices& choices, const AlgorithmChoices& saved,
                            const std::string& library_here) {
  if (saved.library.empty() && library_here.empty()) return "";
  if (saved.library.empty())
    return join_text(
        "the checkpoint has no algorithm choices (it was written without a GPU); bits of later "
        "losses differ");
  if (saved.library != library_here)
    return join_text("the algorithm choices of this run are for ", saved.library, ", and this is ",
                     library_here.empty() ? "no GPU" : library_here,
                     "; bits of later losses differ");
  choices.pin(saved.lines);
  return "";
}

}  // namespace brrr::kernels
