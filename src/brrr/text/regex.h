// A pattern compiled by PCRE2, for text that is known to be UTF-8: JIT where the machine has it, Unicode
// properties, and limits so that a hostile pattern ends in an Error and not in an endless search.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace brrr::text {

class Regex {
 public:
  // Throws Error when the pattern does not compile, or when a match could depend on what stands before
  // it (lookbehind, \b, \A): text is read in parts, so there is no before.
  explicit Regex(std::string pattern);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  const std::string& pattern() const { return pattern_; }

  struct Match {
    enum class State : unsigned char {
      found,
      none,
      needs_more,  // the search met the end of the text, so that what follows could change it
    };
    State state = State::none;
    size_t begin = 0, end = 0;  // never an empty match
    int group = 0;  // number of the group that matched; of several the highest, 0 when none
  };

  // Searches one text from left to right. Every thread needs a search of its own.
  class Search {
   public:
    explicit Search(const Regex& regex);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;
    // The first match at or after `from`. `open_ended`: more text follows, so a search that meets the
    // end says needs_more.
    Match find(std::string_view text, size_t from, bool open_ended);

   private:
    struct State;
    const Regex& regex_;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  std::string pattern_;
  std::unique_ptr<Code> code_;
};

}  // namespace brrr::text
