#include "support/alike_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "match/match.h"
#include "replay/replay.h"

namespace lockstep::testing {
namespace {

class Checker {
 public:
  Checker(const plan::Expansion& all, const plan::Expansion& some) : all_(all), some_(some) {}

  std::string conditions() {
    if (std::ssize(all_.job.programs()) != all_.layout.world) return "the job of all ranks lacks some";
    for (const Program& program : all_.job.programs()) {
      const std::int32_t image = some_.alike->image_of(program.rank);
      const ProgramIndex index = some_.job.program_of_rank(image);
      if (index == kNoProgram) return fmt::format("rank {} stands for {} and is not in the job", image, program.rank);
      const Program& other = some_.job.program(index);
      if (program.operations.size() != other.operations.size())
        return fmt::format("rank {} makes {} calls, rank {} {}", program.rank, program.operations.size(), image,
                           other.operations.size());
      for (std::size_t i = 0; i < program.operations.size(); ++i)
        if (const std::string problem = call(program.operations[i], other.operations[i]); !problem.empty())
          return fmt::format("call {} of rank {}, for which {} stands: {}", i, program.rank, image, problem);
    }
    return members();
  }

 private:
  static std::string label(const Job& job, const Operation& operation) { return job.extra(operation).label; }

  std::string call(const Operation& a, const Operation& b) {
    const bool same = a.kind == b.kind && a.seq == b.seq && a.launch == b.launch && a.flags == b.flags &&
                      all_.job.count_text(a.count) == some_.job.count_text(b.count) &&
                      all_.job.datatype(a.datatype) == some_.job.datatype(b.datatype) &&
                      all_.job.redop(a.redop) == some_.job.redop(b.redop) &&
                      all_.job.text(a.handle) == some_.job.text(b.handle) &&
                      all_.job.text(a.payload) == some_.job.text(b.payload) &&
                      all_.job.site(a.site) == some_.job.site(b.site) && label(all_.job, a) == label(some_.job, b);
    if (!same) return "other arguments";
    if ((a.peer < 0) != (b.peer < 0) || (a.peer >= 0 && some_.alike->image_of(a.peer) != b.peer))
      return fmt::format("partner or root {} stands for {}, not {}", a.peer, b.peer,
                         a.peer < 0 ? -1 : some_.alike->image_of(a.peer));
    if ((a.comm == kNoComm) != (b.comm == kNoComm)) return "a communicator on one side only";
    if (a.comm == kNoComm) return "";
    const auto [known, is_new] = image_of_comm_.try_emplace(a.comm, b.comm);
    if (!is_new && known->second != b.comm) return "members of one communicator stand on two";
    if (!is_collective(a.kind)) return "";
    // Two roots of one communicator may not fall together.
    if (a.peer >= 0 && root_behind_.try_emplace({a.comm, b.peer}, a.peer).first->second != a.peer)
      return "two roots have one image";
    return "";
  }

  std::string members() const {
    for (const auto& [comm, image] : image_of_comm_) {
      std::set<std::int32_t> images;
      for (const std::int32_t rank : all_.job.communicator(comm).members) images.insert(some_.alike->image_of(rank));
      const auto& kept = some_.job.communicator(image).members;
      if (images != std::set<std::int32_t>(kept.begin(), kept.end()))
        return fmt::format("communicator {} does not cover {}", all_.job.communicator(comm).id,
                           some_.job.communicator(image).id);
    }
    // Partners correspond one to one.
    for (const Program& program : all_.job.programs()) {
      std::map<std::pair<CommIndex, std::int32_t>, std::int32_t> partner;
      for (const Operation& operation : program.operations) {
        if (!is_point_to_point(operation.kind)) continue;
        const auto [known, is_new] =
            partner.try_emplace({operation.comm, some_.alike->image_of(operation.peer)}, operation.peer);
        if (!is_new && known->second != operation.peer)
          return fmt::format("rank {} has two partners that are joined", program.rank);
      }
    }
    return "";
  }

  const plan::Expansion& all_;
  const plan::Expansion& some_;
  std::map<CommIndex, CommIndex> image_of_comm_{};
  std::map<std::pair<CommIndex, std::int32_t>, std::int32_t> root_behind_{};
};

using Standing = std::map<std::int32_t, std::set<std::uint32_t>>;

Standing where_ranks_stand(const Job& job, const MatchResult& matched, BlockingModel model) {
  Standing standing;
  for (const BlockedOperation& blocked : replay(job, matched, {.model = model}).blocked)
    standing[job.program(blocked.program).rank].insert(blocked.operation);
  return standing;
}

}  // namespace

std::string broken_condition(const plan::Expansion& all, const plan::Expansion& some) {
  return some.alike ? Checker(all, some).conditions() : "";
}

std::string different_outcome(const plan::Expansion& all, const plan::Expansion& some) {
  if (!some.alike) return "";
  const MatchResult of_all = match(all.job);
  const MatchResult of_some = match(some.job);
  std::map<std::string, const CommunicatorMatch*> by_id;
  for (std::uint32_t c = 0; c < of_some.communicators.size(); ++c)
    by_id[some.job.communicator(CommIndex{c}).id] = &of_some.communicators[c];
  for (std::uint32_t c = 0; c < of_all.communicators.size(); ++c) {
    const auto known = by_id.find(all.job.communicator(CommIndex{c}).id);
    if (known == by_id.end()) continue;
    if (of_all.communicators[c].agreed != known->second->agreed ||
        of_all.communicators[c].first_difference != known->second->first_difference)
      return fmt::format("{} differs elsewhere", known->first);
  }
  if (of_all.agreed() != of_some.agreed()) return "one job agrees and the other does not";
  for (const BlockingModel model :
       {BlockingModel::kLazy, BlockingModel::kEager, BlockingModel::kBlocking, BlockingModel::kCoupled}) {
    const Standing all_stand = where_ranks_stand(all.job, of_all, model);
    const Standing some_stand = where_ranks_stand(some.job, of_some, model);
    for (std::int32_t rank = 0; rank < all.layout.world; ++rank) {
      const auto own = all_stand.find(rank);
      const auto other = some_stand.find(some.alike->image_of(rank));
      const bool same = (own == all_stand.end()) == (other == some_stand.end()) &&
                        (own == all_stand.end() || own->second == other->second);
      if (!same)
        return fmt::format("{}: rank {} does not stand where {} does", blocking_model_name(model), rank,
                           some.alike->image_of(rank));
    }
  }
  return "";
}

}  // namespace lockstep::testing
