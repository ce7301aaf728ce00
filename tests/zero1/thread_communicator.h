// Ranks as threads of one process, for tests: the same interface as over MPI, sums always in rank order. Who
// waits in vain gets an exception instead of a hang.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>

#include "numbers.h"
#include "ordered_sum.h"

namespace zero1 {

#define ZERO1_INLINE inline

/// A call that the other members did not match within the time allowed, or another rank's failure.
struct NoPeer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ThreadCommunicator {
 public:
  static constexpr const char* kName = "threads";

  struct Meeting;  ///< what the members of one communicator share

  ThreadCommunicator() = default;

  /// Runs `body` on `ranks` threads and throws what the first failing rank threw, once all have ended.
  static void run(int ranks, const std::function<void(ThreadCommunicator)>& body);

  int rank() const { return rank_; }
  int size() const { return size_; }
  void set_ordered(bool) {}
  ThreadCommunicator split(int color, int key, const char* name) const;
  void all_reduce(void* values, std::size_t count, DType type, Sum op) const;
  void reduce_scatter(void* values, std::size_t each, DType type) const;
  void all_gather(void* values, std::size_t each, DType type) const;
  void broadcast(void* values, std::size_t count, DType type, int root) const;
  void send(const void* values, std::size_t count, DType type, int peer) const;
  void recv(void* values, std::size_t count, DType type, int peer) const;
  void barrier() const;
  /// Collectives that this rank has made on this communicator.
  std::size_t collectives() const;

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace zero1
