// See the header.
#include "model/graph_replays.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

struct Graph {
  std::vector<Operation> calls{};
  bool one_stream = true;
  bool launched = false;
};

void capture(Graph& graph, const Operation& operation) {
  if (graph.launched) graph = {};
  graph.one_stream = graph.one_stream && (graph.calls.empty() || graph.calls.front().stream == operation.stream);
  graph.calls.push_back(operation);
}

class Expansion {
 public:
  explicit Expansion(Program& program) : program_(program) {
    for (const Operation& operation : program.operations) last_launch_ = std::max(last_launch_, operation.launch);
  }

  bool run(std::size_t& budget) {
    OperationTable expanded;
    expanded.reserve(program_.operations.size());
    for (const Operation& operation : program_.operations) {
      expanded.push_back(operation);
      const bool communicates = is_collective(operation.kind) || is_point_to_point(operation.kind);
      if (communicates && (operation.flags & kOpCaptured) != 0) capture(graphs_[operation.handle], operation);
      if (operation.kind != OpKind::kGraphLaunch) continue;
      const auto at = graphs_.find(operation.handle);
      if (at == graphs_.end()) continue;
      at->second.launched = true;
      if (at->second.calls.size() > budget) {
        expanded.push_back({.line = operation.line, .kind = OpKind::kOpaque, .flags = kOpGap});
        budget = 0;
        program_.tail_missing = true;
        program_.operations = std::move(expanded);
        return false;
      }
      budget -= at->second.calls.size();
      replay(at->second, operation, expanded);
    }
    program_.operations = std::move(expanded);
    return true;
  }

 private:
  void replay(const Graph& graph, const Operation& launch, OperationTable& out) {
    std::uint32_t captured_launch = 0;
    const std::uint32_t whole = graph.one_stream ? 0 : ++last_launch_;
    for (Operation call : graph.calls) {
      if (!graph.one_stream) {
        call.launch = whole;
      } else if (call.launch != 0) {
        if (call.launch != captured_launch) ++last_launch_;
        captured_launch = call.launch;
        call.launch = last_launch_;
      } else {
        captured_launch = 0;
      }
      call.flags = static_cast<std::uint16_t>((call.flags & ~kOpCaptured) | kOpReplayed | kOpNonblocking);
      call.stream = launch.stream;
      call.handle = {};
      call.state = launch.state;
      call.line = launch.line;
      out.push_back(call);
    }
  }

  Program& program_;
  std::uint32_t last_launch_ = 0;
  std::unordered_map<StringIndex, Graph> graphs_;
};

}  // namespace

bool expand_graph_launches(Program& program, std::size_t& budget) { return Expansion(program).run(budget); }

}  // namespace lockstep
