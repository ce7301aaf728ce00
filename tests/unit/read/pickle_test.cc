// Plain data from pickles, and what is refused.
#include "read/pickle.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

using namespace std::string_literals;

/// Keeps the fields "n" of the records.
class Numbers final : public RecordSink {
 public:
  void record(std::span<const PlainValue> fields, const PlainValues& values) override {
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
      if (fields[i].as_text() == "n") seen.push_back(fields[i + 1].as_integer(-1));
      if (fields[i].as_text() == "list") lengths.push_back(values.items(fields[i + 1]).size());
    }
  }
  std::vector<std::int64_t> seen;
  std::vector<std::size_t> lengths;
};

struct Read {
  Numbers sink;
  std::string problem;
  bool truncated = false;
};

Read read(std::string_view bytes) {
  Read result;
  PlainBuilder builder(result.sink);
  if (const auto stop = read_pickle(bytes, builder)) {
    result.problem = stop->problem;
    result.truncated = stop->truncated;
  }
  return result;
}

TEST(Pickle, HandsOutRecordsOneByOne) {
  // {"entries": [{"n": 5}, {"n": 300}], "version": "2.9"} as torch's pickler writes it.
  const Read got = read("\x80\x02}(X\x07\0\0\0entries](}(X\x01\0\0\0nK\x05u}(X\x01\0\0\0nM\x2c\x01ueX\x07\0\0\0versionX\x03\0\0\0""2.9u."s);
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(got.sink.seen, (std::vector<std::int64_t>{5, 300}));
}

TEST(Pickle, SingleItemsAreSetAndAppendedByTheirOwnOpcodes) {
  // As CPython writes {"entries": [{"n": 7}]}: SETITEM and APPEND.
  const Read got = read("\x80\x02}q\0X\x07\0\0\0entriesq\1]q\2}q\3X\x01\0\0\0nq\4K\x07sas."s);
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(got.sink.seen, (std::vector<std::int64_t>{7}));
}

TEST(Pickle, MemosNameWhatWasMadeBefore) {
  // The second record has the list of the first, by its memo; frames and short text of protocol 4.
  const Read got = read("\x80\x04\x95\0\0\0\0\0\0\0\0}(\x8c\x07""entries](}(\x8c\x04""list](K\1K\2e\x94u}(\x8c\x04""listh\0ueu."s);
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(got.sink.lengths, (std::vector<std::size_t>{2, 2}));
}

TEST(Pickle, LongNumbersAreReadUpTo64Bits) {
  const Read got = read("\x80\x02}(X\x07\0\0\0entries](}(X\x01\0\0\0n\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fu}(X\x01\0\0\0n\x8a\x01\xffu}(X\x01\0\0\0n\x8a\x00ueu."s);
  EXPECT_EQ(got.sink.seen, (std::vector<std::int64_t>{9223372036854775807LL, -1, 0}));
}

TEST(Pickle, ATruncatedFileGivesWhatCameBefore) {
  const Read got = read("\x80\x02}(X\x07\0\0\0entries](}(X\x01\0\0\0nK\x05u}(X\x01\0\0\0nM\x2c"s);
  EXPECT_TRUE(got.truncated);
  EXPECT_EQ(got.sink.seen, (std::vector<std::int64_t>{5}));
  EXPECT_NE(got.problem.find("offset 37"), std::string::npos) << got.problem;
}

struct Refusal {
  std::string name, bytes, says;
  friend void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }
};
class PickleRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(PickleRefuses, ByNameAndOffset) {
  const Read got = read(GetParam().bytes);
  EXPECT_FALSE(got.truncated);
  EXPECT_NE(got.problem.find(GetParam().says), std::string::npos) << got.problem;
}

INSTANTIATE_TEST_SUITE_P(Table, PickleRefuses, testing::ValuesIn<Refusal>({
    {"Global", "\x80\x02""cos\nsystem\n(X\x02\0\0\0idtR."s, "GLOBAL at offset 2"},
    {"StackGlobal", "\x80\x04\x8c\x02os\x8c\x06system\x93."s, "STACK_GLOBAL at offset 14"},
    {"Reduce", "\x80\x02NNR."s, "REDUCE at offset 4"},
    {"Build", "\x80\x02}}b."s, "BUILD at offset 4"},
    {"PersistentId", "\x80\x02NQ."s, "BINPERSID at offset 3"},
    {"ProtocolZero", "\x80\x02I5\n."s, "INT at offset 2"},
    {"FutureProtocol", "\x80\x09N."s, "protocol above 5"},
    {"UnknownByte", "\x80\x02\xff."s, "0xff at offset 2"},
    {"MemoNeverMade", "\x80\x02h\x05."s, "memo that was never made"},
    {"FarMemo", "\x80\x02Nr\xff\xff\xff\xff."s, "memo far beyond"},
    {"AppendToNothing", "\x80\x02(e."s, "adds to a list"},
    {"SetOnAList", "\x80\x02](NNu."s, "no dictionary"},
    {"OddFields", "\x80\x02}(Nu."s, "no dictionary"},
    {"PopOfNothing", "\x80\x02""0."s, "empty stack"},
}), [](const auto& test) { return test.param.name; });

TEST(Pickle, DeepNestingIsRefused) {
  const Read got = read("\x80\x02"s + std::string(100'000, '('));
  EXPECT_NE(got.problem.find("nested too deep"), std::string::npos);
}

TEST(Pickle, ALengthBeyondTheFileIsATruncation) {
  EXPECT_TRUE(read("\x80\x02X\xff\xff\xff\xff""abc"s).truncated);
  EXPECT_TRUE(read("\x80\x02\x8b\xff\xff\xff\x7f"s).truncated);
  EXPECT_TRUE(read("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff""abc"s).truncated);
}

}  // namespace
}  // namespace lockstep
