// "Did you mean": the word of a list that is closest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// The closest of `words` by edit distance; empty where none is close (more than a third of the letters
/// differ).
std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words);

/// "; did you mean 'check'?" or nothing: to be put after an error.
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> words);

/// "no class 'kind_difers'; did you mean 'kind_differs'?"
std::string no_such_class(std::string_view typed);

}  // namespace lockstep
