// Traces that are damaged, foreign, of a later version, or change while they are read.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "read/trace_tables.h"
#include "unit/read/read_back.h"

namespace lockstep {
namespace {

std::string whole() {
  TraceSample trace = sample(0, 1);
  for (int i = 0; i < 100; ++i) trace.add(kSum);
  trace.finish();
  return trace.bytes();
}

template <class Change>
std::string with_header(Change change) {
  std::string bytes = whole();
  trace::FileHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  change(header);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof header);
  return bytes;
}

TEST(DamagedTrace, BadMagic) {
  EXPECT_FALSE(looks_like_trace("\x89LSX\r\n\x1a\n and so on"));
  EXPECT_FALSE(looks_like_trace(std::string(4096, '\0')));
  EXPECT_TRUE(looks_like_trace(whole()));
}

TEST(DamagedTrace, FutureVersionIsNamed) {
  const ReadBack read = read_back({with_header([](auto& header) { header.version = 9, header.min_reader = 7; })});
  EXPECT_NE(read.error.find("format version 9 and needs a reader of version 7"), std::string::npos) << read.error;
}

TEST(DamagedTrace, LaterVersionThatOldReadersUnderstandIsRead) {
  const ReadBack read = read_back({with_header([](auto& header) { header.version = 9; })});
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(program_of(read.job, 0).operations.size(), 101U);
}

TEST(DamagedTrace, SectionsBeyondTheFile) {
  for (const std::string& bytes : {with_header([](auto& header) { header.ring_offset = ~0ULL; }),
                                   with_header([](auto& header) { header.side_bytes = 1ULL << 60; }),
                                   with_header([](auto& header) { header.comm_entry_count = 0xffff'ffff; }),
                                   with_header([](auto& header) { header.block_count = 0xffff'ffff; }),
                                   with_header([](auto& header) { header.block_bytes = 1; }),
                                   with_header([](auto& header) { header.record_bytes = 32; })}) {
    EXPECT_NE(read_back({bytes}).error, "");
  }
}

TEST(DamagedTrace, TruncatedTailKeepsWholeBlocks) {
  const std::string bytes = whole();
  const ReadBack read = read_back({bytes.substr(0, bytes.size() - 3 * 4096)});
  const Program& program = program_of(read.job, 0);
  EXPECT_EQ(program.operations.size(), 63U);
  EXPECT_TRUE(program.tail_missing);
  EXPECT_TRUE(has_warning(read.job, "is cut"));
  EXPECT_NE(read.report.verdict, Verdict::kConsistent);
}

TEST(DamagedTrace, TruncatedAnywhereIsNeverAccused) {
  const std::string bytes = whole();
  for (std::size_t size = 0; size < bytes.size(); size += 997) {
    const ReadBack read = read_back({bytes.substr(0, size)});
    EXPECT_TRUE(read.report.verdict == Verdict::kInsufficient) << size;
  }
}

TEST(DamagedTrace, UncommittedRecordEndsTheBlock) {
  std::string bytes = whole();
  trace::FileHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  const std::size_t tenth = header.ring_offset + 10 * trace::kRecordBytes;
  bytes[tenth + 60] = 0;
  // The block before the last is broken off: what follows in the next one is out of step, and history starts there.
  const ReadBack read = read_back({bytes});
  EXPECT_TRUE(program_of(read.job, 0).head_missing);
  EXPECT_TRUE(has_warning(read.job, "are missing"));
}

TEST(DamagedTrace, EveryFlippedByteIsSurvived) {
  TraceSample trace = sample(0, 2);
  for (int i = 0; i < 20; ++i) trace.add(kSum);
  trace.add_opaque("MPI_Start");
  const std::string good = trace.bytes();
  const std::size_t ring = good.size() - 4 * 4096;
  for (std::size_t at = 0; at < good.size(); at += at < 256 || at >= ring ? 1 : 7) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
    if (at >= ring + 4096) break;
    read_back({bytes});
  }
}

/// Rank 1's file is cut by another thread at a random instant of the reading. Whatever that hits, what comes of it is a Job that
/// says so or one of the whole file, and accuses nobody.
TEST(DamagedTrace, ShortenedWhileItIsRead) {
  const TempDir dir;
  std::vector<std::string> paths;
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace({.rank = rank, .ranks = 2, .blocks = 200, .block_bytes = 32768});
    for (int i = 0; i < 100'000; ++i) trace.add(kSum);
    trace.finish();
    files.push_back(trace.bytes());
    paths.push_back(dir.write("rank" + std::to_string(rank) + ".lst", files.back()));
  }
  std::minstd_rand random(7);
  for (int round = 0; round < 20; ++round) {
    dir.write("rank1.lst", files[1]);
    const auto wait = std::chrono::microseconds(random() % 8'000);
    const std::size_t half = files[1].size() / 2;  // it stays a trace
    const auto size = static_cast<off_t>(half + random() % half);
    std::jthread other([&] {
      std::this_thread::sleep_for(wait);
      EXPECT_EQ(::truncate(paths[1].c_str(), size), 0);
    });
    const bool first = round % 4 == 0;
    if (first) other.join();
    const Result<Job> job = load_job(std::vector<std::string>{dir.path()});
    ASSERT_TRUE(job) << job.error().message;
    const Report report = diagnose(*job);
    EXPECT_TRUE(report.verdict == Verdict::kConsistent || report.verdict == Verdict::kInsufficient) << report.summary;
    EXPECT_TRUE(!job->quality().complete || job->operation_count() == 200'002U);
    EXPECT_FALSE(first && job->quality().complete);
  }
}

}  // namespace
}  // namespace lockstep
