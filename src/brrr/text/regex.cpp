#include "brrr/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "brrr/base/error.h"

namespace brrr::text {
namespace {

// Steps one match may take. GPT-2's pattern needs a handful a character, "(a+)+b" as many as there are
// ways to cut the a's.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr size_t kJitStackBytes = 1 << 20;
constexpr size_t kMaxPatternBytes = 1 << 16;

std::string pcre2_message(int code) {
  std::array<unsigned char, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  bool has_jit = false;
  ~Code() { pcre2_code_free(code); }
};

struct Regex::Search::State {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Regex::Regex(std::string pattern) : pattern_(std::move(pattern)), code_(std::make_unique<Code>()) {
  check(pattern_.size() <= kMaxPatternBytes, "a pattern has ", pattern_.size(), " bytes; at most ",
        kMaxPatternBytes, " are allowed");
  int error = 0;
  PCRE2_SIZE position = 0;
  // \C could end a match inside a character.
  constexpr uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(),
                              options, &error, &position, nullptr);
  check(code_->code != nullptr, "the pattern \"", pattern_, "\" is not understood at byte ",
        position, ": ", pcre2_message(error), "; its syntax is that of PCRE2");
  uint32_t behind = 0;
  pcre2_pattern_info(code_->code, PCRE2_INFO_MAXLOOKBEHIND, &behind);
  check(behind == 0, "the pattern \"", pattern_,
        "\" looks behind (a lookbehind, \\b, \\B or \\A); ",
        "text is cut into words from left to right and in parts, so write it with lookaheads");
  // Without JIT (some processors, hardened kernels) the same matches come from the interpreter.
  code_->has_jit = pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Regex::Search::Search(const Regex& regex) : regex_(regex), state_(std::make_unique<State>()) {
  state_->data = pcre2_match_data_create_from_pattern(regex.code_->code, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  check(state_->data != nullptr && state_->context != nullptr,
        "no memory to search with the pattern \"", regex.pattern_, "\"");
  pcre2_set_match_limit(state_->context, kMatchLimit);
  pcre2_set_heap_limit(state_->context, kHeapLimitKib);
  if (regex.code_->has_jit) {
    state_->stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
    pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
  }
}

Regex::Search::~Search() = default;

Regex::Match Regex::Search::find(std::string_view text, size_t from, bool open_ended) {
  // NOTBOL: ^ would mean the beginning of a part, which is no place in the text.
  uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NOTBOL;
  if (open_ended) options |= PCRE2_PARTIAL_HARD;
  const int result = pcre2_match(regex_.code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), from, options, state_->data, state_->context);
  if (result == PCRE2_ERROR_NOMATCH) return {Match::State::none, 0, 0, 0};
  if (result == PCRE2_ERROR_PARTIAL) return {Match::State::needs_more, 0, 0, 0};
  check(result >= 0, "the pattern \"", regex_.pattern_, "\" failed on a text of ", text.size(),
        " bytes: ", pcre2_message(result), "; write it without nested repetitions");
  const size_t* bounds = pcre2_get_ovector_pointer(state_->data);
  check(from <= bounds[0] && bounds[0] < bounds[1], "the pattern \"", regex_.pattern_,
        "\" moves the beginning of its match; write it without \\K");
  return {Match::State::found, bounds[0], bounds[1], std::max(0, result - 1)};
}

}  // namespace brrr::text
