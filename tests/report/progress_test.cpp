#include "brrr/report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "brrr/base/error.h"
#include "brrr/report/table.h"

namespace brrr {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A file in memory.
class Output {
 public:
  Output() : file_(open_memstream(&text_, &size_)) {}
  ~Output() {
    std::fclose(file_);
    std::free(text_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

TEST(ProgressText, SaysStepDetailSpeedAndTimeLeft) {
  EXPECT_EQ(report::progress_text({.done = 40, .total = 100, .elapsed = Seconds(2)}, "loss 0.5", 0),
            "step  40/100  loss 0.5  20 steps/s  3.0 s left");
  EXPECT_EQ(report::progress_text({.done = 4000, .total = 1'000'000, .elapsed = Seconds(1)}, "", 0),
            "step     4,000/1,000,000  4,000 steps/s  4 min 09 s left");
}

TEST(ProgressText, SaysHowLongItTookAtTheEnd) {
  EXPECT_THAT(report::progress_text({.done = 10, .total = 10, .elapsed = Seconds(5)}, "", 0),
              EndsWith("2 steps/s  in 5 s"));
}

TEST(ProgressText, PromisesNothingBeforeTheFirstStep) {
  EXPECT_EQ(report::progress_text({.done = 0, .total = 10}, "", 0), "step  0/10");
}

TEST(ProgressText, TheBarFillsWhatIsLeftOfTheLine) {
  const report::ProgressState half{.done = 50, .total = 100, .elapsed = Seconds(1)};
  const std::string text = report::progress_text(half, "loss 1", 79);
  EXPECT_LE(report::display_width(text), 79);
  EXPECT_THAT(text, HasSubstr("█░"));
  EXPECT_THAT(report::progress_text(half, "loss 1", 50), Not(HasSubstr("█")))
      << "no room for a bar";
  EXPECT_EQ(report::display_width(report::progress_text(half, "loss 1", 20)), 20)
      << "cut, so that it never wraps";
}

TEST(Progress, PrintsTheLastStepInLines) {
  Output output;
  {
    report::Progress progress(3, output.file());
    for (int64_t done = 1; done <= 3; ++done) progress.update(done, "x");
  }
  EXPECT_THAT(output.text(), StartsWith("step 3/3  x"))
      << "steps within the first second are not shown";
  EXPECT_THAT(output.text(), EndsWith("\n"));
  EXPECT_THAT(output.text(), Not(HasSubstr("\r")));
}

TEST(Progress, RewritesOneLineWhenLive) {
  Output output;
  {
    report::Progress progress(2, output.file(), report::ProgressStyle::live);
    progress.update(2, "done");
    progress.update(2, "again");
  }
  const std::string text = output.text();
  EXPECT_THAT(text, StartsWith("\r\x1b[K"));
  EXPECT_THAT(text, HasSubstr("done"));
  EXPECT_THAT(text, Not(HasSubstr("again"))) << "the same step is shown once";
  EXPECT_THAT(text, EndsWith("\n"));
}

TEST(Progress, TellsWhetherItIsTimeToPrint) {
  Output output;
  report::Progress progress(1000, output.file());
  EXPECT_FALSE(progress.is_due(1));
  EXPECT_TRUE(progress.is_due(1000));
  EXPECT_THROW(report::Progress(-1), Error);
}

}  // namespace
}  // namespace brrr
