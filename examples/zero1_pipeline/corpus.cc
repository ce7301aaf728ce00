#include "corpus.h"

#include <array>
#include <random>

#include "first_values.h"

namespace zero1 {

Corpus::Corpus(const std::string& text, std::size_t sequence) : sequence_(sequence) {
  std::array<std::int32_t, 256> number{};
  for (const char c : text) number[static_cast<unsigned char>(c)] = 1;
  for (std::int32_t& entry : number) entry = entry == 0 ? -1 : static_cast<std::int32_t>(words_++);
  for (const char c : text) tokens_.push_back(number[static_cast<unsigned char>(c)]);
  if (tokens_.size() < 2 * sequence + 2)
    throw ConfigError("the text has " + std::to_string(text.size()) +
                      " bytes: fewer than two sequences of --sequence " + std::to_string(sequence));
}

MicroBatch Corpus::micro_batch(const Config& config, int step, int replica, int number) const {
  const auto size = static_cast<std::size_t>(config.micro_batch_size);
  MicroBatch batch{Array<std::int32_t>(size * sequence_), Array<std::int32_t>(size * sequence_)};
  for (std::size_t j = 0; j < size; ++j) {
    const std::size_t place = (static_cast<std::size_t>(replica * config.micro_batches + number)) * size + j;
    std::mt19937_64 random(seed_of(std::to_string(step) + "/" + std::to_string(place), config.seed));
    const std::size_t first = random() % (tokens_.size() - sequence_ - 1);
    for (std::size_t t = 0; t < sequence_; ++t) {
      batch.tokens[j * sequence_ + t] = tokens_[first + t];
      batch.targets[j * sequence_ + t] = tokens_[first + t + 1];
    }
  }
  return batch;
}

}  // namespace zero1
