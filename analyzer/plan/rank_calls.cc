// Writes planned calls into a Job.
#include "plan/rank_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::plan {

QuantityIndex RankCalls::quantity(std::string name, std::string per, std::string fix, std::string field) {
  const auto known = std::ranges::find(quantities_, name, &Quantity::name);
  if (known != quantities_.end()) return static_cast<QuantityIndex>(known - quantities_.begin());
  Quantity quantity{
      .name = std::move(name), .per = std::move(per), .fix = std::move(fix), .field = std::move(field)};
  quantity.by_rank.assign(static_cast<std::size_t>(layout_.world), Quantity::kUnset);
  quantities_.push_back(std::move(quantity));
  return quantities_.size() - 1;
}

SiteIndex RankCalls::site(std::initializer_list<Function> frames, std::vector<QuantityIndex> controls) {
  CallSite site;
  for (const Function& function : frames)
    site.frames.push_back({std::string(function.file), std::string(function.name), 0});
  const SiteIndex index = builder_.site(site);
  controls_[index] = std::move(controls);
  return index;
}

void RankCalls::begin(std::int32_t rank) {
  if (program_ != nullptr) calls_before_ += program_->size();
  too_many_ = too_many_ || calls_before_ > kMostCalls;
  rank_ = rank;
  communicators_.clear();
  Program& program = builder_.program(rank);
  program.end = {EndKind::kExited, 0};
  program_ = &program.operations;
}

void RankCalls::set(QuantityIndex quantity, std::int64_t value, std::string_view reason) {
  quantities_[quantity].by_rank[static_cast<std::size_t>(rank_)] = value;
  if (!reason.empty()) quantities_[quantity].reasons[rank_] = reason;
}

CommIndex RankCalls::communicator(std::string_view family) {
  const auto known = communicators_.find(family);
  if (known != communicators_.end()) return known->second;
  CommIndex index = kNoComm;
  const auto found = layout_.families.find(family);
  const std::int32_t group =
      found == layout_.families.end() ? -1 : found->second.group_of_rank[static_cast<std::size_t>(rank_)];
  if (group >= 0) {
    const RankLists& groups = found->second.groups;
    const std::string id = groups.size() == 1 ? std::string(family) : fmt::format("{}.{}", family, group);
    RankList members = groups[static_cast<std::size_t>(group)];
    std::erase_if(members, [this](std::int32_t rank) { return stand_in(rank) != rank; });
    index = builder_.communicator(id, family, members);
  }
  communicators_.emplace(family, index);
  return index;
}

std::int32_t RankCalls::root_at(std::string_view family, CommIndex comm, std::int64_t place) {
  const std::int32_t root = stand_in((*layout_.group(family, rank_))[static_cast<std::size_t>(place)]);
  if (alike_ != nullptr && place_of_root_.try_emplace({comm, root}, place).first->second != place)
    alike_holds_ = false;
  return root;
}

std::uint32_t RankCalls::label(std::string_view text) {
  if (text.empty()) return 0;
  const auto known = labels_.find(text);
  if (known != labels_.end()) return known->second;
  const std::uint32_t index = builder_.extra({.label = std::string(text)});
  labels_.emplace(text, index);
  return index;
}

Operation& RankCalls::add(SiteIndex site) {
  Operation& operation = program_->emplace_back();
  operation.site = site;
  return operation;
}

void RankCalls::collective(SiteIndex site, const Collective& call) {
  const CommIndex comm = communicator(call.family);
  if (comm == kNoComm) return;
  too_many_ = too_many_ || calls_before_ + program_->size() >= kMostCalls;
  if (too_many_) return;
  Operation& operation = add(site);
  operation.kind = call.kind;
  operation.comm = comm;
  operation.count = Count::of(call.count);
  operation.datatype = builder_.datatype(call.datatype);
  operation.redop = builder_.redop(call.redop);
  operation.peer = call.root == kNoRoot ? kNoPeer : root_at(call.family, comm, call.root);
  operation.extra = label(call.label);
}

RankList RankCalls::partners(std::string_view family) {
  pipe_ = family;
  alike_holds_ = alike_holds_ && (alike_ == nullptr || alike_->one_to_one.contains(family));
  RankList ranks = *layout_.group(family, rank_);
  for (std::int32_t& rank : ranks) rank = stand_in(rank);
  return ranks;
}

void RankCalls::begin_like(std::int32_t rank, std::int32_t model) {
  const auto place_in = [&](std::string_view family, std::int32_t other) {
    return std::ranges::find(*layout_.group(family, model), other) - layout_.group(family, model)->begin();
  };
  begin(rank);
  if (too_many_) return;
  *program_ = OperationTable(builder_.program(model).operations);
  for (Quantity& quantity : quantities_)
    quantity.by_rank[static_cast<std::size_t>(rank)] = quantity.by_rank[static_cast<std::size_t>(model)];
  struct Renamed {
    CommIndex from = kNoComm, to = kNoComm;
    std::string family{};
  };
  std::vector<Renamed> renamed;
  std::size_t last = 0;
  const auto rename = [&](CommIndex comm) -> const Renamed& {
    if (last < renamed.size() && renamed[last].from == comm) return renamed[last];
    for (last = 0; last < renamed.size(); ++last)
      if (renamed[last].from == comm) return renamed[last];
    const std::string family = builder_.communicator(comm).name;
    return renamed.emplace_back(Renamed{comm, communicator(family), family});
  };
  std::map<std::int32_t, std::int32_t> partner;
  for (Operation& operation : *program_) {
    if (operation.comm == kNoComm) continue;
    const Renamed& group = rename(operation.comm);
    operation.comm = group.to;
    if (operation.peer < 0) continue;
    if (is_point_to_point(operation.kind)) {
      const auto [known, is_new] = partner.try_emplace(operation.peer, 0);
      if (is_new)
        known->second = (*layout_.group(pipe_, rank))[static_cast<std::size_t>(place_in(pipe_, operation.peer))];
      operation.peer = known->second;
    } else {
      operation.peer = (*layout_.group(group.family, rank))[static_cast<std::size_t>(place_in(group.family, operation.peer))];
    }
  }
}

}  // namespace lockstep::plan
