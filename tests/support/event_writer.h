// Writes single events of a correct job into the programs of the ranks that take part; random_job.cc chooses
// them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/random.h"
#include "support/sketch.h"

namespace lockstep::testing {

/// After each function, all ranks can complete their part under every blocking model if they could everything
/// before.
class EventWriter {
 public:
  EventWriter(Random& random, JobSketch& job);

  void collective(int comm);
  /// A call without arguments that all members make: init, barrier, split, finalize; `colors` by member, may
  /// be empty.
  void plain_collective(int comm, OpKind kind, const std::vector<std::string>& colors = {});
  void compute(std::int32_t rank);

  /// Any legal form of passing messages between members of `comm` (at least two).
  void messages(int comm);
  /// NCCL: one bracketed group per rank with calls on several communicators, perhaps with a message among
  /// them.
  void group_over(const std::vector<int>& comms);

  /// NCCL: waits of the host for a stream or the device, events, and streams that wait for them.
  void device_calls(std::int32_t rank);

  /// Waits for some of the handles that are still out on `rank`, or for all.
  void wait_for_some(std::int32_t rank, int percent);

 private:
  struct Edge {
    std::int32_t from;
    std::int32_t to;
  };

  const std::vector<std::int32_t>& members(int comm) const;
  void append(std::int32_t rank, const SketchOp& op);
  SketchOp random_collective(int comm);
  SketchOp for_member(const SketchOp& collective, std::int32_t rank);
  SketchOp random_message(int comm);
  std::string free_handle(std::int32_t rank);
  std::string random_stream();
  std::string random_function();
  std::string random_count();
  std::uint32_t next_launch(std::int32_t rank);

  // Forms of messages, random_messages.cc.
  void message(const SketchOp& what, Edge edge);
  void safe_ring(int comm);
  void batch(int comm);
  void batch_of(int comm, const std::vector<Edge>& edges, bool bracketed);
  void send_receive_ring(int comm);
  void posted_first(int comm);
  void crossed_tags(int comm);
  void probed(int comm);
  std::vector<Edge> random_edges(int comm);
  Edge random_edge(int comm);

  Random& random_;
  JobSketch& job_;
  std::map<std::int32_t, std::vector<std::string>> out_;   // handles not waited for yet
  std::map<std::int32_t, std::vector<std::string>> free_;  // handles that may be used again
  std::map<std::int32_t, int> handles_;
  std::map<std::int32_t, std::uint32_t> launches_;
};

}  // namespace lockstep::testing
