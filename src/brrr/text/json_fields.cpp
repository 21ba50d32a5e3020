#include "brrr/text/json_fields.h"

#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/text/utf8.h"

namespace brrr::text {

Json parse_json(std::string_view text, const std::string& name) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail("\"", name, "\" is not JSON, or not all of it: ", error.what(), "; get the file anew");
  }
}

const Json& field(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

const Json& object_field(const Json& object, const char* key, const std::string& name) {
  const Json& value = field(object, key);
  check(value.is_object(), "\"", name, "\" has no object \"", key, "\"; is it a tokenizer?");
  return value;
}

const Json& array_field(const Json& object, const char* key, const std::string& name) {
  const Json& value = field(object, key);
  check(value.is_array(), "\"", name, "\" has no list \"", key, "\"; is it a tokenizer?");
  return value;
}

const std::string& string_field(const Json& object, const char* key, const std::string& name) {
  const Json& value = field(object, key);
  check(value.is_string(), "\"", name, "\" has no text \"", key, "\"; is it a tokenizer?");
  return value.get_ref<const std::string&>();
}

bool flag_field(const Json& object, const char* key, const std::string& name) {
  const Json& value = field(object, key);
  check(value.is_null() || value.is_boolean(), "\"", name, "\": \"", key,
        "\" is neither true nor false");
  return value.is_boolean() && value.get<bool>();
}

int32_t to_id(const Json& value, const std::string& name) {
  check(value.is_number_integer(), "\"", name, "\": an id is ", value.type_name(),
        ", not an integer");
  // An unsigned number above 2^63 must not turn negative, or the other way round.
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() < kMaxIds
                        : value.get<int64_t>() >= 0 && value.get<int64_t>() < kMaxIds;
  check(fits, "\"", name, "\": the id ", value.dump(), " is not between 0 and ", kMaxIds - 1);
  return value.get<int32_t>();
}

std::string json_string(std::string_view text) {
  check(is_utf8(text), "a token of ", text.size(),
        " bytes is not UTF-8, which JSON cannot hold; save the tokenizer in brrr's form");
  return Json(text).dump();
}

IdList read_ids(const Json& object, const std::string& name) {
  check(object.is_object(), "\"", name, "\" has no object of tokens and ids; is it a vocabulary?");
  IdList ids;
  ids.reserve(object.size());
  for (const auto& [text, id] : object.items()) ids.emplace_back(text, to_id(id, name));
  return ids;
}

std::string ids_to_json(const IdList& ids) {
  std::string json = "{";
  for (const auto& [text, id] : ids)
    json += join_text(json.size() > 1 ? "," : "", "\n", json_string(text), ": ", id);
  return json + "\n}";
}

std::vector<std::string> tokens_by_id(const IdList& bytes, const std::string& name) {
  int64_t largest = -1;
  for (const auto& [token, id] : bytes) largest = std::max<int64_t>(largest, id);
  const auto room = static_cast<int64_t>(2 * bytes.size() + 65536);
  check(largest < room, "\"", name, "\": the id ", largest, " with only ", bytes.size(),
        " tokens; ids must not be far apart");
  std::vector<std::string> tokens(static_cast<size_t>(largest + 1));
  for (const auto& [token, id] : bytes) {
    std::string& slot = tokens[static_cast<size_t>(id)];
    check(!token.empty(), "\"", name, "\": the token ", id, " is empty");
    check(slot.empty(), "\"", name, "\": the id ", id, " belongs to two tokens");
    slot = token;
  }
  return tokens;
}

}  // namespace brrr::text
