// Chooses ranks, communicators and events; see the header.
#include "support/random_job.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/event_writer.h"
#include "support/random.h"

namespace lockstep::testing {
namespace {

using enum OpKind;

/// A communicator that the job makes by itself, by a call on its parent.
struct Creation {
  int parent = 0;
  OpKind kind = kSplit;
  std::vector<int> children{};
  std::vector<std::string> colors{};  ///< by member of the parent
};

class JobGenerator {
 public:
  JobGenerator(std::uint64_t seed, const RandomJobOptions& options)
      : options_(options), random_(seed), events_(random_, job_) {}

  JobSketch generate() {
    static const std::vector<Library> libraries{Library::kUnknown, Library::kTorch, Library::kNccl,
                                                Library::kMpi};
    job_.library = random_.pick(libraries);
    choose_ranks();
    choose_communicators();
    if (random_.chance(30)) events_.plain_collective(0, kInit);
    int events = random_.between(2, options_.max_events);
    if (job_.programs.size() > 16) events = std::min(events, 20);
    const bool ranks_end_early = random_.chance(40);
    const int loop_at = random_.chance(30) ? random_.below(events) : -1;
    for (int i = 0; i < events; ++i) {
      if (ranks_end_early && random_.chance(10)) end_some_ranks();
      if (i == loop_at) loop();
      if (!one_event()) break;
      let_ranks_wait();
    }
    finish();
    return std::move(job_);
  }

 private:
  void choose_ranks() {
    const int shape = random_.below(10);
    const int top = shape < 6 ? 6 : shape < 9 ? 16 : 64;
    const int ranks = random_.between(2, std::min(top, options_.max_ranks));
    job_.programs.resize(static_cast<std::size_t>(ranks));
    job_.ends.assign(job_.programs.size(), {.kind = EndKind::kExited});
    alive_.assign(job_.programs.size(), true);
  }

  bool room_for_communicator() const {
    return static_cast<int>(job_.communicators.size()) < options_.max_communicators;
  }

  int add_communicator(const std::string& name, std::vector<std::int32_t> members, bool usable) {
    if (random_.chance(15)) random_.shuffle(members);  // a split's keys may order its members in any way
    const auto index = static_cast<int>(job_.communicators.size());
    job_.communicators.push_back({.name = name + std::to_string(index), .members = std::move(members)});
    usable_.push_back(usable);
    return index;
  }

  void choose_communicators() {
    std::vector<std::int32_t> all;
    for (std::size_t rank = 0; rank < job_.programs.size(); ++rank)
      all.push_back(static_cast<std::int32_t>(rank));
    job_.communicators.push_back({.name = "world", .members = all});
    usable_.push_back(true);
    const int wanted = random_.between(1, options_.max_communicators);
    for (int tries = 0; tries < 20 && static_cast<int>(job_.communicators.size()) < wanted; ++tries) {
      switch (random_.below(4)) {
        case 0:
          add_partition(all);
          break;
        case 1:
          add_communicator("sub", random_subset(all), true);
          break;
        case 2:
          plan_split(random_.below(static_cast<int>(job_.communicators.size())));
          break;
        default:
          plan_new_group();
          break;
      }
    }
  }

  std::vector<std::int32_t> random_subset(const std::vector<std::int32_t>& of) {
    std::vector<std::int32_t> subset = of;
    random_.shuffle(subset);
    subset.resize(static_cast<std::size_t>(
        random_.between(std::min(2, static_cast<int>(of.size())), static_cast<int>(of.size()))));
    std::ranges::sort(subset);
    return subset;
  }

  /// Parts of `of`, contiguous or strided, as axes of a topology are.
  std::vector<std::vector<std::int32_t>> parts_of(const std::vector<std::int32_t>& of) {
    const std::size_t parts = 2 + random_.below(std::max<std::size_t>(1, of.size() / 2));
    const bool strided = random_.chance(50);
    const std::size_t width = (of.size() + parts - 1) / parts;
    std::vector<std::vector<std::int32_t>> result(parts);
    for (std::size_t i = 0; i < of.size(); ++i) result[strided ? i % parts : i / width].push_back(of[i]);
    std::erase_if(result, [](const auto& part) { return part.empty(); });
    return result;
  }

  void add_partition(const std::vector<std::int32_t>& all) {
    for (const auto& part : parts_of(all)) {
      if (room_for_communicator()) add_communicator("axis", part, true);
    }
  }

  void plan_split(int parent) {
    const std::vector<std::int32_t> members = job_.communicators[static_cast<std::size_t>(parent)].members;
    Creation creation{.parent = parent, .kind = kSplit};
    creation.colors.assign(members.size(), "none");
    if (job_.library == Library::kMpi && random_.chance(30)) {
      creation.kind = kDup;
      creation.colors.clear();
      if (room_for_communicator()) creation.children.push_back(add_communicator("dup", members, false));
    } else {
      int color = 0;
      for (const auto& part : parts_of(members)) {
        if (!room_for_communicator()) break;  // the others pass no colour and get no communicator
        creation.children.push_back(add_communicator("split", part, false));
        for (std::size_t i = 0; i < members.size(); ++i) {
          if (std::ranges::find(part, members[i]) != part.end()) creation.colors[i] = std::to_string(color);
        }
        ++color;
      }
    }
    creations_.push_back(creation);
  }

