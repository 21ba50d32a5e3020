// What the stories are made of: the words, the variables, the constraints and the rules.
// To add a plot, write its rules and name it in "plot"; generator and parser follow.
//
// Words keep the grammar easy to learn: every noun takes "a", counts are never one, and a place goes
// with "at" and "to" alike.
#pragma once

#include "brrr/data/story_grammar.h"

namespace brrr::story_grammar {

// ---- words -----------------------------------------------------------------------------------------
inline constexpr std::array<std::string_view, 5> kPersonForms = {"name", "he", "He", "his", "His"};
constexpr Entry girl(std::string_view name) {
  return {.forms = {name, "she", "She", "her", "Her"}, .gender = Gender::female};
}
constexpr Entry boy(std::string_view name) {
  return {.forms = {name, "he", "He", "his", "His"}, .gender = Gender::male};
}
// Friends have names that no hero has: that the two differ would be the last thing that a model learns.
inline constexpr std::array kHeroes = {
    girl("Mia"),  girl("Lily"), girl("Anna"), girl("Sara"), girl("Emma"), girl("Zoe"),
    girl("Ruby"), girl("Nora"), boy("Tom"),   boy("Ben"),   boy("Max"),   boy("Sam"),
    boy("Leo"),   boy("Tim"),   boy("Jack"),  boy("Finn"),
};
inline constexpr std::array kFriends = {
    girl("Ella"), girl("Ivy"), girl("Rosa"), girl("Kate"), girl("Jane"), girl("Amy"),
    girl("Lucy"), girl("Eva"), boy("Dan"),   boy("Bob"),   boy("Paul"),  boy("Nick"),
    boy("Joe"),   boy("Adam"), boy("Luke"),  boy("Owen"),
};

inline constexpr std::array<std::string_view, 1> kWordForm = {"word"};
constexpr Entry word(std::string_view text) { return {.forms = {text}}; }

inline constexpr std::array kKinds = {
    Entry{.forms = {"girl"}, .gender = Gender::female},
    Entry{.forms = {"boy"}, .gender = Gender::male},
    word("fox"),
    word("bear"),
    word("cat"),
    word("dog"),
};
inline constexpr std::array kAnimals = {
    word("frog"),
    word("hen"),
    word("bird"),
    word("goat"),
};
inline constexpr std::array kTraits = {
    word("little"), word("brave"), word("kind"), word("funny"), word("clever"),
};
inline constexpr std::array kHobbies = {
    word("sing"), word("dance"), word("draw"), word("swim"), word("play"),
};
inline constexpr std::array kPlaces = {
    word("park"), word("farm"), word("beach"),  word("lake"),
    word("pond"), word("barn"), word("market"), word("school"),
};
inline constexpr std::array kColors = {
    word("red"), word("blue"), word("green"), word("yellow"), word("white"),
};
inline constexpr std::array kThings = {
    word("ball"), word("kite"), word("hat"),  word("drum"),
    word("boat"), word("doll"), word("bell"), word("cup"),
};
inline constexpr std::array kTreats = {
    word("apples"), word("nuts"), word("shells"), word("stones"), word("eggs"), word("pears"),
};
inline constexpr std::array kContainers = {word("box"), word("bag"), word("pot")};
inline constexpr std::array kTools = {word("rope"), word("stick"), word("net")};
inline constexpr std::array kMaterials = {word("glue"), word("tape"), word("wax")};
inline constexpr std::array kSpots = {word("behind the wall"), word("under the bush"),
                                      word("by the fence"), word("in the mud")};
inline constexpr std::array kTraps = {
    word("into the tree"),
    word("over the wall"),
    word("onto the roof"),
    word("into the mud"),
};

inline constexpr std::array<std::string_view, 2> kNumberForms = {"word", "Word"};
constexpr Entry number(int value, std::string_view text, std::string_view capital = {}) {
  return {.forms = {text, capital}, .number = value};
}
// Ranges are small, so that sums are soon learned, and no count is one, so that nouns stay plural.
inline constexpr std::array kParts = {number(2, "two", "Two"), number(3, "three", "Three"),
                                      number(4, "four", "Four")};
inline constexpr std::array kTotals = {number(4, "four", "Four"), number(5, "five", "Five"),
                                       number(6, "six", "Six"), number(7, "seven", "Seven"),
                                       number(8, "eight", "Eight")};

// ---- variables and what ties them together ---------------------------------------------------------
inline constexpr std::array kVariables = {
    Variable{"hero", kPersonForms, kHeroes}, Variable{"friend", kPersonForms, kFriends},
    Variable{"kind", kWordForm, kKinds},     Variable{"trait", kWordForm, kTraits},
    Variable{"hobby", kWordForm, kHobbies},  Variable{"place", kWordForm, kPlaces},
    Variable{"color", kWordForm, kColors},   Variable{"thing", kWordForm, kThings},
    Variable{"treats", kWordForm, kTreats},  Variable{"container", kWordForm, kContainers},
    Variable{"tool", kWordForm, kTools},     Variable{"material", kWordForm, kMaterials},
    Variable{"animal", kWordForm, kAnimals}, Variable{"spot", kWordForm, kSpots},
    Variable{"trap", kWordForm, kTraps},     Variable{"first", kNumberForms, kParts},
    Variable{"more", kNumberForms, kParts},  Variable{"total", kNumberForms, kTotals},
};

consteval int variable_index(std::string_view name) {
  for (size_t i = 0; i < kVariables.size(); ++i) {
    if (kVariables[i].name == name) return static_cast<int>(i);
  }
  throw "no such variable";
}

inline constexpr std::array kConstraints = {
    Constraint{ConstraintKind::agrees, variable_index("hero"), variable_index("kind")},
    Constraint{ConstraintKind::adds, variable_index("first"), variable_index("more"),
               variable_index("total")},
};

// ---- rules, each below those it names --------------------------------------------------------------
// What is said twice is said often, in every story that has it: a variable that comes back in one
// ending of five would be the last thing that a model learns to repeat.
struct Rule {
  std::string_view name;
  std::vector<std::string_view> templates;
};

inline const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {"opening",
       {"Once upon a time there was a {trait} {kind} named {hero}.",
        "There once was a {trait} {kind} named {hero}.",  //
        "{hero} was a {trait} {kind}."}},
      {"friendship",
       {"{hero.He} loved to {hobby} with {hero.his} friend {friend}.",
        "{hero.His} best friend was {friend}, and they loved to {hobby}.",
        "{hero.He} had a friend named {friend}, and they loved to {hobby}."}},
      {"outing",
       {"One (day|morning|evening) {hero} and {friend} (went|walked|ran) to the {place}.",
        "One (sunny|cold|windy) day {hero} and {friend} (went|walked|ran) to the {place}.",
        "One (day|morning|evening) {hero} and {friend} (met|played|sat) at the {place}."}},

