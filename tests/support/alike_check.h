// Is a Job of some ranks, which are said to stand for all, what it is said to be? Compared with the Job of all ranks,
// call by call, and by what replay makes of both.
#pragma once

#include <string>

#include "plan/expansion.h"

namespace lockstep::testing {

/// The conditions of plan/alike.h, read off the calls themselves. "" where they hold, else the first that does not.
std::string broken_condition(const plan::Expansion& all, const plan::Expansion& some);

/// Whether match and replay say of each rank what they say of the one that stands for it: where communicators first
/// differ, where ranks stand in every blocking model. "" or the first difference.
std::string different_outcome(const plan::Expansion& all, const plan::Expansion& some);

}  // namespace lockstep::testing
