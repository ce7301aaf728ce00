// FORMAT.md's worked example is what the headers say, and the plain reader stops at damage.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "compare_traces.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

using namespace lockstep::trace;

// The three records of section 7, byte by byte as the page has them.
const char* const kExample = R"(
00 10 00 00 00 00 00 00 00 00 2a 36 fe 9c 97 17  01 00 00 00 00 00 00 00 92 10 00 00 00 00 00 00
00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  00 00 00 00 fa 00 00 00 00 00 00 00 01 00 00 00
00 20 00 00 00 00 00 00 00 24 00 00 00 00 00 00  01 00 00 00 00 00 00 00 53 ae 49 9b 51 ab 5d f1
01 00 00 00 00 00 00 00 ff ff ff ff 01 00 00 00  02 00 01 00 01 00 00 00 00 00 00 00 01 00 00 00
00 30 00 00 00 00 00 00 00 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00 25 3f 3d 0b 8a c7 78 04
01 00 00 00 01 00 00 00 01 00 00 00 02 00 00 00  02 00 00 00 02 00 00 00 00 00 00 00 01 00 00 00)";

TEST(Format, TheWorkedExampleIsWhatTheHeadersSay) {
  std::istringstream words(kExample);
  std::vector<unsigned char> bytes;
  for (std::string word; words >> word;)
    bytes.push_back(static_cast<unsigned char>(std::stoi(word, nullptr, 16)));
  ASSERT_EQ(bytes.size(), 3U * kRecordBytes);
  BlockRecord block;
  CallRecord reduce;
  CallRecord broadcast;
  std::memcpy(&block, bytes.data(), sizeof block);
  std::memcpy(&reduce, bytes.data() + 64, sizeof reduce);
  std::memcpy(&broadcast, bytes.data() + 128, sizeof broadcast);
  EXPECT_EQ(block.number, 1U);
  EXPECT_EQ(block.thread, 4242U);
  EXPECT_EQ(block.anchor_unix_ns, 1'700'000'000'000'000'000U);
  const std::uint64_t type = text_hash("MPI_DOUBLE", 10);
  const std::uint64_t sum = text_hash("MPI_SUM", 7);
  EXPECT_EQ(type, 0x198F'7B37'AB07'6FA9U);
  EXPECT_EQ(sum, 0x4DBC'CC2F'2349'E507U);
  EXPECT_EQ(signature(0x1, 1, type, sum), 0xAFB8'55A7'2F2E'1C20U);
  EXPECT_EQ(signature(0x2'0000'0002, 2, type, 0), 0x920A'036A'AD03'EDF2U);
  EXPECT_EQ(reduce.detail, advance(0, signature(0x1, 1, type, sum), 1));
  EXPECT_EQ(broadcast.detail, advance(reduce.detail, signature(0x2'0000'0002, 2, type, 0), 2));
  EXPECT_EQ(mix(mix(0, 1) ^ 1, 2), 0xCEF4'0CD0'ED43'CD3BU);
}

TEST(Format, ThePageHoldsTheExample) {
  std::ifstream file(std::string(SHIM_SOURCE_DIR) + "/../schemas/FORMAT.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream lines(kExample);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    EXPECT_NE(page.find(line.substr(0, 47)), std::string::npos) << line;
    EXPECT_NE(page.find(line.substr(49)), std::string::npos) << line;
  }
}

TEST(Format, ATraceOfVersion1CanBeRead) {
  std::vector<ReadTrace> traces;
  for (const char* rank : {"0", "1"}) {
    traces.push_back(read_trace(std::string(SHIM_TEST_DIR) + "/traces/v1/zero1_hang.rank" + rank + ".lst"));
    EXPECT_EQ(traces.back().header.version, 1U);
    EXPECT_EQ(traces.back().problems, std::vector<std::string>{});
  }
  EXPECT_EQ(traces[0].calls.size(), 19U);
  EXPECT_EQ(traces[1].calls.size(), 20U);
  EXPECT_EQ(stuck_calls(traces), "0:all_reduce 1:recv");
  EXPECT_EQ(first_differences(traces), "comm3#3 all_reduce|-; comm5#0 -|broadcast");
}

class DamagedTrace : public testing::Test {
 protected:
  void SetUp() override {
    HostOptions options;
    options.env = recorded_into(directory_.path());
    options.env.emplace_back("LOCKSTEP_RING", "64K");
    run_host({SHIM_HOST, "plain"}, options);
    const auto paths = find_traces(directory_.path());
    ASSERT_EQ(paths.size(), 1U);
    std::ifstream file(paths[0], std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    bytes_.resize(content.size());
    std::memcpy(bytes_.data(), content.data(), content.size());
  }
  TemporaryDirectory directory_;
  std::vector<std::byte> bytes_;
};

TEST_F(DamagedTrace, IsNotMistakenForAWholeOne) {
  EXPECT_TRUE(parse_trace(bytes_).problems.empty());
  auto cut = bytes_;
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(parse_trace(cut).problems.empty());
  auto foreign = bytes_;
  foreign[0] = std::byte{0};
  EXPECT_FALSE(parse_trace(foreign).problems.empty());
  auto future = bytes_;
  future[12] = std::byte{9};
  EXPECT_FALSE(parse_trace(future).problems.empty());
}

TEST_F(DamagedTrace, HoldsNothingOfARecordThatWasNotCommitted) {
  const ReadTrace whole = parse_trace(bytes_);
  ASSERT_EQ(whole.calls.size(), 3U);  // init, all_reduce, finalize
  auto torn = bytes_;
  const std::uint64_t last = whole.header.ring_offset + 3 * kRecordBytes;
  std::memset(torn.data() + last + offsetof(CallRecord, commit), 0, 4);
  const ReadTrace rest = parse_trace(torn);
  EXPECT_EQ(rest.calls.size(), 2U);
  EXPECT_TRUE(rest.problems.empty());
}

}  // namespace
}  // namespace lockstep::shim_test
