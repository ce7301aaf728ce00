// Job JSON carries every random job, correct or not, without loss: the reader yields what the builder was
// given.
#include <gtest/gtest.h>

#include "support/evidence.h"
#include "support/job_text.h"
#include "support/random_job.h"

namespace lockstep::testing {
namespace {

/// What the analysis may look at, spelled out; interned numbers differ between the two ways.
std::string spell(const Job& job, const Operation& op) {
  std::string text(op_name(op.kind));
  if (op.comm != kNoComm) text += " " + job.communicator(op.comm).name;
  text +=
      " #" + std::to_string(op.seq) + " peer " + std::to_string(op.peer) + " tag " + std::to_string(op.tag);
  text += " " + job.count_text(op.count) + (op.count.is_symbol() ? " (symbol)" : "");
  for (const std::string_view word : {job.datatype(op.datatype), job.redop(op.redop), job.text(op.stream),
                                      job.text(op.handle), job.text(op.payload)}) {
    text += " '" + std::string(word) + "'";
  }
  text += " launch " + std::to_string(op.launch) + " flags " + std::to_string(op.flags) + " state " +
          std::to_string(static_cast<int>(op.state));
  text += " color '" + job.extra(op).color + "' counts";
  for (const std::uint64_t count : job.extra(op).counts) text += " " + std::to_string(count);
  for (const Frame& frame : job.site(op.site).frames) {
    text += " at " + frame.file + ":" + std::to_string(frame.line) + ":" + frame.function;
  }
  return text;
}

void expect_same(const Job& built, const Job& read) {
  ASSERT_EQ(built.library(), read.library());
  ASSERT_EQ(built.programs().size(), read.programs().size());
  for (std::size_t p = 0; p < built.programs().size(); ++p) {
    const auto& expected = built.programs()[p];
    const auto& found = read.programs()[p];
    EXPECT_EQ(expected.end, found.end) << "rank " << p;
    ASSERT_EQ(expected.operations.size(), found.operations.size()) << "rank " << p;
    for (std::size_t i = 0; i < expected.operations.size(); ++i) {
      ASSERT_EQ(spell(built, expected.operations[i]), spell(read, found.operations[i]))
          << "rank " << p << ", call " << i;
    }
  }
}

TEST(RandomJobJson, ReadsBackWhatWasBuilt) {
  for (std::uint64_t seed = 0; seed < 200 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobSketch plan = random_correct_job(seed);
    expect_same(build_job(plan), job_from_json(to_job_json(plan)));
    Random random(seed);
    const JobSketch snapshot = live_snapshot(plan, random);
    expect_same(build_job(snapshot), job_from_json(to_job_json(snapshot)));
  }
}

TEST(MakeJob, TakesLinesOfTheGrammar) {
  const Job job = make_job({{"mp", {0, 1}}}, {{"all_reduce mp f32[1]", "batch[send 1; recv 1]"}, {}},
                           {{1, "killed 9"}}, "nccl");
  EXPECT_EQ(job.library(), Library::kNccl);
  ASSERT_EQ(job.programs().size(), 2U);
  EXPECT_EQ(job.programs()[0].operations.size(), 3U);
  EXPECT_EQ(job.programs()[1].end, (ProgramEnd{.kind = EndKind::kKilled, .status = 9}));
  EXPECT_THROW(make_job({{"mp", {0, 1}}}, {{"al_reduce mp"}, {}}), std::invalid_argument);
}

}  // namespace
}  // namespace lockstep::testing
