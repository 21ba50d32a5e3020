// A sealed folder is there whole or not at all, and damage is named.
#include "brrr/io/sealed_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SealedFolder : public testing::Test {
 protected:
  SealedFolder() {
    SealedFolderWriter writer(path_);
    write(writer.path() / "a.bin", std::string(10000, 'x') + "end");
    write(writer.path() / "empty", "");
    writer.commit();
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string damage() const {
    return error_of([&] { check_sealed_folder(path_); });
  }

  TempFolder folder_;
  fs::path path_ = folder_ / "deep/er";
};

TEST_F(SealedFolder, NamesItsFiles) {
  const auto files = check_sealed_folder(path_);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "a.bin");
  EXPECT_EQ(files[0].size, Bytes(10003));
}

TEST_F(SealedFolder, NamesWhatIsDamaged) {
  std::string bytes = read_file(path_ / "a.bin");
  bytes[5000] ^= 1;
  write(path_ / "a.bin", bytes);
  EXPECT_THAT(damage(), HasSubstr("a.bin is damaged: its crc32c"));
  write(path_ / "a.bin", bytes.substr(1));
  EXPECT_THAT(damage(), HasSubstr("it has 10002 bytes and was written with 10003"));
  fs::remove(path_ / "a.bin");
  EXPECT_THAT(damage(), HasSubstr("a.bin is missing"));
}

TEST_F(SealedFolder, RefusesAManifestThatIsNone) {
  const std::string whole = read_file(path_ / "manifest.json");
  for (size_t length = 0; length + 2 < whole.size(); ++length) {
    write(path_ / "manifest.json", whole.substr(0, length));
    ASSERT_THAT(damage(), HasSubstr("is damaged")) << length;
  }
  std::string other = whole;
  other.replace(other.find("\"version\": 1"), 12, "\"version\": 7");
  write(path_ / "manifest.json", other);
  EXPECT_THAT(damage(), HasSubstr("has version 7; this program reads 1"));
  fs::remove(path_ / "manifest.json");
  EXPECT_THAT(damage(), HasSubstr("has no manifest.json"));
}

TEST_F(SealedFolder, IsNotThereWithoutCommit) {
  {
    const SealedFolderWriter writer(folder_ / "b");
    write(writer.path() / "x", "x");
  }
  EXPECT_FALSE(fs::exists(folder_ / "b"));
  EXPECT_FALSE(fs::exists(folder_ / "b.partial"));
  fs::create_directories(folder_ / "b.partial");  // as a crash leaves it
  write(folder_ / "b.partial/old", "old");
  SealedFolderWriter again(folder_ / "b");
  again.commit();
  EXPECT_TRUE(check_sealed_folder(folder_ / "b").empty());
  EXPECT_THAT(error_of([&] { const SealedFolderWriter third(folder_ / "b"); }),
              HasSubstr("is there already"));
}

}  // namespace
}  // namespace brrr
