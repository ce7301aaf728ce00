#include "compare_traces.h"

#include <algorithm>
#include <map>

namespace lockstep::shim_test {
namespace {

struct Members {
  std::string name{};
  std::int32_t nranks = 0;
  std::map<std::int32_t, std::vector<const ReadCall*>> calls{};  // by rank of the communicator
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
          calls.push_back(&call);
        }
      }
    }
  }
  std::string result;
  for (const std::uint64_t identity : order) {
    const Members& members = communicators[identity];
    std::size_t longest = 0;
    for (const auto& [rank, calls] : members.calls) longest = std::max(longest, calls.size());
    for (std::size_t position = 0; position < longest; ++position) {
      std::string kinds;
      std::uint64_t fingerprint = 0;
      bool differs = false;
      for (std::int32_t rank = 0; rank < members.nranks; ++rank) {
        const auto found = members.calls.find(rank);
        const bool there = found != members.calls.end() && position < found->second.size();
        const ReadCall* call = there ? found->second[position] : nullptr;
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
