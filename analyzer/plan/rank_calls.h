// Writes the calls of one rank after the other into a Job, with the name of the code that makes them. Who makes calls is
// told nothing of a rank but the sizes of its groups, and names other ranks by their place in a group: so ranks of one
// stage, settings and sizes have one program (plan/alike.h).
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_builder.h"
#include "plan/alike.h"
#include "plan/expansion.h"

namespace lockstep::plan {

/// Code of a framework that makes a call: "stage_1_and_2.py", "get_grad_norm_direct".
struct Function {
  std::string_view file{};
  std::string_view name{};
};

class RankCalls {
 public:
  /// With `alike`, only ranks that are kept are begun, and other ranks are replaced by those that stand for them.
  RankCalls(JobBuilder& builder, const Layout& layout, const AlikeRanks* alike = nullptr)
      : builder_(builder), layout_(layout), alike_(alike) {}

  // Before the calls: the code that makes them and what it depends on. One name, one quantity.
  QuantityIndex quantity(std::string name, std::string per, std::string fix, std::string field = "layers");
  /// Innermost function first. Calls of one site depend on the same quantities.
  SiteIndex site(std::initializer_list<Function> frames, std::vector<QuantityIndex> controls);

  void begin(std::int32_t rank);
  /// All of `rank` at once: the program of `model`, a rank of the same stage, settings and sizes of groups. Not with
  /// `alike`.
  void begin_like(std::int32_t rank, std::int32_t model);
  /// Of the rank's group in the family; 1 where it is in none.
  std::int64_t group_size(std::string_view family) const { return layout_.group_size(family, rank_); }
  /// `reason` may speak of the rank as kThisRank.
  void set(QuantityIndex quantity, std::int64_t value, std::string_view reason = "");

  static constexpr std::int64_t kNoRoot = -1;
  struct Collective {
    OpKind kind = OpKind::kAllReduce;
    std::string_view family{};
    std::uint64_t count = 0;
    std::string_view datatype{};
    std::string_view redop{};
    std::int64_t root = kNoRoot;  ///< place in the group
    std::string_view label{};
  };
  /// Nothing where the rank is in no group of the family.
  void collective(SiteIndex site, const Collective& call);

  // For messages, which a schedule writes itself.
  JobBuilder& builder() { return builder_; }
  OperationTable& program() { return *program_; }
  CommIndex communicator(std::string_view family);  ///< of the rank; kNoComm where it is in no group
  RankList partners(std::string_view family);       ///< by place in the rank's group
  DatatypeIndex datatype(std::string_view name) { return builder_.datatype(name); }
  Count symbol(std::string_view text) { return Count::symbol(builder_.intern(text)); }

  /// More calls than are kept (6 GiB) were to be written: the rest were left out.
  bool too_many() const { return too_many_; }
  static constexpr std::size_t kMostCalls = 96'000'000;

  /// False where calls were written that ranks which are alike may not share (conditions 3 and 4 of plan/alike.h).
  bool alike_holds() const { return alike_holds_; }
  std::vector<Quantity> take_quantities() { return std::move(quantities_); }
  std::map<SiteIndex, std::vector<QuantityIndex>> take_controls() { return std::move(controls_); }

 private:
  Operation& add(SiteIndex site);
  std::uint32_t label(std::string_view text);
  std::int32_t stand_in(std::int32_t rank) const { return alike_ == nullptr ? rank : alike_->image_of(rank); }
  std::int32_t root_at(std::string_view family, CommIndex comm, std::int64_t place);

  JobBuilder& builder_;
  const Layout& layout_;
  const AlikeRanks* alike_ = nullptr;
  bool alike_holds_ = true;
  bool too_many_ = false;
  std::size_t calls_before_ = 0;  ///< of ranks before this one
  std::map<std::pair<CommIndex, std::int32_t>, std::int64_t> place_of_root_{};  ///< by communicator and stand-in
  std::int32_t rank_ = 0;
  std::string_view pipe_{};  ///< family whose members exchange messages
  OperationTable* program_ = nullptr;
  std::map<std::string, CommIndex, std::less<>> communicators_{};  ///< of the rank, by family
  std::map<std::string, std::uint32_t, std::less<>> labels_{};
  std::vector<Quantity> quantities_{};
  std::map<SiteIndex, std::vector<QuantityIndex>> controls_{};
};

}  // namespace lockstep::plan
