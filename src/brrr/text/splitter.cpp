#include "brrr/text/splitter.h"

#include "brrr/base/error.h"
#include "brrr/text/regex.h"
#include "brrr/text/scan_words.h"
#include "brrr/text/utf8.h"

namespace brrr::text {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

// Words are the matches of the pattern and what lies between them.
class RegexSplitter final : public Splitter {
 public:
  explicit RegexSplitter(const std::string& pattern) : regex_(pattern) {}

  std::vector<uint32_t> split(std::string_view text, TextEnd end) const override {
    std::vector<uint32_t> ends;
    Regex::Search search(regex_);
    size_t position = 0;
    while (position < text.size()) {
      const Run run = utf8_run(text, position);
      const bool open_ended = end == TextEnd::later && run.reaches_end;
      if (!split_run(text, {position, run.end, open_ended}, search, ends)) break;
      position = run.end;
      if (position == text.size()) break;
      if (open_ended) break;  // the first bytes of a character whose others follow
      ends.push_back(static_cast<uint32_t>(++position));
    }
    return ends;
  }

  size_t find_cut(std::string_view text, size_t /*from*/) const override { return text.size(); }

 private:
  struct Run {
    size_t end;
    bool reaches_end;  // nothing but perhaps a truncated character comes after it
  };
  static Run utf8_run(std::string_view text, size_t position) {
    while (position < text.size()) {
      const Utf8Char next = decode_utf8(text.substr(position));
      if (next.state == Utf8Char::State::truncated) return {position, true};
      if (next.state == Utf8Char::State::broken) return {position, false};
      position += next.length;
    }
    return {position, true};
  }

  struct Stretch {
    size_t begin, end;
    bool open_ended;
  };
  // False when the last word of the stretch depends on what follows.
  static bool split_run(std::string_view text, const Stretch& stretch, Regex::Search& search,
                        std::vector<uint32_t>& ends) {
    const std::string_view run = text.substr(stretch.begin, stretch.end - stretch.begin);
    size_t position = 0;
    while (position < run.size()) {
      const Regex::Match match = search.find(run, position, stretch.open_ended);
      if (match.state != Regex::Match::State::found) {
        if (stretch.open_ended) return false;
        ends.push_back(static_cast<uint32_t>(stretch.end));
        return true;
      }
      if (match.begin > position)
        ends.push_back(static_cast<uint32_t>(stretch.begin + match.begin));
      ends.push_back(static_cast<uint32_t>(stretch.begin + match.end));
      position = match.end;
    }
    return true;
  }

  Regex regex_;
};

class ScanningSplitter final : public Splitter {
 public:
  explicit ScanningSplitter(KnownPattern pattern) : pattern_(pattern) {}
  std::vector<uint32_t> split(std::string_view text, TextEnd end) const override {
    return scan_words(pattern_, text, end);
  }
  size_t find_cut(std::string_view text, size_t from) const override {
    return find_scan_cut(text, from);
  }

 private:
  KnownPattern pattern_;
};

}  // namespace

std::string pattern_from_name(std::string_view name) {
  if (name == "gpt2") return std::string(kGpt2Pattern);
  if (name == "cl100k") return std::string(kCl100kPattern);
  return std::string(name);
}

std::unique_ptr<Splitter> make_regex_splitter(const std::string& pattern) {
  return std::make_unique<RegexSplitter>(pattern);
}

std::unique_ptr<Splitter> make_splitter(const std::string& pattern) {
  if (pattern == kGpt2Pattern) return std::make_unique<ScanningSplitter>(KnownPattern::gpt2);
  if (pattern == kCl100kPattern) return std::make_unique<ScanningSplitter>(KnownPattern::cl100k);
  return make_regex_splitter(pattern);
}

}  // namespace brrr::text
