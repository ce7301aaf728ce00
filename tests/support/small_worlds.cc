// Alphabets and the odometer over all words; see the header.
#include "support/small_worlds.h"

#include <algorithm>

namespace lockstep::testing {
namespace {

using enum OpKind;

class LetterMaker {
 public:
  LetterMaker(const std::vector<SketchComm>& communicators, std::int32_t rank)
      : communicators_(communicators), rank_(rank) {}

  bool is_member(int comm) const { return std::ranges::find(members(comm), rank_) != members(comm).end(); }
  const std::vector<std::int32_t>& members(int comm) const {
    return communicators_[static_cast<std::size_t>(comm)].members;
  }

  void add(const SketchOp& op) {
    if (op.comm < 0 || is_member(op.comm)) letters_.push_back({op});
  }
  void all_reduce(int comm, const std::string& handle = "", const std::string& count = "1") {
    add({.kind = kAllReduce,
         .comm = comm,
         .datatype = "f32",
         .count = count,
         .redop = "sum",
         .handle = handle});
  }
  void rooted(OpKind kind, int comm, std::size_t root) {
    add({.kind = kind,
         .comm = comm,
         .peer = members(comm)[root],
         .datatype = "f32",
         .count = "1",
         .redop = kind == kReduce ? "sum" : ""});
  }
  void wait(const std::string& handle) { add({.kind = kWait, .handle = handle}); }
  void stream(int comm, const std::string& name = "s") {
    add({.kind = kAllReduce, .comm = comm, .datatype = "f32", .count = "1", .redop = "sum", .stream = name});
  }

  template <class Each>
  void for_each_partner(int comm, Each each) {
    if (!is_member(comm)) return;
    for (const std::int32_t partner : members(comm)) {
      if (partner != rank_) each(partner);
    }
  }
  SketchOp message(OpKind kind, int comm, std::int32_t partner, const std::string& handle = "") const {
    return {.kind = kind, .comm = comm, .peer = partner, .datatype = "f32", .count = "1", .handle = handle};
  }
  void plain_messages(int comm) {
    for_each_partner(comm, [&](std::int32_t partner) {
      add(message(kSend, comm, partner));
      add(message(kRecv, comm, partner));
    });
  }
  void immediate_messages(int comm) {
    for_each_partner(comm, [&](std::int32_t partner) {
      add(message(kIsend, comm, partner, "h"));
      add(message(kIrecv, comm, partner, "h"));
    });
  }
  void batches(int comm) {
    for_each_partner(comm, [&](std::int32_t partner) {
      letters_.push_back({message(kSend, comm, partner), message(kRecv, comm, partner)});
    });
    // With two partners: from the one, to the other.
    for_each_partner(comm, [&](std::int32_t from) {
      for_each_partner(comm, [&](std::int32_t to) {
        if (from < to) letters_.push_back({message(kRecv, comm, from), message(kSend, comm, to)});
      });
    });
  }

  void tagged_messages(int comm) {
    for_each_partner(comm, [&](std::int32_t partner) {
      for (const std::uint32_t tag : {1U, 2U}) {
        for (const OpKind kind : {kSend, kRecv, kIsend}) {
          SketchOp op = message(kind, comm, partner, kind == kIsend ? "h" : "");
          op.tag = tag;
          add(op);
        }
      }
      add({.kind = kProbe, .comm = comm, .peer = partner, .tag = 1});
    });
  }
  /// Both communicators in one launch, in either order; one collective and a message.
  void groups() {
    const SketchOp on_first{.kind = kAllReduce, .comm = 0, .datatype = "f32", .count = "1", .redop = "sum"};
    SketchOp on_second = on_first;
    on_second.comm = 1;
    on_second.stream = "s";
    if (is_member(0) && is_member(1)) {
      letters_.push_back({on_first, on_second});
      letters_.push_back({on_second, on_first});
    }
    for_each_partner(0, [&](std::int32_t partner) {
      letters_.push_back({on_first, message(rank_ < partner ? kSend : kRecv, 0, partner)});
    });
  }

  /// Collectives of one communicator in groups: of other sizes, of other types, of no elements.
  void sorted_groups() {
    const auto call = [](const char* type, const char* count) {
      return SketchOp{.kind = kAllReduce, .comm = 0, .datatype = type, .count = count, .redop = "sum"};
    };
    const SketchOp large = call("f32", "1000");
    const SketchOp small = call("f32", "4");
    const SketchOp other = call("i32", "4");
    const SketchOp near = call("f32", "1001");
    for (const SketchOp& op : {large, small, other}) add(op);
    add(call("f32", "0"));
    letters_.push_back({large, small});
    letters_.push_back({small, large});
    letters_.push_back({small, other});
    letters_.push_back({other, small});
    letters_.push_back({large, near});
    letters_.push_back({near, large});
  }

  std::vector<Letter> take() { return std::move(letters_); }

