// What a pattern that means nothing is told, and that every text is either parsed or told something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "brrr/brrr.h"
#include "brrr/ops/einops/einops_parse.h"
#include "support/error_of.h"
#include "support/sanitized.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Refusal {
  PatternUse use;
  const char* text;
  const char* message;
  const char* marked;  // what the caret is under
};

// The caret line points at `marked`, and is as long.
void expect_refusal(const std::string& error, const Refusal& refusal) {
  const std::string text = refusal.text, marked = refusal.marked;
  const size_t at = marked.empty() ? text.size() : text.find(marked);
  ASSERT_NE(at, std::string::npos) << marked;
  const std::string caret =
      std::string(at, ' ') + "^" + std::string(std::max<size_t>(1, marked.size()) - 1, '~');
  EXPECT_THAT(error, AllOf(StartsWith(std::string(to_text(refusal.use)) + ": "),
                           HasSubstr(refusal.message), EndsWith("\n  " + text + "\n  " + caret)));
}

TEST(EinopsParse, PointsAtWhatIsWrong) {
  using enum PatternUse;
  const Refusal refusals[] = {
      {rearrange, "a b", "'->' is missing", ""},
      {rearrange, "a, b -> a b", "a comma parts the operands of einsum", ","},
      {rearrange, "a ~ b -> a b", "has no meaning", "~"},
      {rearrange, "a .. -> a", "a single dot", "."},
      {rearrange, "(a b -> a b", "never closed", "("},
      {rearrange, "a b) -> a b", "closes nothing", ")"},
      {rearrange, "a -> a, ", "there is one output", ","},
      {rearrange, "a _ -> a", "'_' is no name", "_"},
      {rearrange, "a 2 -> a", "only 1 may stand here", "2"},
      {rearrange, "a 0 -> a", "size 0", "0"},
      {rearrange, "a 12345678901234567890 -> a", "too large", "12345678901234567890"},
      {rearrange, "a (... b) -> ... a b", "'...' in ( ) on the left", "..."},
      {rearrange, "a ... -> a", "'...' is lost", "..."},
      {rearrange, "heads d -> d", "\"heads\" is not on the right; reduce() takes", "heads"},
      {rearrange, "d -> d hedas", "\"hedas\" is not on the left; repeat() makes", "hedas"},
      {repeat, "heads d -> d", "not repeat()", "heads"},
      {reduce, "a -> a 2", "only 1 may stand here", "2"},
      {reduce, "a -> b", "\"b\" is not on the left", "b"},
      {repeat, "a 2 -> a", "only 1 may stand here", "2"},
      {einsum, "a (b c) -> a", "einsum has no ( )", "("},
      {einsum, "a 1 -> a", "no numbers", "1"},
      {einsum, "a, b -> a c", "\"c\" is not on the left", "c"},
      {einsum, "a -> ...", "'...' stands for nothing", "..."},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    const std::string error = error_of([&] { parse_pattern(refusal.use, refusal.text); });
    expect_refusal(error, refusal);
  }
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "((a) b) -> a b"); }),
              AllOf(HasSubstr("do not nest"), EndsWith("\n   ^")));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "a -> a -> a"); }),
              AllOf(HasSubstr("second '->'"), EndsWith("\n         ^~")));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "a b a -> a b"); }),
              AllOf(HasSubstr("\"a\" stands twice"), EndsWith("\n      ^")));
  EXPECT_THAT(error_of([] { parse_pattern(einsum, "a -> a a"); }),
              AllOf(HasSubstr("\"a\" stands twice"), EndsWith("\n         ^")));
  EXPECT_THAT(error_of([] { parse_pattern(einsum, "... a ... -> a"); }),
              AllOf(HasSubstr("may stand once"), EndsWith("\n        ^~~")));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, std::string(20'000, 'a')); }),
              HasSubstr("20000 characters"));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "ä\t? -> "); }), EndsWith("^"));
}

