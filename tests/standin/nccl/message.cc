// One side of a message. The k-th send to a rank meets the k-th receive from there. In rendezvous mode both sides must have come
// to it before data moves; an eager send leaves its data in a slot and goes on.
#include <algorithm>
#include <cstring>

#include "nccl/config.h"
#include "nccl/reduce.h"
#include "nccl/report.h"
#include "nccl/steps.h"

namespace lockstep::standin {
namespace {

class MessageSteps : public Steps {
 public:
  explicit MessageSteps(const Call& call)
      : call_(call),
        comm_(*call.comm),
        segment_(*comm_.segment),
        sends_(call.kind == OpKind::kSend),
        from_(sends_ ? comm_.rank : call.peer),
        to_(sends_ ? call.peer : comm_.rank),
        channel_(segment_.channel(from_, to_)),
        bytes_(call.count * datatype_bytes(call.datatype)) {
    const auto peer = static_cast<std::size_t>(call.peer);
    number_ = sends_ ? comm_.sends[peer]++ : comm_.receives[peer]++;
  }

  Progress advance() override {
    if (stuck_) return Progress::kNone;
    return sends_ ? advance_send() : advance_receive();
  }

  std::string describe() const override {
    const std::string what = sends_ ? "send to rank " + std::to_string(to_) : "recv from rank " + std::to_string(from_);
    return "rank " + std::to_string(comm_.rank) + " in " + what + ", message #" + std::to_string(number_) + " on " +
           communicator_text(comm_);
  }

 private:
  std::size_t eager_slot() const { return number_ % kEagerSlots; }

  Progress advance_send() {
    if (channel_.sends_done < number_) return Progress::kNone;
    if (config().eager && bytes_ <= config().eager_bytes) {
      if (channel_.eager_number[eager_slot()] != 0) return Progress::kNone;  // as many under way as there is room for
      if (bytes_ > 0) std::memcpy(segment_.eager(from_, to_, eager_slot()), call_.send, bytes_);
      channel_.eager_number[eager_slot()] = number_ + 1;
      channel_.eager_bytes[eager_slot()] = bytes_;
      channel_.sends_open = channel_.sends_done = number_ + 1;
      return Progress::kDone;
    }
    if (channel_.sends_open == number_) {
      if (channel_.receives_done < number_) return Progress::kNone;
      channel_.sends_open = number_ + 1;
      channel_.send_bytes = bytes_;
      channel_.written = channel_.read = 0;
      return Progress::kSome;
    }
    if (channel_.receives_open <= number_) return Progress::kNone;
    if (differs(bytes_, channel_.receive_bytes)) return Progress::kSome;
    const std::uint64_t all = std::min(bytes_, channel_.receive_bytes);
    if (channel_.written < all) {
      const std::uint64_t room = kFifoBytes - (channel_.written - channel_.read);
      if (room == 0) return Progress::kNone;
      move(true, std::min(room, all - channel_.written));
      return Progress::kSome;
    }
    if (channel_.read < all) return Progress::kNone;
    channel_.sends_done = number_ + 1;
    return Progress::kDone;
  }

  Progress advance_receive() {
    if (channel_.receives_done < number_) return Progress::kNone;
    if (channel_.receives_open == number_) {
      channel_.receives_open = number_ + 1;
      channel_.receive_bytes = bytes_;
      return Progress::kSome;
    }
    if (channel_.eager_number[eager_slot()] == number_ + 1) {
      const std::uint64_t sent = channel_.eager_bytes[eager_slot()];
      if (differs(sent, bytes_)) return Progress::kSome;
      if (const std::uint64_t all = std::min(sent, bytes_); all > 0)
        std::memcpy(call_.receive, segment_.eager(from_, to_, eager_slot()), all);
      channel_.eager_number[eager_slot()] = 0;
      channel_.receives_done = number_ + 1;
      return Progress::kDone;
    }
    if (channel_.sends_open <= number_) return Progress::kNone;
    if (differs(channel_.send_bytes, bytes_)) return Progress::kSome;
    const std::uint64_t all = std::min(channel_.send_bytes, bytes_);
    if (channel_.read < all) {
      if (channel_.written == channel_.read) return Progress::kNone;
      move(false, channel_.written - channel_.read);
      return Progress::kSome;
    }
    if (channel_.sends_done <= number_) return Progress::kNone;  // the sender still reads `read`
    channel_.receives_done = number_ + 1;
    return Progress::kDone;
  }

  /// Between the fifo, which is written and read round and round, and the user's memory.
  void move(bool in, std::uint64_t bytes) {
    std::uint64_t& counter = in ? channel_.written : channel_.read;
    std::byte* fifo = segment_.fifo(from_, to_);
    for (std::uint64_t moved = 0; moved < bytes;) {
      const std::uint64_t at = counter % kFifoBytes;
      const std::uint64_t part = std::min(bytes - moved, kFifoBytes - at);
      if (in)
        std::memcpy(fifo + at, static_cast<const std::byte*>(call_.send) + counter, part);
      else
        std::memcpy(static_cast<std::byte*>(call_.receive) + counter, fifo + at, part);
      counter += part;
      moved += part;
    }
  }

  bool differs(std::uint64_t sent, std::uint64_t received) {
    if (sent == received || config().on_mismatch == OnMismatch::kCorrupt) return false;
    stuck_ = true;
    segment_.unlock();
    report_message_mismatch(comm_, from_, to_, number_, sent, received);
    segment_.lock();
    return true;
  }

  Call call_;
  ncclComm& comm_;
  const Segment& segment_;
  bool sends_;
  int from_;
  int to_;
  Channel& channel_;
  std::uint64_t bytes_;
  std::uint64_t number_ = 0;
  bool stuck_ = false;
};

}  // namespace

std::unique_ptr<Steps> message_steps(const Call& call) { return std::make_unique<MessageSteps>(call); }

}  // namespace lockstep::standin
