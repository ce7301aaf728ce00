// Scripts that are copied from a program that is alike, against the same programs compiled one by one.
#include "replay/alike_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "match/match.h"
#include "replay/program_compiler.h"
#include "support/fault.h"
#include "support/random_job.h"
#include "support/random_nccl_job.h"
#include "support/sketch.h"

namespace lockstep::testing {
namespace {

constexpr BlockingModel kModels[] = {BlockingModel::kLazy, BlockingModel::kEager, BlockingModel::kBlocking,
                                     BlockingModel::kCoupled};

struct Compiled {
  Script script{};
  int copied = 0;
};

/// Every program by way of the compiler, whether it could be plain or not.
Compiled compile_all(const Job& job, const MatchResult& match, BlockingModel model, bool copies) {
  Compiled compiled;
  const ReplayOptions options{.model = model};
  const CallRules rules(job);
  Rendezvous rendezvous(job, match, options, rules, compiled.script);
  ScriptWriter writer(job, match, compiled.script);
  AlikePrograms alike(job, rules, compiled.script);
  ProgramCompiler compiler(job, match, options, rules, rendezvous.couples(), writer);
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    const auto parts = rendezvous.parts_of(ProgramIndex{p});
    if (copies && alike.copy(ProgramIndex{p}, parts)) {
      ++compiled.copied;
      continue;
    }
    alike.begin();
    compiler.compile(ProgramIndex{p}, parts);
    alike.remember(ProgramIndex{p}, parts);
  }
  return compiled;
}

/// What a script says, whatever the order of actors and the names of internal gates: of each program, its actors, with
/// an internal gate told by all that is done at it.
std::map<std::uint32_t, std::vector<std::string>> meaning(const Script& script) {
  std::map<std::uint32_t, std::vector<std::string>> users;  // of internal gates
  const auto step = [](const ScriptItem& item) {
    return std::to_string(item.operation) + (item.arrives() ? "a" : "") + (item.waits() ? "w" : "");
  };
  for (const Actor& actor : script.actors) {
    for (const ScriptItem& item : actor.items) {
      if (item.gate() >= script.rendezvous_count) users[item.gate()].push_back(step(item));
    }
  }
  for (auto& [gate, steps] : users) {
    steps.push_back("of " + std::to_string(script.missing[gate]));
    std::ranges::sort(steps);
  }
  std::map<std::uint32_t, std::vector<std::string>> programs;
  for (std::size_t a = 0; a < script.actors.size(); ++a) {
    std::string text;
    for (const ScriptItem& item : script.actors[a].items) {
      text += step(item) + "@";
      if (item.gate() < script.rendezvous_count) {
        text += std::to_string(item.gate());
      } else {
        for (const std::string& user : users[item.gate()]) text += "(" + user + ")";
      }
      text += " ";
    }
    for (const Script::HostWait& wait : script.host_waits) {
      if (wait.actor != a) continue;
      text += "host wait " + std::to_string(wait.first) + "-" + std::to_string(wait.end) + " " +
              std::to_string(wait.operation);
    }
    programs[static_cast<std::uint32_t>(script.actors[a].program)].push_back(std::move(text));
  }
  for (auto& [program, actors] : programs) std::ranges::sort(actors);
  return programs;
}

/// The job and copies of it, on ranks and communicators of their own.
JobSketch replicas(const JobSketch& job, int times) {
  JobSketch all = job;
  const auto ranks = static_cast<std::int32_t>(job.programs.size());
  const auto communicators = static_cast<int>(job.communicators.size());
  for (int copy = 1; copy < times; ++copy) {
    for (SketchComm communicator : job.communicators) {
      communicator.name += "." + std::to_string(copy);
      for (std::int32_t& rank : communicator.members) rank += copy * ranks;
      all.communicators.push_back(std::move(communicator));
    }
    for (std::vector<SketchOp> program : job.programs) {
      for (SketchOp& op : program) {
        if (op.comm >= 0) op.comm += copy * communicators;
        if (op.peer >= 0) op.peer += copy * ranks;
      }
      all.programs.push_back(std::move(program));
    }
    all.ends.insert(all.ends.end(), job.ends.begin(), job.ends.end());
  }
  return all;
}

void expect_copies_to_be_what_is_compiled(const JobSketch& sketch, int& copied) {
  const Job job = build_job(sketch);
  const MatchResult matched = match(job);
  if (!matched.probes.empty()) return;  // then nothing is copied
  for (const BlockingModel model : kModels) {
    const Compiled with = compile_all(job, matched, model, true);
    const Compiled without = compile_all(job, matched, model, false);
    copied += with.copied;
    EXPECT_EQ(with.script.missing.size(), without.script.missing.size());
    EXPECT_EQ(meaning(with.script), meaning(without.script)) << blocking_model_name(model) << "\n"
                                                             << to_job_json(sketch);
  }
}

TEST(AlikePrograms, AreCopiedAsTheyWouldBeCompiled) {
  int copied = 0;
  for (std::uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    const RandomJobOptions small{.max_ranks = 6, .max_communicators = 4, .max_events = 20};
    for (const JobSketch& job : {random_correct_job(seed, small), random_nccl_job(seed)}) {
      JobSketch sketch = replicas(job, 3);
      expect_copies_to_be_what_is_compiled(sketch, copied);
      Random random(seed);
      for (int fault = 0; fault < 3; ++fault) static_cast<void>(inject_fault(sketch, random));
      expect_copies_to_be_what_is_compiled(sketch, copied);
    }
  }
  EXPECT_GT(copied, 1000);
}

/// Two ranks with two messages each; which partners and communicators they name is the test's.
struct Messages {
  int comm = 0;
  std::int32_t peer = 0;
};

int copied_of(const std::vector<std::vector<Messages>>& programs) {
  JobSketch sketch{.library = Library::kTorch};
  for (const char* name : {"a", "b", "c"})
    sketch.communicators.push_back({.name = name, .members = {0, 1, 2, 3, 4, 5, 6, 7}});
  for (const auto& messages : programs) {
    auto& program = sketch.programs.emplace_back();
    for (const Messages& message : messages) {
      program.push_back({.kind = OpKind::kIsend, .comm = message.comm, .peer = message.peer, .handle = "h"});
    }
    program.push_back({.kind = OpKind::kWait, .handle = "h"});
  }
  sketch.programs.resize(8);
  sketch.ends.resize(8);
  const Job job = build_job(sketch);
  return compile_all(job, match(job), BlockingModel::kLazy, true).copied;
}

TEST(AlikePrograms, NamePartnersAndCommunicatorsOneToOne) {
  constexpr int kSilent = 5;  // the ranks without calls are alike, but for the first of them
  EXPECT_EQ(copied_of({{{0, 4}, {0, 5}}, {{0, 6}, {0, 7}}}), kSilent + 1);
  EXPECT_EQ(copied_of({{{0, 4}, {1, 5}}, {{2, 6}, {1, 7}}}), kSilent + 1);
  EXPECT_EQ(copied_of({{{0, 4}, {0, 5}}, {{0, 6}, {0, 6}}}), kSilent) << "two partners against one";
  EXPECT_EQ(copied_of({{{0, 4}, {0, 4}}, {{0, 6}, {0, 7}}}), kSilent) << "one partner against two";
  EXPECT_EQ(copied_of({{{0, 4}, {1, 4}}, {{0, 6}, {0, 6}}}), kSilent) << "two communicators against one";
  EXPECT_EQ(copied_of({{{0, 4}, {0, 4}}, {{0, 6}, {1, 6}}}), kSilent) << "one communicator against two";
}

}  // namespace
}  // namespace lockstep::testing
