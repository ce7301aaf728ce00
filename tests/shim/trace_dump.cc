// trace_dump PATH...: prints traces (files, or all under directories) as text, for tests and for looking.
// Exit 1 if one breaks FORMAT.md.
#include <cstdio>
#include <filesystem>

#include "read_trace.h"

using namespace lockstep;
using namespace lockstep::shim_test;

namespace {

void print(const std::string& path, const ReadTrace& trace) {
  const trace::FileHeader& h = trace.header;
  std::printf("file %s\n", path.c_str());
  std::printf(
      "rank %d of %d  program %s  run %s  launcher %s  end %u status %d finalized %u aborted %u(%d) state %x "
      "dropped %llu\n",
      h.job_rank, h.job_ranks, trace.program.c_str(), trace.run.c_str(), trace.launcher.c_str(),
      static_cast<unsigned>(h.end), h.exit_status, h.finalized, h.aborted, h.abort_code, h.state,
      static_cast<unsigned long long>(h.records_dropped));
  std::printf("library %s\n", trace.library.substr(0, trace.library.find('\n')).c_str());
  for (const auto& note : trace.notes) std::printf("note %s\n", note.c_str());
  for (const auto& [id, comm] : trace.comms) {
    std::printf("comm %u identity %016llx creation %u rank %d of %d parent %u by %s %s [", id,
                static_cast<unsigned long long>(comm.record.identity), comm.record.creation, comm.record.rank,
                comm.record.nranks, comm.record.parent,
                std::string(op_name(static_cast<OpKind>(comm.record.kind))).c_str(), comm.name.c_str());
    for (std::size_t i = 0; i < comm.members.size() && i < 32; ++i)
      std::printf(i == 0 ? "%d" : ",%d", comm.members[i]);
    std::printf("]");
    if (const auto entry = trace.entries.find(id); entry != trace.entries.end()) {
      const auto& now = entry->second.now[entry->second.now[0].calls > entry->second.now[1].calls ? 0 : 1];
      std::printf(" calls %llu fingerprint %016llx flags %x", static_cast<unsigned long long>(now.calls),
                  static_cast<unsigned long long>(now.fingerprint), entry->second.flags);
    }
    if (const auto end = trace.comm_ends.find(id); end != trace.comm_ends.end()) {
      std::printf(" ended calls %llu fingerprint %016llx", static_cast<unsigned long long>(end->second.calls),
                  static_cast<unsigned long long>(end->second.fingerprint));
    }
    std::printf("\n");
  }
  std::printf("blocks %llu-%llu%s\n", static_cast<unsigned long long>(trace.first_block),
              static_cast<unsigned long long>(trace.last_block), trace.gap_in_blocks ? " with gaps" : "");
  for (const ReadCall& call : trace.calls) {
    std::printf("call %u %s\n", call.thread_index, describe(trace, call).c_str());
  }
  for (const auto& problem : trace.problems) std::printf("PROBLEM %s\n", problem.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  bool sound = true;
  for (int i = 1; i < argc; ++i) {
    const std::vector<std::string> paths =
        std::filesystem::is_directory(argv[i]) ? find_traces(argv[i]) : std::vector<std::string>{argv[i]};
    for (const std::string& path : paths) {
      const ReadTrace trace = read_trace(path);
      print(path, trace);
      sound = sound && trace.problems.empty();
    }
  }
  return sound ? 0 : 1;
}