 private:
  const std::vector<SketchComm>& communicators_;
  std::int32_t rank_;
  std::vector<Letter> letters_;
};

std::vector<Letter> letters_of(Alphabet alphabet, const std::vector<SketchComm>& communicators,
                               std::int32_t rank) {
  LetterMaker make(communicators, rank);
  switch (alphabet) {
    case Alphabet::kOrder:
      make.all_reduce(0);
      make.all_reduce(1);
      make.all_reduce(0, "h");
      make.all_reduce(1, "h");
      make.stream(0);
      make.wait("h");
      break;
    case Alphabet::kArguments:
      make.all_reduce(0);
      make.all_reduce(0, "", "2");
      make.add({.kind = kAllReduce, .comm = 0, .datatype = "i32", .count = "1", .redop = "sum"});
      make.add({.kind = kAllReduce, .comm = 0, .datatype = "f32", .count = "1", .redop = "max"});
      make.rooted(kBroadcast, 0, 0);
      make.rooted(kBroadcast, 0, 1);
      make.rooted(kReduce, 0, 1);
      make.add({.kind = kAllToAllV, .comm = 0, .datatype = "f32", .count = std::to_string(rank)});
      make.add({.kind = kBarrier, .comm = 0});
      break;
    case Alphabet::kMessages:
      make.plain_messages(0);
      make.immediate_messages(0);
      make.batches(0);
      make.wait("h");
      break;
    case Alphabet::kMixed:
      make.all_reduce(0);
      make.all_reduce(1);
      make.all_reduce(0, "g");
      make.rooted(kBroadcast, 0, 0);
      make.plain_messages(0);
      make.plain_messages(1);
      make.immediate_messages(0);
      make.batches(0);
      make.wait("g");
      make.wait("h");
      break;
    case Alphabet::kTags:
      make.tagged_messages(0);
      make.wait("h");
      break;
    case Alphabet::kGroups:
      make.all_reduce(0);
      make.all_reduce(1);
      make.stream(1);
      make.groups();
      make.plain_messages(0);
      break;
    case Alphabet::kStreams:
      make.stream(0);
      make.stream(1);
      make.stream(1, "t");
      make.add({.kind = kStreamSync, .stream = "s"});
      make.add({.kind = kDeviceSync});
      make.add({.kind = kEventRecord, .stream = "s", .handle = "e"});
      make.add({.kind = kEventSync, .handle = "e"});
      make.add({.kind = kStreamWait, .stream = "t", .handle = "e"});
      break;
    case Alphabet::kMeetings:
      make.stream(0);
      make.stream(0, "t");
      make.stream(1);
      make.all_reduce(0, "", "0");
      make.add({.kind = kSplit, .comm = 0, .color = "0"});
      make.add({.kind = kDeviceSync});
      break;
    case Alphabet::kSorted:
      make.sorted_groups();
      break;
    case Alphabet::kMini:
      make.all_reduce(0);
      make.rooted(kBroadcast, 1, 0);
      make.plain_messages(0);
      break;
  }
  return make.take();
}

/// Appends a letter; a batch gets a launch number that the program has not used.
void append(std::vector<SketchOp>& program, const Letter& letter) {
  const std::uint32_t launch = letter.size() > 1 ? static_cast<std::uint32_t>(program.size() + 1) : 0;
  for (SketchOp op : letter) {
    op.launch = launch;
    program.push_back(op);
  }
}

class Enumerator {
 public:
  Enumerator(const SmallWorld& world, Library library, const std::function<void(const JobSketch&)>& visit)
      : world_(world), visit_(visit) {
    job_.library = library;
    job_.communicators = world.communicators;
    job_.programs.resize(world.letters.size());
    job_.ends.assign(world.letters.size(), {.kind = EndKind::kExited});
  }

  std::size_t run() {
    extend(0, 0, 0);
    return visited_;
  }

 private:
  /// Every way to go on from here: end this rank's program, or add any letter to it.
  void extend(std::size_t rank, std::size_t letters_in_rank, std::size_t letters_in_job) {
    if (rank == job_.programs.size()) {
      ++visited_;
      visit_(job_);
      return;
    }
    extend(rank + 1, 0, letters_in_job);
    if (letters_in_rank == world_.max_per_rank || letters_in_job == world_.max_in_job) return;
    for (const Letter& letter : world_.letters[rank]) {
      const std::size_t size = job_.programs[rank].size();
      append(job_.programs[rank], letter);
      extend(rank, letters_in_rank + 1, letters_in_job + 1);
      job_.programs[rank].resize(size);
    }
  }

  const SmallWorld& world_;
  const std::function<void(const JobSketch&)>& visit_;
  JobSketch job_;
  std::size_t visited_ = 0;
};

}  // namespace

bool makes_sense(Alphabet alphabet, Library library) {
  if (alphabet == Alphabet::kTags) return library == Library::kMpi;
  if (alphabet == Alphabet::kStreams || alphabet == Alphabet::kSorted || alphabet == Alphabet::kMeetings) return library == Library::kNccl;
  return alphabet != Alphabet::kGroups || library != Library::kMpi;
}

SmallWorld small_world(Shape shape, Alphabet alphabet, std::size_t max_per_rank, std::size_t max_in_job) {
  static const char* const kAlphabets[] = {"order", "arguments", "messages", "mixed",
                                           "tags",  "groups",    "mini", "streams", "meetings", "sorted"};
  static const char* const kShapes[] = {"pair", "chain", "nested"};
  SmallWorld world{.max_per_rank = max_per_rank, .max_in_job = max_in_job};
  world.name = std::string(kShapes[static_cast<int>(shape)]) + " " + kAlphabets[static_cast<int>(alphabet)] +
               ", <= " + std::to_string(max_per_rank) + " calls a rank, <= " + std::to_string(max_in_job) +
               " in all";
  std::int32_t ranks = 3;
  switch (shape) {
    case Shape::kPair:
      world.communicators = {{"a", {0, 1}}, {"b", {0, 1}}};
      ranks = 2;
      break;
    case Shape::kChain:
      world.communicators = {{"a", {0, 1}}, {"b", {1, 2}}};
      break;
    case Shape::kNested:
      world.communicators = {{"a", {0, 1, 2}}, {"b", {0, 1}}};
      break;
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    world.letters.push_back(letters_of(alphabet, world.communicators, rank));
  }
  return world;
}

std::size_t for_each_job(const SmallWorld& world, Library library,
                         const std::function<void(const JobSketch&)>& visit) {
  return Enumerator(world, library, visit).run();
}

}  // namespace lockstep::testing
