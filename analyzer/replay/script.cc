// Compiles a Job to a Script, program by program, under the rules in replay.h.
#include "replay/script.h"

#include <algorithm>

#include "base/huge_heap.h"
#include "replay/alike_programs.h"
#include "replay/program_compiler.h"
#include "replay/rendezvous.h"
#include "replay/script_writer.h"

namespace lockstep {
namespace {

class ScriptCompiler {
 public:
  ScriptCompiler(const Job& job, const MatchResult& match, const ReplayOptions& options)
      : job_(job),
        match_(match),
        options_(options),
        rules_(job),
        rendezvous_(job, match, options, rules_, script_),
        writer_(job, match, script_),
        alike_(job, rules_, script_),
        compiler_(job, match, options, rules_, rendezvous_.couples(), writer_) {}

  Script run() {
    script_.actors.reserve(job_.programs().size());
    for (std::uint32_t p = 0; p < job_.programs().size(); ++p) {
      if (p > 16) extend_heap_in_huge_pages();
      compile(ProgramIndex{p});
    }
    return std::move(script_);
  }

 private:
  void compile(ProgramIndex program) {
    if (is_plain(match_.traits[to_size(program)])) {
      script_.actors.push_back({.program = program, .is_plain = true});
      return;
    }
    const auto parts = rendezvous_.parts_of(program);
    // A message that is probed for has items of its own.
    const bool compares = match_.probes.empty();
    if (compares && alike_.copy(program, parts)) return;
    if (compares) alike_.begin();
    compiler_.compile(program, parts);
    if (compares) alike_.remember(program, parts);
  }

  bool is_plain(const ProgramTraits& traits) const {
    const bool mpi = rules_.library() == Library::kMpi;
    const bool nccl = rules_.library() == Library::kNccl;
    if (rendezvous_.couples() || traits.waits || traits.batches || traits.captured || traits.outsider ||
        match_.begins_late || !match_.probes.empty() || match_.pairs_apart || rules_.mixed() ||
        (nccl && traits.meets_after)) {
      return false;
    }
    if (mpi) return !traits.nonblocking && !(traits.rooted && options_.model == BlockingModel::kEager);
    return !traits.nonblocking || options_.model == BlockingModel::kBlocking;
  }

  const Job& job_;
  const MatchResult& match_;
  const ReplayOptions& options_;
  const CallRules rules_;
  Script script_;
  Rendezvous rendezvous_;
  ScriptWriter writer_;
  AlikePrograms alike_;
  ProgramCompiler compiler_;
};

}  // namespace

Script compile_script(const Job& job, const MatchResult& match, const ReplayOptions& options) {
  return ScriptCompiler(job, match, options).run();
}

}  // namespace lockstep
