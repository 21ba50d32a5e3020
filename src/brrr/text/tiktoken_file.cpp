// NAME.tiktoken: a token a line, base64 of its bytes and its rank, which is its id. The pattern and the
// special tokens are not in it; NAME.meta.json beside it has them (pat_str, special_tokens).
#include <algorithm>
#include <array>
#include <charconv>

#include "brrr/base/error.h"
#include "brrr/text/merge_list.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr::text {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kSixBits = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kBase64.size(); ++i)
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<int8_t>(i);
  return values;
}();

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const int value = is_padding ? 0 : kSixBits[static_cast<unsigned char>(text[i])];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xFF);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kBase64[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// "IQ== 0"
std::pair<std::string, int32_t> parse_rank(std::string_view line, const std::string& name) {
  const size_t space = std::min(line.find(' '), line.size());
  const auto bytes = from_base64(line.substr(0, space));
  const std::string_view digits = line.substr(std::min(space + 1, line.size()));
  int64_t rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  check(bytes.has_value() && error == std::errc() && end == digits.data() + digits.size() &&
            rank >= 0 && rank < kMaxIds,
        "\"", name, "\": the line \"", line.substr(0, 80),
        "\" is not a token in base64 and a rank below ", kMaxIds);
  return {*bytes, static_cast<int32_t>(rank)};
}

IdList parse_ranks(std::string_view text, const std::string& name) {
  IdList ranks;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) ranks.push_back(parse_rank(line, name));
  }
  check(!ranks.empty(), "\"", name, "\" has no tokens");
  return ranks;
}

void read_meta(const std::string& meta_json, const std::string& name,
               TokenizerDefinition& definition) {
  const Json meta = parse_json(meta_json, name);
  definition.pattern = string_field(meta, "pat_str", name);
  if (field(meta, "special_tokens").is_null()) return;
  for (const auto& [text, id] : read_ids(object_field(meta, "special_tokens", name), name))
    definition.specials.push_back({text, id});
  std::sort(definition.specials.begin(), definition.specials.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

}  // namespace

TokenizerDefinition parse_tiktoken(const TiktokenFiles& files, const std::string& pattern,
                                   const std::string& name) {
  TokenizerDefinition definition{.kind = TokenizerKind::bpe,
                                 .tokens = tokens_by_id(parse_ranks(files.ranks, name), name),
                                 .pattern = pattern,
                                 .rule = MergeRule::by_id,
                                 .whole_words_first = true};
  if (!files.meta_json.empty()) read_meta(files.meta_json, name, definition);
  check(!definition.pattern.empty(), "\"", name,
        "\" does not say how text is cut into words; give a pattern (gpt2, cl100k or a regular "
        "expression), or put a .meta.json with pat_str beside it");
  return definition;
}

TiktokenFiles to_tiktoken(const TokenizerDefinition& given) {
  check(given.kind == TokenizerKind::bpe, "a ", kind_name(given.kind),
        " tokenizer does not fit a .tiktoken file; save it in brrr's form");
  const TokenizerDefinition definition = with_ranks(given);
  TiktokenFiles files;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    if (!definition.tokens[id].empty())
      files.ranks += join_text(to_base64(definition.tokens[id]), " ", id, "\n");
  }
  IdList specials;
  for (const SpecialToken& special : definition.specials)
    specials.emplace_back(special.text, special.id);
  files.meta_json = join_text("{\"pat_str\": ", json_string(definition.pattern),
                              ",\n\"special_tokens\": ", ids_to_json(specials), "}\n");
  return files;
}

}  // namespace brrr::text