TEST(Einops, PointsAtTheSizeThatDoesNotFit) {
  const Tensor x = ones({2, 6});
  const auto error = [&](const char* text, const std::vector<AxisSize>& sizes = {}) {
    return error_of([&] { rearrange(x, text, sizes); });
  };
  EXPECT_THAT(error("a b c -> a b c"),
              AllOf(HasSubstr("the left has 3 axes, and the tensor 2: shape [2, 6]"),
                    HasSubstr("\n  a b c -> a b c\n  ^~~~~")));
  EXPECT_THAT(error("a b ... c -> a b ... c"), HasSubstr("at least 3 axes"));
  EXPECT_THAT(error("a (b c) -> a b c"),
              AllOf(HasSubstr("neither \"b\" nor \"c\" has a size"), EndsWith("\n       ^")));
  EXPECT_THAT(error("a (b c) -> a b c", {{"b", 4}}),
              AllOf(HasSubstr("\"c\" has no size: 6 does not divide by 4 (shape [2, 6])"),
                    EndsWith("\n       ^")));
  EXPECT_THAT(error("a (b c) -> a b c", {{"b", 0}}), HasSubstr("does not divide by 0"));
  EXPECT_THAT(error("a (b c) -> a b c", {{"b", 4}, {"c", 2}}),
              AllOf(HasSubstr("this is 8, but the axis has size 6"), EndsWith("\n    ^~~~~")));
  EXPECT_THAT(error("a b -> b a", {{"a", 3}}),
              AllOf(HasSubstr("this is 3, but the axis has size 2"), EndsWith("\n  ^")));
  EXPECT_THAT(error("a () -> a"), HasSubstr("this is 1, but the axis has size 6"));
  EXPECT_THAT(error("a b -> b a", {{"c", 3}}),
              AllOf(HasSubstr("\"c\", which is not in the pattern"), EndsWith("a b -> b a")));
  EXPECT_THAT(error("a b -> b a", {{"a", -3}}), HasSubstr("the size given for \"a\" is -3"));
  EXPECT_THAT(error("a b -> b a", {{"a", 2}, {"a", 3}}), HasSubstr("two sizes, 2 and 3"));
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_THAT(error("a (b c d) -> a b c d", {{"b", kHuge}, {"c", kHuge}}), HasSubstr("more than"));
  EXPECT_THAT(error("a b -> 1 1 1 1 1 1 1 a b"), HasSubstr("more than 8 axes"));
  EXPECT_THAT(error("(a b c d e) (f g h i) -> (a b c d e f g h i)",
                    {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"f", 1}, {"g", 1}, {"h", 1}}),
              HasSubstr("takes 9 axes apart"));
  EXPECT_THAT(error_of([&] { repeat(x, "a b -> a b c"); }),
              AllOf(HasSubstr("\"c\" is new and needs a size: {{\"c\", n}}"),
                    EndsWith("\n             ^")));
}

TEST(Einsum, SaysHowToSeparateNames) {
  const Tensor x = ones({2, 3}), y = ones({3, 4});
  EXPECT_EQ(error_of([&] {
              einsum("ij,jk->ik", {x, y});
            }),
            "einsum: the name \"ik\" is not on the left; separate names by blanks: "
            "\"i j, j k -> i k\"\n  ij,jk->ik\n         ^~");
  EXPECT_THAT(error_of([&] {
                einsum("ij,ij->", {x, x});
              }),
              HasSubstr("operand 0 has 1 axis here, and 2 in its shape [2, 3]; separate names by "
                        "blanks: \"i j, i j ->\""));
  EXPECT_THAT(error_of([&] {
                einsum("...ij,jk->...ik", {x, y});
              }),
              HasSubstr("\"... i j, j k -> ... i k\""));
  // Names of several letters that are meant as they are.
  EXPECT_THAT(error_of([&] { einsum("row col -> row colour", {x}); }),
              testing::Not(HasSubstr("blanks")));
}

