// A collective: every rank says what it calls, and when all agree, the data goes round in chunks. In each round every rank writes a
// piece of what it sends where all can see it, and takes from the others' pieces what it receives.
#include <algorithm>
#include <cstring>

#include "nccl/config.h"
#include "nccl/reduce.h"
#include "nccl/report.h"
#include "nccl/steps.h"

namespace lockstep::standin {
namespace {

using namespace nccl;

class CollectiveSteps : public Steps {
 public:
  explicit CollectiveSteps(const Call& call)
      : call_(call), comm_(*call.comm), segment_(*comm_.segment), element_(datatype_bytes(call.datatype)) {
    ranks_ = static_cast<std::size_t>(comm_.ranks);
    me_ = static_cast<std::size_t>(comm_.rank);
  }

  Progress advance() override {
    switch (phase_) {
      case Phase::kBegin:
        begin();
        return Progress::kSome;
      case Phase::kMeet:
        if (fewest(&Slot::arrived) < position_ + 1) return Progress::kNone;
        return meet();
      case Phase::kStage:
        stage();
        return Progress::kSome;
      case Phase::kConsume:
        if (fewest(&Slot::staged) < comm_.chunks + 1) return Progress::kNone;
        consume();
        return Progress::kSome;
      case Phase::kLeave:
        if (fewest(&Slot::consumed) < comm_.chunks + 1) return Progress::kNone;
        ++comm_.chunks;
        phase_ = ++round_ < rounds_ ? Phase::kStage : Phase::kStuck;
        if (phase_ == Phase::kStage) return Progress::kSome;
        return finish();
      case Phase::kStuck:
        return Progress::kNone;
    }
    return Progress::kNone;
  }

  std::string describe() const override {
    std::string text = "rank " + std::to_string(comm_.rank) + " in " + text_of(signature()) + ", collective #" +
                       std::to_string(position_) + " on " + communicator_text(comm_);
    std::vector<int> missing;
    for (int rank = 0; rank < comm_.ranks; ++rank)
      if (segment_.slot(rank).arrived < position_ + 1) missing.push_back(rank);
    return text + (missing.empty() ? ", where the ranks differ" : ", without " + ranks_text(missing));
  }

 private:
  enum class Phase { kBegin, kMeet, kStage, kConsume, kLeave, kStuck };

  std::uint64_t fewest(std::uint64_t Slot::* counter) const {
    std::uint64_t least = segment_.slot(0).*counter;
    for (int rank = 1; rank < comm_.ranks; ++rank) least = std::min(least, segment_.slot(rank).*counter);
    return least;
  }

  std::uint64_t send_bytes() const {
    const std::uint64_t bytes = call_.count * element_;
    const bool root = call_.peer == comm_.rank;
    switch (call_.kind) {
      case OpKind::kReduceScatter:
      case OpKind::kAllToAll:
        return bytes * ranks_;
      case OpKind::kBroadcast:
        return root ? bytes : 0;
      case OpKind::kScatter:
        return root ? bytes * ranks_ : 0;
      default:
        return bytes;
    }
  }

  Signature signature() const {
    return {static_cast<std::int32_t>(call_.kind), call_.datatype, call_.scalar.empty() ? call_.redop : kFirstUserRedop,
            has_root(call_.kind) ? call_.peer : -1, call_.count, send_bytes()};
  }

  void begin() {
    position_ = comm_.position++;
    Slot& slot = segment_.slot(comm_.rank);
    slot.signature = signature();
    slot.arrived = position_ + 1;
    phase_ = Phase::kMeet;
  }

  /// Without a reduction only bytes are moved: other types of the same size do what they would.
  static bool agree(const Signature& a, const Signature& b) {
    if (a.kind != b.kind || a.root != b.root) return false;
    if (has_reduction(static_cast<OpKind>(a.kind)))
      return a.count == b.count && a.datatype == b.datatype && a.redop == b.redop;
    return a.count * datatype_bytes(a.datatype) == b.count * datatype_bytes(b.datatype);
  }

  Progress meet() {
    std::vector<Signature> by_rank;
    for (int rank = 0; rank < comm_.ranks; ++rank) by_rank.push_back(segment_.slot(rank).signature);
    bool all_agree = true;
    std::uint64_t most = 0;
    sent_.clear();
    for (const Signature& other : by_rank) {
      all_agree = all_agree && agree(other, by_rank[0]);
      sent_.push_back(other.send_bytes);
      most = std::max(most, other.send_bytes);
    }
    if (!all_agree && config().on_mismatch != OnMismatch::kCorrupt) {
      phase_ = Phase::kStuck;
      segment_.unlock();
      report_collective_mismatch(comm_, position_, by_rank);
      segment_.lock();
      return Progress::kSome;
    }
    rounds_ = std::max<std::uint64_t>(1, (most + kChunkBytes - 1) / kChunkBytes);
    phase_ = Phase::kStage;
    return Progress::kSome;
  }

