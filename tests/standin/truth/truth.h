// What a program does on the stand-in in every mode, against what the analyzer says about it.
#pragma once

#include <array>
#include <string>

#include "model/job.h"

namespace lockstep::testing {

struct TruthMode {
  const char* groups = "strict";
  const char* p2p = "rendezvous";
  const char* resident = "0";
};
inline constexpr std::array<TruthMode, 8> kTruthModes{{{"strict", "rendezvous", "0"},
                                                       {"strict", "rendezvous", "1"},
                                                       {"strict", "eager", "0"},
                                                       {"strict", "eager", "1"},
                                                       {"nccl226", "rendezvous", "0"},
                                                       {"nccl226", "rendezvous", "1"},
                                                       {"nccl226", "eager", "0"},
                                                       {"nccl226", "eager", "1"}}};

enum class Truth { kEnded, kStuck, kRefused, kFailed };
std::string_view truth_name(Truth truth);

/// Runs the Job, ranks as threads of a process of their own. kRefused: NCCL returned an error for a call; kFailed: neither ended nor
/// provably stuck in time.
Truth run_truth(const Job& job, const TruthMode& mode);

struct Comparison {
  std::array<Truth, kTruthModes.size()> truths{};
  std::string verdict{};
  std::string wrong{};  ///< what the analyzer says that no run bears out, or the other way round; empty: nothing
  bool skipped = false; ///< NCCL refuses the program, or a run did not come to a result
  bool stuck = false;   ///< in the first mode
};

/// Wrong are: a certain finding on a program that ends in every mode, `consistent` on one that stands still with groups as written,
/// rendezvous and any number of collectives at once, and no finding at all on one that stands still with groups as written,
/// rendezvous and one at a time.
Comparison compare_with_truth(const Job& job);

}  // namespace lockstep::testing