TEST(Einsum, PointsAtTheSizeThatDoesNotFit) {
  const Tensor x = ones({2, 6});
  EXPECT_THAT(error_of([&] {
                einsum("batch i, i o -> batch o", {x, ones({5, 3})});
              }),
              AllOf(HasSubstr("\"i\" is 5 in operand 1 [5, 3] and 6 in operand 0 [2, 6]"),
                    EndsWith("\n           ^")));
  EXPECT_THAT(error_of([&] { einsum("i i -> i", {x}); }), HasSubstr("\"i\" is 6 in operand 0"));
  EXPECT_THAT(error_of([&] {
                einsum("... i, ... i -> ...", {ones({2, 3, 4}), ones({5, 4})});
              }),
              AllOf(HasSubstr("an axis of '...' is 5 in operand 1"), EndsWith("\n         ^~~")));
  EXPECT_THAT(error_of([&] {
                einsum("a b c, a -> a", {x, x});
              }),
              AllOf(HasSubstr("operand 0 has 3 axes here, and 2 in its shape [2, 6]"),
                    EndsWith("\n  ^~~~~")));
  EXPECT_THAT(error_of([&] { einsum(", a b -> a", {x, x}); }), HasSubstr("operand 0 has 0 axes"));
  EXPECT_THAT(error_of([&] {
                einsum("a b -> a", {x, x});
              }),
              HasSubstr("the pattern has 1 operands, and 2 are given\n  a b -> a"));
  EXPECT_THAT(error_of([&] { einsum("a b -> a", {}); }), HasSubstr("no operands"));
  EXPECT_THAT(error_of([&] {
                einsum("a b, a b ->", {x, ones({2, 6}, {.dtype = DType::f64})});
              }),
              HasSubstr("operands are f32 and f64; cast one"));
  EXPECT_THAT(error_of([&] {
                einsum("a b ->", {ones({2, 6}, {.dtype = DType::boolean})});
              }),
              HasSubstr("bool; cast"));
  const Tensor six = ones({2, 2, 2, 2, 2, 2});
  EXPECT_THAT(error_of([&] {
                einsum("a b c d e f, g h i j k l -> a b c d e f g h i", {six, six});
              }),
              HasSubstr("more than 8 axes"));
}

// ---- any text at all -----------------------------------------------------------------------------

TEST(EinopsParse, EitherParsesOrThrowsError) {
  const std::string_view pieces[] = {"a",  "b",  "seq",   "...",      "(",  ")", ",",
                                     "->", " ",  "1",     "_",        "42", ".", "-",
                                     ">",  "\t", "(a b)", "\xc3\xa4", "()"};
  const std::string_view good[] = {"a (b c) ... -> ... c (a b)", "a b, b c, c d -> a d",
                                   "... (h 2) -> ... h", "h w -> h (w 3) 1"};
  std::mt19937 random(7);
  const auto pick = [&](size_t count) { return random() % count; };
  int parsed = 0;
  const int64_t texts = tenth_if_sanitized(200'000);
  for (int64_t i = 0; i < texts; ++i) {
    std::string text;
    if (i % 2 == 0) {
      for (size_t n = pick(14); n > 0; --n) text += pieces[pick(std::size(pieces))];
    } else {
      text = good[pick(std::size(good))];
      for (size_t n = pick(4); n > 0 && !text.empty(); --n) {
        const size_t at = pick(text.size());
        switch (pick(3)) {
          case 0: text[at] = static_cast<char>(random()); break;
          case 1: text.erase(at, 1 + pick(3)); break;
          default: text.insert(at, pieces[pick(std::size(pieces))]);
        }
      }
    }
    const auto use = static_cast<PatternUse>(pick(4));
    try {
      const Pattern pattern = parse_pattern(use, text);
      ++parsed;
      ASSERT_TRUE(use == PatternUse::einsum || pattern.inputs.size() == 1) << text;
    } catch (const Error& error) {
      ASSERT_FALSE(std::string_view(error.what()).empty());
    }
  }
  EXPECT_GT(parsed, texts / 20) << "the texts are not only nonsense";
}

}  // namespace
}  // namespace brrr
