// Our own form: one JSON object for any tokenizer, with a version and the hash of the definition, so that
// a file with a flipped bit is refused and not used.
#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/json_fields.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr::text {
namespace {

constexpr int kVersion = 1;

std::string hex(uint64_t value) {
  std::string digits(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) digits[i] = "0123456789abcdef"[value & 15];
  return digits;
}

std::string read_bytes(const Json& value, const std::string& name) {
  check(value.is_string(), "\"", name, "\": a token is ", value.type_name(), ", not text");
  const auto bytes = from_byte_level(value.get_ref<const std::string&>());
  check(bytes.has_value(), "\"", name, "\": the token ", value.dump(),
        " has a character that stands for no byte");
  return *bytes;
}

TokenizerKind read_kind(const Json& file, const std::string& name) {
  const std::string& kind = string_field(file, "kind", name);
  for (auto known : {TokenizerKind::bytes, TokenizerKind::characters, TokenizerKind::bpe}) {
    if (kind == kind_name(known)) return known;
  }
  fail("\"", name, "\": there is no kind of tokenizer named \"", kind,
       "\"; byte, char and bpe are known");
}

void read_merges(const Json& file, const std::string& name, TokenizerDefinition& definition) {
  definition.pattern = string_field(file, "pattern", name);
  definition.whole_words_first = flag_field(file, "whole_words_first", name);
  const std::string& rule = string_field(file, "rule", name);
  check(rule == "list" || rule == "id", "\"", name,
        "\": merges go by \"list\" or by \"id\", not \"", rule, "\"");
  definition.rule = rule == "id" ? MergeRule::by_id : MergeRule::by_list;
  const Json& merges = array_field(file, "merges", name);
  check(merges.size() % 2 == 0, "\"", name, "\": the merges are pairs of ids, but there are ",
        merges.size(), " numbers");
  for (size_t i = 0; i < merges.size(); i += 2)
    definition.merges.push_back({to_id(merges[i], name), to_id(merges[i + 1], name)});
}

std::string merges_text(const std::vector<Merge>& merges) {
  constexpr size_t kPerLine = 12;
  std::string text;
  for (size_t i = 0; i < merges.size(); ++i) {
    const char* before = i == 0 ? "" : i % kPerLine == 0 ? ",\n" : ", ";
    text += join_text(before, merges[i].left, ",", merges[i].right);
  }
  return text;
}

}  // namespace

TokenizerDefinition parse_tokenizer_json(std::string_view json, const std::string& name) {
  const Json file = parse_json(json, name);
  return field(file, "format").is_string() ? read_brrr_json(file, name)
                                           : read_huggingface_json(file, name);
}

TokenizerDefinition read_brrr_json(const Json& file, const std::string& name) {
  check(string_field(file, "format", name) == "brrr tokenizer", "\"", name,
        "\" is not a tokenizer of brrr's");
  const Json& version = field(file, "version");
  check(version == kVersion, "\"", name, "\" has version ", version.dump(),
        " of the form; this brrr reads ", kVersion, ": write it anew, or use a newer brrr");
  TokenizerDefinition definition{.kind = read_kind(file, name)};
  for (const Json& token : array_field(file, "tokens", name))
    definition.tokens.push_back(read_bytes(token, name));
  for (const Json& special : array_field(file, "specials", name))
    definition.specials.push_back(
        {read_bytes(field(special, "text"), name), to_id(field(special, "id"), name)});
  if (definition.kind == TokenizerKind::bpe) read_merges(file, name, definition);
  check(string_field(file, "hash", name) == hex(hash_of(definition)), "\"", name,
        "\" is damaged: its content does not have the hash that it names; get it anew");
  return definition;
}

std::string to_brrr_json(const TokenizerDefinition& definition) {
  std::string json = join_text("{\"format\": \"brrr tokenizer\",\n\"version\": ", kVersion,
                               ",\n\"kind\": \"", kind_name(definition.kind), "\",\n");
  if (definition.kind == TokenizerKind::bpe) {
    json += join_text("\"pattern\": ", json_string(definition.pattern), ",\n\"rule\": \"",
                      definition.rule == MergeRule::by_id ? "id" : "list",
                      "\",\n\"whole_words_first\": ", definition.whole_words_first, ",\n");
  }
  json += "\"specials\": [";
  for (const SpecialToken& special : definition.specials) {
    json += join_text(&special == definition.specials.data() ? "" : ", ",
                      "{\"text\": ", json_string(to_byte_level(special.text)),
                      ", \"id\": ", special.id, "}");
  }
  json += "],\n\"tokens\": [";
  for (const std::string& token : definition.tokens) {
    json += join_text(&token == definition.tokens.data() ? "\n" : ",\n",
                      json_string(to_byte_level(token)));
  }
  json += "],\n";
  if (definition.kind == TokenizerKind::bpe)
    json += join_text("\"merges\": [", merges_text(definition.merges), "],\n");
  return json + join_text("\"hash\": \"", hex(hash_of(definition)), "\"}\n");
}

}  // namespace brrr::text