  void plan_new_group() {
    const int child = add_communicator("pg", random_subset(job_.communicators[0].members), false);
    creations_.push_back(
        {.parent = 0, .kind = job_.library == Library::kMpi ? kCreate : kNewGroup, .children = {child}});
  }

  bool all_alive(int comm) const {
    return std::ranges::all_of(job_.communicators[static_cast<std::size_t>(comm)].members,
                               [this](std::int32_t rank) { return alive_[static_cast<std::size_t>(rank)]; });
  }
  bool may_use(int comm) const { return usable_[static_cast<std::size_t>(comm)] && all_alive(comm); }

  std::vector<int> communicators_in_use(std::size_t least_members) const {
    std::vector<int> result;
    for (int comm = 0; comm < static_cast<int>(job_.communicators.size()); ++comm) {
      if (may_use(comm) &&
          job_.communicators[static_cast<std::size_t>(comm)].members.size() >= least_members) {
        result.push_back(comm);
      }
    }
    return result;
  }

  /// A training loop: the same few events again and again.
  void loop() {
    in_loop_ = true;
    const std::uint64_t body = random_.next();
    const int events = random_.between(1, 4);
    const int rounds = random_.between(2, 5);
    const Random after = random_;
    for (int round = 0; round < rounds; ++round) {
      random_ = Random(body);
      for (int i = 0; i < events; ++i) one_event();
    }
    random_ = after;
    in_loop_ = false;
    let_ranks_wait();
  }

  bool one_event() {
    if (!in_loop_ && !creations_.empty() && random_.chance(25)) {
      create(random_.below(creations_.size()));
      return true;
    }
    const std::vector<int> any = communicators_in_use(1);
    const std::vector<int> several = communicators_in_use(2);
    if (any.empty()) return false;
    const int what = random_.below(100);
    if (what < 55 || several.empty()) {
      events_.collective(random_.pick(any));
    } else if (what < 90) {
      events_.messages(random_.pick(several));
    } else if (what < 95) {
      events_.compute(random_.pick(job_.communicators[static_cast<std::size_t>(any[0])].members));
    } else if (job_.library == Library::kNccl) {
      std::vector<int> chosen = any;
      random_.shuffle(chosen);
      chosen.resize(std::min<std::size_t>(chosen.size(), 3));
      events_.group_over(chosen);
    }
    return true;
  }

  void create(std::size_t index) {
    const Creation creation = creations_[index];
    if (!may_use(creation.parent)) return;
    creations_.erase(creations_.begin() + static_cast<std::ptrdiff_t>(index));
    events_.plain_collective(creation.parent, creation.kind, creation.colors);
    for (const int child : creation.children) usable_[static_cast<std::size_t>(child)] = true;
  }

  void let_ranks_wait() {
    for (std::size_t rank = 0; rank < job_.programs.size(); ++rank) {
      if (alive_[rank] && random_.chance(30)) events_.wait_for_some(static_cast<std::int32_t>(rank), 60);
      if (job_.library == Library::kNccl && alive_[rank] && random_.chance(15)) {
        events_.device_calls(static_cast<std::int32_t>(rank));
      }
    }
  }

  /// Legal, because nothing is done afterwards on a communicator that has such a rank.
  void end_some_ranks() {
    std::vector<std::int32_t> leaving;
    const std::vector<int> comms = communicators_in_use(1);
    if (comms.size() > 1 && random_.chance(50)) {
      leaving = job_.communicators[static_cast<std::size_t>(random_.pick(comms))].members;
    } else {
      leaving.push_back(random_.below(static_cast<std::int32_t>(alive_.size())));
    }
    for (const std::int32_t rank : leaving) end(rank);
  }

  void end(std::int32_t rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (!alive_[index]) return;
    // MPI wants every request completed; elsewhere a program may forget its last handles.
    if (job_.library == Library::kMpi || random_.chance(80)) events_.wait_for_some(rank, 100);
    alive_[index] = false;
    if (random_.chance(20)) job_.programs[index].push_back({.kind = kExit});
  }

  void finish() {
    if (random_.chance(30)) {
      const OpKind kind = job_.library == Library::kMpi ? kFree : kFinalize;
      for (const int comm : communicators_in_use(1)) {
        if (comm != 0) events_.plain_collective(comm, kind);
      }
      if (may_use(0)) events_.plain_collective(0, kFinalize);
    }
    for (std::size_t rank = 0; rank < alive_.size(); ++rank) end(static_cast<std::int32_t>(rank));
  }

  RandomJobOptions options_;
  Random random_;
  JobSketch job_;
  EventWriter events_;
  std::vector<bool> alive_;
  std::vector<bool> usable_;
  std::vector<Creation> creations_;
  bool in_loop_ = false;
};

}  // namespace

JobSketch random_correct_job(std::uint64_t seed, const RandomJobOptions& options) {
  return JobGenerator(seed, options).generate();
}

}  // namespace lockstep::testing
