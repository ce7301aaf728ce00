// Inputs byte by byte: plain and unpacked, damaged, cut, and those that expand beyond reason.
#include "base/byte_source.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents) {
    path_ = (std::filesystem::temp_directory_path() / ("byte_source_" + std::to_string(::getpid()))).string();
    std::ofstream(path_, std::ios::binary) << contents;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(compressBound(text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

Result<std::string> read_all(const std::string& contents, std::size_t piece = 1000) {
  const TemporaryFile file(contents);
  auto source = ByteSource::open(file.path());
  if (!source) return source.error();
  std::string all, part(piece, '\0');
  while (true) {
    const auto got = (*source)->read(part.data(), part.size());
    if (!got) return got.error();
    if (*got == 0) return all;
    all.append(part, 0, *got);
  }
}

const std::string& text() {
  static const std::string lines = [] {
    std::string all;
    for (int i = 0; i < 50'000; ++i) all += "step " + std::to_string(i * 7919 % 100'003) + " loss 2.1\n";
    return all;
  }();
  return lines;
}

TEST(ByteSource, GivesAPlainFileAsItIs) { EXPECT_EQ(*read_all(text()), text()); }

TEST(ByteSource, UnpacksGzipAndZstd) {
  EXPECT_EQ(*read_all(gzip(text())), text());
  EXPECT_EQ(*read_all(zstd(text())), text());
}

TEST(ByteSource, UnpacksOneMemberBehindAnother) {
  EXPECT_EQ(*read_all(gzip("first\n") + gzip(text()) + std::string(512, '\0')), "first\n" + text());
  EXPECT_EQ(*read_all(zstd("first\n") + zstd(text())), "first\n" + text());
}

TEST(ByteSource, GivesAgainWhatWasPeeked) {
  const TemporaryFile file(gzip(text()));
  auto source = ByteSource::open(file.path());
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->compression(), "gzip");
  EXPECT_EQ(*(*source)->peek(6), text().substr(0, 6));
  EXPECT_EQ(*(*source)->peek(100), text().substr(0, 100));
  char part[50];
  EXPECT_EQ(*(*source)->read(part, sizeof part), sizeof part);
  EXPECT_EQ(std::string(part, sizeof part), text().substr(0, sizeof part));
}

TEST(ByteSource, SaysWhereDamageIs) {
  for (const std::string& packed : {gzip(text()), zstd(text())}) {
    std::string damaged = packed;
    for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) damaged[i] = static_cast<char>(~damaged[i]);
    const auto all = read_all(damaged);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, ErrorCode::kMalformed);
    EXPECT_NE(all.error().message.find("byte"), std::string::npos);
  }
}

TEST(ByteSource, SaysThatDataEndTooEarly) {
  for (const std::string& packed : {gzip(text()), zstd(text())}) {
    const auto all = read_all(packed.substr(0, packed.size() / 2));
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().message.find("too early"), std::string::npos) << all.error().message;
  }
}

TEST(ByteSource, GivesWhatStandsBeforeTheDamage) {
  const std::string packed = gzip(text());
  const TemporaryFile file(packed.substr(0, packed.size() / 100));
  auto source = ByteSource::open(file.path());
  ASSERT_TRUE(source);
  const auto head = (*source)->peek(std::size_t{64} << 10);
  ASSERT_TRUE(head);
  ASSERT_FALSE(head->empty());
  std::string all(head->size(), '\0');
  EXPECT_EQ(*(*source)->read(all.data(), all.size()), all.size());
  EXPECT_EQ(all, text().substr(0, all.size()));
  EXPECT_FALSE((*source)->read(all.data(), all.size()));
}

TEST(ByteSource, StopsAtABomb) {
  std::string bomb;
  const std::string zeros(std::size_t{64} << 20, '\0');
  const std::string frame = zstd(zeros);
  for (int i = 0; i < 5; ++i) bomb += frame;
  const auto all = read_all(bomb, std::size_t{1} << 20);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, ErrorCode::kUnsupported);
}

TEST(ByteSource, RefusesADirectory) { EXPECT_FALSE(ByteSource::open(std::filesystem::temp_directory_path().string())); }

}  // namespace
}  // namespace lockstep
