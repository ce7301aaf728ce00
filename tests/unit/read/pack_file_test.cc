#include "read/pack_file.h"

#include <gtest/gtest.h>

#include "pack/pack_writer.h"

namespace lockstep {
namespace {

std::string make_pack(const std::vector<std::pair<std::string, std::string>>& members,
                      pack::FileHeader header = {}) {
  std::string bytes;
  PackWriter writer(header, [&bytes](std::string_view piece) {
    bytes += piece;
    return true;
  });
  for (const auto& [name, content] : members)
    EXPECT_TRUE(writer.add(pack::MemberKind::kTrace, name, content));
  EXPECT_TRUE(writer.finish());
  EXPECT_EQ(writer.bytes_written(), bytes.size());
  return bytes;
}

std::vector<std::pair<std::string, std::string>> three_members() {
  return {{"r/a", "first"}, {"r/b", std::string(100000, 'x')}, {"", ""}};
}

TEST(PackFile, GivesBackWhatWasPacked) {
  const auto members = three_members();
  const std::string bytes = make_pack(members, {.tail = 9, .redacted = pack::kRedactedHosts});
  std::vector<std::pair<std::string, std::string>> seen;
  const auto unpacked = unpack(bytes, "p", [&](const PackMember& member) {
    seen.emplace_back(member.name, member.content);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(member.content.data()) % 64, 0U);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(*(member.content.data() + member.content.size() + i), '\0');
    return true;
  });
  ASSERT_TRUE(unpacked);
  EXPECT_FALSE(unpacked->damage);
  EXPECT_EQ(seen, members);
  EXPECT_EQ(unpacked->redacted, pack::kRedactedHosts);
  EXPECT_EQ(unpacked->tail, 9U);
  EXPECT_TRUE(looks_like_pack(bytes));
}

TEST(PackFile, HasAFrameForEvery32MiB) {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 5; ++i)
    members.emplace_back(std::to_string(i), std::string(20 << 20, static_cast<char>('a' + i)));
  const std::string bytes = make_pack(members);
  std::size_t at = 0;
  int frames = 0;
  while ((at = bytes.find("\x28\xb5\x2f\xfd", at)) != std::string::npos) ++at, ++frames;
  EXPECT_EQ(frames, 5);
  std::size_t seen = 0;
  const auto unpacked = unpack(bytes, "p", [&](const PackMember& member) {
    seen += member.content == members[seen].second ? 1U : 0U;
    return true;
  });
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(seen, 5U);
}

bool ignore(const PackMember&) { return true; }

TEST(PackFileDamage, Truncated) {
  const std::string bytes = make_pack(three_members());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto unpacked = unpack(std::string_view(bytes).substr(0, size), "p", ignore);
    if (size < sizeof(pack::FileHeader)) {
      ASSERT_FALSE(unpacked) << size;
    } else if (size > sizeof(pack::FileHeader)) {
      ASSERT_TRUE(unpacked && unpacked->damage) << size;
      EXPECT_EQ(unpacked->members, 0U) << "a frame counts as a whole";
    }
  }
}

TEST(PackFileDamage, FlippedBits) {
  const std::string bytes = make_pack(three_members());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto unpacked = unpack(flipped, "p", ignore);
      if (at < sizeof(pack::FileHeader)) continue;
      EXPECT_TRUE(unpacked->members == 3 || unpacked->damage) << at << ' ' << bit;
    }
  }
}

TEST(PackFileDamage, KeepsTheFramesBefore) {
  const std::string big(40 << 20, 'a');
  std::string bytes = make_pack({{"a", big}, {"b", big}});
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto unpacked = unpack(bytes, "p", ignore);
  ASSERT_TRUE(unpacked && unpacked->damage);
  EXPECT_EQ(unpacked->members, 1U);
  EXPECT_NE(unpacked->damage->message.find("its checksum is wrong; 1 members before it are whole"),
            std::string::npos)
      << unpacked->damage->message;
}

TEST(PackFileDamage, FutureAndForeign) {
  pack::FileHeader header;
  header.version = 3;
  header.min_reader = 2;
  const auto future = unpack(make_pack({}, header), "p", ignore);
  ASSERT_FALSE(future);
  EXPECT_EQ(future.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(future.error().message, "p: a pack of version 3, for readers from 2 on; this one knows 1");
  EXPECT_EQ(unpack("PK\x03\x04 and so on, more than eight bytes", "p", ignore).error().message,
            "p: not a pack of Lockstep");
  EXPECT_FALSE(looks_like_pack("\x89LSP"));
}

TEST(PackFileDamage, FrameOfSomethingElse) {
  std::string bytes = make_pack({});
  PackWriter writer({}, [&bytes, first = true](std::string_view piece) mutable {
    if (!first) bytes += piece;
    first = false;
    return true;
  });
  ASSERT_TRUE(writer.add(pack::MemberKind::kTrace, "n", "c"));
  ASSERT_TRUE(writer.finish());
  bytes += "trailing words";
  const auto unpacked = unpack(bytes, "p", ignore);
  ASSERT_TRUE(unpacked && unpacked->damage);
  EXPECT_EQ(unpacked->members, 1U);
}

}  // namespace
}  // namespace lockstep
