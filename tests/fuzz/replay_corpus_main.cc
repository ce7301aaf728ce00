// Runs a fuzz target without a fuzzer: every file of a corpus, then so many mutations of them, the same in every run.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Generator = std::mt19937;  // its numbers are fixed by the standard; those of the distributions are not

std::size_t below(Generator& generator, std::size_t limit) { return limit == 0 ? 0 : generator() % limit; }

/// One change of the kinds that files suffer: cut, bytes lost, doubled, zeroed, changed, or another file's part inside.
void mutate(std::string& text, const std::vector<std::string>& corpus, Generator& generator) {
  constexpr std::string_view kTelling = "{}[]\",:;|@=%\n\\0-9eE.\0\xff";
  const std::size_t at = below(generator, text.size());
  const std::size_t length = below(generator, std::min<std::size_t>(text.size() - at, 64) + 1);
  switch (generator() % 7) {
    case 0:
      text.resize(at);
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(at, length));
      break;
    case 3:
      std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
      break;
    case 4:
      if (at < text.size()) text[at] = kTelling[below(generator, kTelling.size())];
      break;
    case 5:
      if (at < text.size()) text[at] = static_cast<char>(generator() & 0xff);
      break;
    case 6: {
      const std::string& other = corpus[below(generator, corpus.size())];
      const std::size_t from = below(generator, other.size());
      text.insert(at, other.substr(from, below(generator, 200)));
      break;
    }
  }
}

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  unsigned iterations = 0;
  if (argc != 3 || std::from_chars(argv[2], argv[2] + std::string_view(argv[2]).size(), iterations).ec != std::errc{}) {
    std::fprintf(stderr, "usage: %s CORPUS_DIR MUTATIONS\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(argv[1], error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  if (error || paths.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", argv[1]);
    return 2;
  }
  std::ranges::sort(paths);
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(corpus.back());
  }
  Generator generator(20240229);
  for (unsigned i = 0; i < iterations; ++i) {
    std::string text = corpus[below(generator, corpus.size())];
    for (unsigned changes = 1 + generator() % 4; changes > 0; --changes) mutate(text, corpus, generator);
    run(text);
  }
  std::printf("%zu files and %u mutations\n", corpus.size(), iterations);
  return 0;
}
