// Files that are there whole or not at all, and files as memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <numeric>

#include "brrr/io/atomic_file.h"
#include "brrr/io/little_endian.h"
#include "brrr/io/mapped_file.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

TEST(AtomicFile, ReplacesAtOnce) {
  const TempFolder folder;
  const auto path = folder.write("a.txt", "old");
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(std::string_view("__w content"))));
  EXPECT_EQ(read_file(path), "old") << "nothing changes before commit";
  file.write_at(0, std::as_bytes(std::span(std::string_view("ne"))));
  file.commit();
  EXPECT_EQ(read_file(path), "new content");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.txt.partial"));
}

TEST(AtomicFile, LeavesNoTraceWithoutCommit) {
  const TempFolder folder;
  const auto path = folder.write("a.txt", "old");
  { AtomicFile(path).write(std::as_bytes(std::span(std::string_view("half")))); }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.txt.partial"));
}

TEST(AtomicFile, TakesOverWhatACrashLeft) {
  const TempFolder folder;
  folder.write("a.txt.partial", "a long rest of a process that was killed");
  write_file_atomically(folder / "a.txt", "short");
  EXPECT_EQ(read_file(folder / "a.txt"), "short");
}

TEST(AtomicFile, HasOneWriter) {
  const TempFolder folder;
  const AtomicFile first(folder / "a.txt");
  EXPECT_THAT(error_of([&] { AtomicFile second(folder / "a.txt"); }), HasSubstr("somebody else"));
}

TEST(AtomicFile, WritesMoreThanItsBuffer) {
  const TempFolder folder;
  std::vector<int32_t> values(3'000'000);
  std::iota(values.begin(), values.end(), 0);
  AtomicFile file(folder / "large");
  const auto bytes = std::as_bytes(std::span(values));
  file.write(bytes.first(700'001));
  file.write(bytes.subspan(700'001, 600'000));
  file.write(bytes.subspan(1'300'001));
  EXPECT_EQ(file.size(), 12'000'000);
  file.commit();
  const MappedFile mapped(folder / "large");
  ASSERT_EQ(mapped.bytes().size(), 12'000'000u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapped.bytes().begin()));
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskRefuses) {
  const TempFolder folder;
  const auto path = folder.write("a.txt", "old");
  // A limit on the size of files stands for a full disk: write fails half-way.
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      error_of([&] { write_file_atomically(path, std::string(100'000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &old_limit);
  (void)std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(message, HasSubstr("what was there before is unchanged"));
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.txt.partial"));
}

TEST(AtomicFile, SaysWhyItCannotBeWritten) {
  EXPECT_THAT(error_of([] { write_file_atomically("/nowhere/a.txt", "x"); }),
              HasSubstr("/nowhere/a.txt.partial: cannot be written: No such file"));
}

TEST(MappedFile, ReadsBackOneToTen) {  // the raw int32 file of the lecture
  const TempFolder folder;
  std::vector<int32_t> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 1);
  const MappedFile file(folder.write_values<int32_t>("numbers.bin", numbers));
  ASSERT_EQ(file.bytes().size(), 40u);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(load_le<int32_t>(file.bytes(), 4 * i), static_cast<int32_t>(i) + 1);
  file.will_need(0, 40);
  file.forget();
  EXPECT_EQ(load_le<int32_t>(file.bytes(), 36), 10) << "bytes come back after forget";
}

TEST(MappedFile, OfNothingIsEmpty) {
  const TempFolder folder;
  EXPECT_TRUE(MappedFile(folder.write("empty", "")).bytes().empty());
}

TEST(MappedFile, NamesWhatItCannotOpen) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { MappedFile(folder / "missing"); }),
              HasSubstr("missing: cannot be opened"));
  EXPECT_THAT(error_of([&] { MappedFile(folder.path()); }), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace brrr
