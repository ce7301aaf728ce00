// The requests of one process that are open at a point of its program: which operation each belongs to, and its handle.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/job_builder.h"

namespace lockstep {

/// Handles are taken from a pool: a program of millions of requests needs no more of them than are open at once.
class TraceRequests {
 public:
  struct Open {
    std::uint32_t operation = 0;
    StringIndex handle{};
  };

  explicit TraceRequests(JobBuilder& builder) : builder_(builder) {}

  StringIndex open(std::uint64_t request, std::uint32_t operation);
  /// Nothing for one that is not open: null, not recorded, or complete before.
  std::optional<Open> find(std::uint64_t request) const;
  /// The handle may be given to another request from now on.
  void close(std::uint64_t request);
  void forget_all();

 private:
  JobBuilder& builder_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::vector<StringIndex> free_;
  std::size_t made_ = 0;
};

}  // namespace lockstep
