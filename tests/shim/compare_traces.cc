#include "compare_traces.h"

#include <algorithm>
#include <map>

namespace lockstep::shim_test {
namespace {

struct Members {
  std::string name{};
  std::int32_t nranks = 0;
  // By rank of the communicator, then by position.
  std::map<std::int32_t, std::map<std::uint32_t, const ReadCall*>> calls{};
};

}  // namespace

std::string first_differences(const std::vector<ReadTrace>& traces) {
  std::vector<std::uint64_t> order;
  std::map<std::uint64_t, Members> communicators;
  for (const ReadTrace& trace : traces) {
    for (const auto& [id, comm] : trace.comms) {
      if (comm.record.nranks < 2) continue;
      Members& members = communicators[comm.record.identity];
      if (members.nranks == 0) {
        order.push_back(comm.record.identity);
        members.name = comm.name.empty() ? "comm" + std::to_string(id) : comm.name;
        members.nranks = comm.record.nranks;
      }
      auto& calls = members.calls[comm.record.rank];
      for (const ReadCall& call : trace.calls) {
        if (call.record.comm == id && is_collective(call.kind()) && call.record.seq != trace::kNoPosition) {
          calls[call.record.seq] = &call;
        }
      }
    }
  }
  std::string result;
  for (const std::uint64_t identity : order) {
    const Members& members = communicators[identity];
    // A ring that wrapped has lost the first positions: the comparison begins where all are there.
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    for (const auto& [rank, calls] : members.calls) {
      if (calls.empty()) continue;
      first = std::max(first, calls.begin()->first);
      end = std::max(end, calls.rbegin()->first + 1);
    }
    for (std::uint32_t position = first; position < end; ++position) {
      std::string kinds;
      std::uint64_t fingerprint = 0;
      bool differs = false;
      for (std::int32_t rank = 0; rank < members.nranks; ++rank) {
        const auto found = members.calls.find(rank);
        const ReadCall* call = nullptr;
        if (found != members.calls.end()) {
          const auto at = found->second.find(position);
          if (at != found->second.end()) call = at->second;
        }
        if (rank > 0) kinds += '|';
        kinds += call != nullptr ? std::string(op_name(call->kind())) : "-";
        differs = differs || call == nullptr || (rank > 0 && call->record.detail != fingerprint);
        if (call != nullptr && rank == 0) fingerprint = call->record.detail;
      }
      if (!differs) continue;
      if (!result.empty()) result += "; ";
      result += members.name + "#" + std::to_string(position) + " " + kinds;
      break;
    }
  }
  return result;
}

std::string stuck_calls(const std::vector<ReadTrace>& traces) {
  std::string result;
  for (const ReadTrace& trace : traces) {
    for (const ReadCall& call : trace.calls) {
      if (call.returned()) continue;
      if (!result.empty()) result += ' ';
      result += std::to_string(trace.header.job_rank) + ":" + std::string(op_name(call.kind()));
    }
  }
  return result;
}

std::vector<ReadTrace> read_traces(const std::string& directory) {
  std::vector<ReadTrace> traces;
  for (const std::string& path : find_traces(directory)) traces.push_back(read_trace(path));
  return traces;
}

}  // namespace lockstep::shim_test
