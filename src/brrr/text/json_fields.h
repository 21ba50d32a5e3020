// JSON of tokenizer files: what is missing or of the wrong type is an Error with the name of the file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brrr/text/definition.h"

namespace brrr::text {

using Json = nlohmann::json;

Json parse_json(std::string_view text, const std::string& name);

// Null where the field is absent.
const Json& field(const Json& object, const char* key);
const Json& object_field(const Json& object, const char* key, const std::string& name);
const Json& array_field(const Json& object, const char* key, const std::string& name);
const std::string& string_field(const Json& object, const char* key, const std::string& name);
bool flag_field(const Json& object, const char* key, const std::string& name);  // absent: false

// An id between 0 and kMaxIds.
int32_t to_id(const Json& value, const std::string& name);

// The text as a JSON string. Error when it is not UTF-8.
std::string json_string(std::string_view text);

// Texts with their ids in a JSON object, as vocab.json has them.
using IdList = std::vector<std::pair<std::string, int32_t>>;
IdList read_ids(const Json& object, const std::string& name);
std::string ids_to_json(const IdList& ids);  // one a line, in the given order

// Tokens by id from (bytes, id). Error for an id that comes twice, or for ids so far apart that a list
// of them would be mostly holes.
std::vector<std::string> tokens_by_id(const IdList& bytes, const std::string& name);

// The content of brrr's and of Hugging Face's form.
TokenizerDefinition read_brrr_json(const Json& file, const std::string& name);
TokenizerDefinition read_huggingface_json(const Json& file, const std::string& name);

}  // namespace brrr::text
