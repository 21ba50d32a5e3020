// The word that somebody meant: for messages about names that are none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace brrr {

// How many letters must be put in, taken out, exchanged or swapped with their neighbour to make b of a.
int edit_distance(std::string_view a, std::string_view b);

// Of `known` the one nearest to `word`, the first among equals; empty where nothing is as near as a third
// of its letters (two at least).
std::string nearest_word(std::string_view word, std::span<const std::string> known);

}  // namespace brrr
