// See the header.
#include "replay/plain_items.h"

#include "replay/rendezvous.h"

namespace lockstep {

PlainItems::PlainItems(const Job& job, const MatchResult& match, const ReplayOptions& options)
    : job_(job),
      match_(match),
      trust_completion_(options.trust_completion),
      skips_empty_(job.library() == Library::kNccl && !options.empty_calls_meet),
      buffered_(256) {
  first_gates_.reserve(match.communicators.size());
  for (const CommunicatorMatch& communicator : match.communicators) {
    first_gates_.push_back(static_cast<std::uint32_t>(communicator.first_gate));
  }
  for (std::size_t kind = 0; kind < buffered_.size(); ++kind) {
    buffered_[kind] = is_buffered_send(job.library(), options.model, static_cast<OpKind>(kind));
  }
}

}  // namespace lockstep