      {"lost cry",
       {"\"Where is my {thing}?\" (asked|cried) {hero}.",
        "\"I lost my {thing},\" {hero.he} said."}},
      {"find",
       {"\"Look, the {thing} is {spot}!\" said {friend}.",
        "Then {friend} found the {thing} {spot}."}},
      {"lost",
       {"{hero} took a {color} {thing} along, but soon the {thing} was gone. <lost cry> They "
        "looked all over the {place}. <find> \"Thank you, {friend}!\" said {hero}."}},

      {"stuck cry",
       {"\"Oh no, my {thing}!\" cried {hero}.",  //
        "\"How can I get my {thing}?\" asked {hero}."}},
      {"stuck",
       {"{hero} had a {color} {thing} at the {place}, but the {thing} (fell|flew) {trap}. "
        "<stuck cry> {hero} could not reach it. {friend} came with a {tool} and got the "
        "{thing} back. \"Thank you, {friend}!\" said {hero}."}},

      {"broken cry",
       {"{hero} was (sad|upset).",  //
        "\"Oh no, I broke the {thing}!\" cried {hero}."}},
      {"broken",
       {"{hero} had made a {color} {thing} for {friend}, but at the {place} the {thing} broke. "
        "<broken cry> \"Do not worry,\" said {friend}. \"We can fix it with {material}.\" Soon "
        "the {thing} was as good as new."}},

      {"noise",
       {"Then {hero} and {friend} heard a (loud|strange) noise at the {place}. \"What is "
        "that?\" asked {friend}. {hero} went to look. \"It is only a {color} {animal}!\" "
        "{hero.he} said. The {animal} (ran|came) to {friend}, and {friend} liked the {animal}."}},

      {"count question",
       {"\"How many do we have?\" asked {friend}.",  //
        "\"Let us count the {treats},\" said {friend}."}},
      {"gather",
       {"They looked for {treats} at the {place}. {hero} found {first} {treats}, and {friend} "
        "found {more} {treats}. <count question> \"{first.Word} and {more} make {total},\" "
        "said {hero}. They put the {treats} in a {color} {container}."}},

      {"share wish",
       {"\"I wish I had some {treats},\" said {friend}.",
        "\"Can I have some {treats}?\" asked {friend}."}},
      {"share",
       {"At the {place} {hero} had {total} {treats} in a {color} {container}, but {friend} had "
        "none. <share wish> So {hero} gave {first} {treats} to {friend} and kept {more}. "
        "\"{total.Word} is {first} and {more},\" said {hero}. \"Thank you, {hero}!\" said "
        "{friend}."}},

      {"plot", {"<lost>", "<stuck>", "<broken>", "<noise>", "<gather>", "<share>"}},

      {"ending",
       {"{hero} and {friend} were (happy|glad) and went home from the {place}.",
        "That night {hero} dreamed of the {place}.",
        "From that day on, {hero} and {friend} loved the {place}.",
        "\"What a good day at the {place},\" said {hero}."}},

      {"story", {"<opening> <friendship> <outing> <plot> <ending>"}},
  };
  return table;
}

}  // namespace brrr::story_grammar