  void stage() {
    const std::uint64_t from = round_ * kChunkBytes;
    const std::uint64_t all = sent_[me_];
    if (from < all) {
      const std::uint64_t bytes = std::min<std::uint64_t>(kChunkBytes, all - from);
      std::byte* chunk = segment_.chunk(comm_.rank);
      std::memcpy(chunk, static_cast<const std::byte*>(call_.send) + from, bytes);
      if (!call_.scalar.empty()) {
        scale(chunk, bytes / element_, call_.datatype, call_.scalar.data());
      } else if (has_reduction(call_.kind) && call_.redop == ncclAvg && is_floating(call_.datatype)) {
        double scalar = 0;
        reciprocal(&scalar, call_.datatype, comm_.ranks);
        scale(chunk, bytes / element_, call_.datatype, &scalar);
      }
    }
    ++segment_.slot(comm_.rank).staged;
    phase_ = Phase::kConsume;
  }

  /// Bytes [begin, end) of what a rank sends that lie in this round's piece of it.
  struct Part {
    const std::byte* data = nullptr;
    std::uint64_t offset = 0;  ///< of the first of them, from `begin`
    std::uint64_t bytes = 0;
  };
  Part part_of(std::size_t rank, std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t piece = round_ * kChunkBytes;
    const std::uint64_t from = std::max(begin, piece);
    const std::uint64_t to = std::min({end, piece + kChunkBytes, sent_[rank]});
    if (from >= to) return {};
    return {segment_.chunk(static_cast<int>(rank)) + (from - piece), from - begin, to - from};
  }

  void copy(std::size_t rank, std::uint64_t begin, std::uint64_t bytes, std::uint64_t to) const {
    const Part part = part_of(rank, begin, begin + bytes);
    if (part.bytes > 0) std::memcpy(static_cast<std::byte*>(call_.receive) + to + part.offset, part.data, part.bytes);
  }

  void reduce(std::uint64_t begin, std::uint64_t bytes) const {
    const Part first = part_of(0, begin, begin + bytes);
    if (first.bytes == 0) return;
    auto* to = static_cast<std::byte*>(call_.receive) + first.offset;
    std::memcpy(to, first.data, first.bytes);
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      const Part part = part_of(rank, begin, begin + bytes);
      combine(to, part.data, std::min(part.bytes, first.bytes) / element_, call_.datatype, call_.scalar.empty() ? call_.redop : ncclSum);
    }
    if (call_.scalar.empty() && call_.redop == ncclAvg) divide(to, first.bytes / element_, call_.datatype, comm_.ranks);
  }

  void consume() {
    const std::uint64_t bytes = call_.count * element_;
    const bool root = call_.peer == comm_.rank;
    const auto peer = static_cast<std::size_t>(std::max(call_.peer, 0));
    switch (call_.kind) {
      case OpKind::kAllReduce:
        reduce(0, bytes);
        break;
      case OpKind::kReduce:
        if (root) reduce(0, bytes);
        break;
      case OpKind::kReduceScatter:
        reduce(me_ * bytes, bytes);
        break;
      case OpKind::kBroadcast:
        copy(peer, 0, bytes, 0);
        break;
      case OpKind::kScatter:
        copy(peer, me_ * bytes, bytes, 0);
        break;
      case OpKind::kAllGather:
      case OpKind::kGather:
        for (std::size_t rank = 0; rank < ranks_ && (root || call_.kind == OpKind::kAllGather); ++rank)
          copy(rank, 0, bytes, rank * bytes);
        break;
      case OpKind::kAllToAll:
        for (std::size_t rank = 0; rank < ranks_; ++rank) copy(rank, me_ * bytes, bytes, rank * bytes);
        break;
      default:
        break;
    }
    ++segment_.slot(comm_.rank).consumed;
    phase_ = Phase::kLeave;
  }

  Progress finish() { return Progress::kDone; }

  Call call_;
  ncclComm& comm_;
  const Segment& segment_;
  std::uint64_t element_ = 1;
  std::size_t ranks_ = 0;
  std::size_t me_ = 0;
  Phase phase_ = Phase::kBegin;
  std::uint64_t position_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t rounds_ = 0;
  std::vector<std::uint64_t> sent_{};
};

}  // namespace

std::unique_ptr<Steps> collective_steps(const Call& call) { return std::make_unique<CollectiveSteps>(call); }

}  // namespace lockstep::standin
