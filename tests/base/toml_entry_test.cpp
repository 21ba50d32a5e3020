#include "brrr/base/toml_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/base/embedded_text.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;

TEST(TomlEntry, GivesWhatIsWritten) {
  const toml::table file = parse_toml(R"(
name = "card"
others = ["a", "b"]
watts = 3.5
count = 8
quiet = true
link = { name = "rope" }
)",
                                      "x.toml");
  TomlEntry entry(file, "x.toml");
  EXPECT_EQ(entry.text("name"), "card");
  EXPECT_EQ(entry.text_or("title", "none"), "none");
  EXPECT_THAT(entry.texts("others"), ElementsAre("a", "b"));
  EXPECT_EQ(entry.number("watts"), 3.5);
  EXPECT_EQ(entry.number("volts"), std::nullopt);
  EXPECT_EQ(entry.integer_or("count", 1), 8);
  EXPECT_EQ(entry.integer_or("lanes", 4), 4);
  EXPECT_TRUE(entry.flag_or("quiet", false));
  EXPECT_EQ(entry.entry("link")->text("name"), "rope");
  EXPECT_FALSE(entry.entry("clock"));
  entry.require_all_used();
}

TEST(TomlEntry, SaysWhatIsWrongAndWhere) {
  const auto refused = [](const char* text, auto read) {
    const toml::table file = parse_toml(text, "x.toml");
    TomlEntry entry(file, "x.toml: [card]");
    return error_of([&] { read(entry); });
  };
  EXPECT_EQ(refused("", [](TomlEntry& e) { e.text("name"); }),
            "x.toml: [card] needs name = \"...\"");
  EXPECT_EQ(refused("watts = -1", [](TomlEntry& e) { e.number("watts"); }),
            "x.toml: [card]: watts must be a positive number");
  EXPECT_EQ(refused("count = 1.5", [](TomlEntry& e) { e.integer_or("count", 1); }),
            "x.toml: [card]: count must be a positive integer");
  EXPECT_EQ(refused("quiet = 1", [](TomlEntry& e) { e.flag_or("quiet", true); }),
            "x.toml: [card]: quiet must be true or false");
  EXPECT_EQ(refused("others = [1]", [](TomlEntry& e) { e.texts("others"); }),
            "x.toml: [card]: others must be a list of texts");
  EXPECT_EQ(refused("link = { speed = 1 }",
                    [](TomlEntry& e) {
                      auto link = e.entry("link");
                      link->text_or("name", "");
                      link->require_all_used();
                    }),
            "x.toml: [card] link: there is no setting \"speed\"; the settings are name");
  EXPECT_EQ(error_of([] { parse_toml("a = \nb = 1\n", "x.toml"); }).substr(0, 14),
            "x.toml, line 1");
}

TEST(TomlEntry, TablesComeInTheOrderOfTheFile) {
  const toml::table file = parse_toml("[b]\n[c]\nx = 1\n[a]\n", "x.toml");
  std::vector<std::string> names;
  for (const NamedTable& table : tables_in_order(file)) names.push_back(table.name);
  EXPECT_THAT(names, ElementsAre("b", "c", "a"));
}

TEST(EmbeddedText, HasFilesOfTheTreeAndNoOthers) {
  EXPECT_NE(embedded_text("hardware/hardware.toml").find("[gpu.h100-sxm]"), std::string_view::npos);
  EXPECT_EQ(
      error_of([] { embedded_text("hardware/nothing.toml"); }),
      "no text file \"hardware/nothing.toml\" is compiled in; it must be in src/brrr when CMake "
      "configures");
}

}  // namespace
}  // namespace brrr
