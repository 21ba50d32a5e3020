// Hugging Face's tokenizer.json for byte-level BPE. Its added tokens are special tokens here. What would change the text before it is cut into
// words (normalizers, a space put in front) is refused: decoding could not give the text back.
#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/merge_list.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr::text {
namespace {

bool is_absent(const Json& value) {
  return value.is_null() || value == "" || value == false || value == 0.0;
}

void check_model(const Json& model, const std::string& name) {
  check(string_field(model, "type", name) == "BPE", "\"", name, "\" has a model of type \"",
        string_field(model, "type", name), "\"; brrr reads byte-level BPE");
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    check(is_absent(field(model, key)), "\"", name, "\": the model has ", key, " ",
          field(model, key).dump(), "; brrr reads byte-level BPE without it");
  }
}

std::string split_pattern(const Json& split, const std::string& name) {
  const Json& pattern = object_field(split, "pattern", name);
  const std::string& behavior = string_field(split, "behavior", name);
  const bool inverted = flag_field(split, "invert", name);
  check((behavior == "Isolated" && !inverted) || (behavior == "Removed" && inverted), "\"", name,
        "\": a Split with behavior ", behavior, inverted ? ", inverted" : "",
        "; brrr reads those whose matches are the words");
  return string_field(pattern, "Regex", name);
}

// ByteLevel alone (its own pattern is GPT-2's), or a Split before it.
std::string read_pattern(const Json& pre_tokenizer, const std::string& name) {
  std::vector<Json> steps;
  if (field(pre_tokenizer, "type") == "Sequence") {
    for (const Json& step : array_field(pre_tokenizer, "pretokenizers", name))
      steps.push_back(step);
  } else {
    steps.push_back(pre_tokenizer);
  }
  check(!steps.empty() && field(steps.back(), "type") == "ByteLevel", "\"", name,
        "\": the last pre_tokenizer is not ByteLevel; brrr reads byte-level BPE");
  const Json& byte_level = steps.back();
  check(!flag_field(byte_level, "add_prefix_space", name), "\"", name,
        "\" puts a space in front of every text (add_prefix_space), so decoding would not give the "
        "text back; set it to false");
  const Json& use_regex = field(byte_level, "use_regex");  // absent: true
  if (steps.size() == 1) {
    check(use_regex != false, "\"", name, "\" has no pattern that cuts text into words");
    return std::string(kGpt2Pattern);
  }
  check(steps.size() == 2 && field(steps[0], "type") == "Split" && use_regex == false, "\"", name,
        "\": the pre_tokenizer is not one Split and ByteLevel without a pattern; brrr reads these");
  return split_pattern(steps[0], name);
}

std::vector<SpecialToken> read_added(const Json& file, const std::string& name) {
  std::vector<SpecialToken> specials;
  if (field(file, "added_tokens").is_null()) return specials;
  for (const Json& token : array_field(file, "added_tokens", name)) {
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      check(!flag_field(token, key, name), "\"", name, "\": the added token ",
            field(token, "content").dump(), " has ", key,
            ", which takes text away beside it; set it to false");
    }
    specials.push_back({string_field(token, "content", name), to_id(field(token, "id"), name)});
  }
  std::sort(specials.begin(), specials.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return specials;
}

// The vocabulary without the added tokens, which may stand in it too.
std::vector<std::string> read_tokens(const Json& vocab, const std::vector<SpecialToken>& specials,
                                     const std::string& name) {
  IdList tokens;
  for (auto& [text, id] : read_ids(vocab, name)) {
    const auto added =
        std::lower_bound(specials.begin(), specials.end(), id,
                         [](const auto& special, int32_t own) { return special.id < own; });
    if (added != specials.end() && added->id == id) {
      check(added->text == text, "\"", name, "\": the id ", id, " is \"", text,
            "\" in the vocabulary and \"", added->text, "\" among the added tokens");
      continue;
    }
    const auto bytes = from_byte_level(text);
    check(bytes.has_value(), "\"", name, "\": the token \"", text,
          "\" has a character that stands for no byte; is this byte-level BPE?");
    tokens.emplace_back(*bytes, id);
  }
  return tokens_by_id(tokens, name);
}

MergeTexts read_merge_list(const Json& merges, const std::string& name) {
  MergeTexts texts;
  for (const Json& merge : merges) {
    if (merge.is_string()) {
      texts.push_back(parse_merge(merge.get_ref<const std::string&>(), name));
      continue;
    }
    check(merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string(),
          "\"", name, "\": the merge ", merge.dump().substr(0, 80), " is not two tokens");
    texts.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  return texts;
}

Json pre_tokenizer_json(const std::string& pattern) {
  const bool is_gpt2 = pattern == kGpt2Pattern;
  const Json byte_level{{"type", "ByteLevel"},
                        {"add_prefix_space", false},
                        {"trim_offsets", true},
                        {"use_regex", is_gpt2}};
  if (is_gpt2) return byte_level;
  const Json split{{"type", "Split"},
                   {"pattern", {{"Regex", pattern}}},
                   {"behavior", "Isolated"},
                   {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

Json added_json(const std::vector<SpecialToken>& specials) {
  Json added = Json::array();
  for (const SpecialToken& special : specials) {
    json_string(special.text);  // refuses what JSON cannot hold
    added.push_back({{"id", special.id},
                     {"content", special.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

}  // namespace

TokenizerDefinition read_huggingface_json(const Json& file, const std::string& name) {
  const Json& model = object_field(file, "model", name);
  check_model(model, name);
  check(is_absent(field(file, "normalizer")), "\"", name,
        "\" changes the text before encoding (normalizer ",
        field(field(file, "normalizer"), "type").dump(),
        "), so decoding would not give it back; brrr reads tokenizers without one");
  TokenizerDefinition definition{.kind = TokenizerKind::bpe};
  definition.pattern = read_pattern(object_field(file, "pre_tokenizer", name), name);
  definition.whole_words_first = flag_field(model, "ignore_merges", name);
  definition.specials = read_added(file, name);
  definition.tokens = read_tokens(object_field(model, "vocab", name), definition.specials, name);
  set_merges(definition, read_merge_list(array_field(model, "merges", name), name), name);
  return definition;
}

std::string to_huggingface_json(const TokenizerDefinition& given) {
  check(given.kind == TokenizerKind::bpe, "a ", kind_name(given.kind),
        " tokenizer does not fit tokenizer.json; save it in brrr's form, under another name");
  const TokenizerDefinition definition = with_merge_list(given);
  const Json byte_level{{"type", "ByteLevel"},
                        {"add_prefix_space", false},
                        {"trim_offsets", true},
                        {"use_regex", true}};
  std::string json = join_text(
      "{\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n\"added_tokens\": ",
      added_json(definition.specials).dump(), ",\n\"normalizer\": null,\n\"pre_tokenizer\": ",
      pre_tokenizer_json(definition.pattern).dump(),
      ",\n\"post_processor\": null,\n\"decoder\": ", byte_level.dump(),
      ",\n\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, ",
      "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, ",
      "\"byte_fallback\": false, \"ignore_merges\": ", definition.whole_words_first,
      ",\n\"vocab\": ", ids_to_json(vocabulary_texts(definition)), ",\n\"merges\": [");
  bool first = true;
  for (const auto& [left, right] : merge_texts(definition)) {
    json += join_text(first ? "\n" : ",\n", json_string(join_text(left, " ", right)));
    first = false;
  }
  return json + "]}}\n";
}

}  // namespace brrr::text
