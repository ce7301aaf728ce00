// Which quantity makes a call's number differ between the members of a communicator, and over which axis it
// varies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/expansion.h"

namespace lockstep::plan {

/// A call site whose calls on one communicator differ in number between its members, and why.
struct Variance {
  CommIndex comm = kNoComm;
  SiteIndex site{};
  QuantityIndex quantity = 0;
  Axis axis = Axis::kRank;
  std::vector<std::pair<std::int32_t, std::int64_t>> values{};  ///< by coordinate along the axis
  std::vector<std::string> reasons{};  ///< why a value is what it is; without repetitions
};

/// Of one communicator; empty where every call site is reached equally often by all members. O(operations).
std::vector<Variance> find_variances(const Expansion& expansion, CommIndex comm);

/// "number of optimizer groups varies by stage: stage 0 has 2, stage 1 has 1"
std::string variance_text(const Expansion& expansion, const Variance& variance);

}  // namespace lockstep::plan
