// Words for the things of a Job: calls, call sites, communicators. What findings are put together from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "match/match.h"
#include "model/job.h"

namespace lockstep {

/// Reads a Job for the writers of findings; keeps references, owns nothing.
class Describer {
 public:
  Describer(const Job& job, const MatchResult& match) : job_(job), match_(match) {}

  const Job& job() const { return job_; }
  const MatchResult& match() const { return match_; }
  const Operation& operation(ProgramIndex program, std::uint32_t index) const {
    return job_.program(program).operations[index];
  }

  OperationView view(ProgramIndex program, std::uint32_t index) const;
  Finding::CommunicatorView communicator_view(CommIndex comm) const;
  Finding::Position position(ProgramIndex program, std::uint32_t index) const;
  Evidence evidence(ProgramIndex program, std::uint32_t index) const;

  /// "dp [0-7]".
  std::string communicator(CommIndex comm) const;
  /// "all_reduce f32[1024] sum root 0": what must agree. The communicator is left out.
  std::string arguments(const Operation& operation) const;
  /// "all_reduce #3 on model [0,1]"; "send #0 to rank 1 on pp [0-3]".
  std::string call(ProgramIndex program, std::uint32_t index) const;
  /// "get_grad_norm_direct (stage2.py:1509)", with the function it was called from where the innermost is a helper; "" for
  /// an unknown site.
  std::string site(SiteIndex site) const;
  /// " from <site>", or "" for an unknown site.
  std::string from_site(const Operation& operation) const;
  /// The same for a call that was told of before, or is only compared with: without callers in a program of torch.
  std::string from_short_site(const Operation& operation) const;

  /// Number of a message in its channel.
  std::uint32_t message_seq(ProgramIndex program, std::uint32_t index) const;

 private:
  const Job& job_;
  const MatchResult& match_;
};

/// "once", "2 times", "not at all".
std::string times_text(std::uint64_t times);

}  // namespace lockstep
