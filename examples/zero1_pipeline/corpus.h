// Text as tokens, and which sequence is which: a step and a place in the global batch name a piece of text,
// on every rank alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config.h"

namespace zero1 {

/// What the repository carries: three speeches and sonnets, all in the public domain.
const std::string& default_text();

class Corpus {
 public:
  /// One token for each different byte. Throws ConfigError if the text is shorter than two sequences.
  Corpus(const std::string& text, std::size_t sequence);

  std::size_t words() const { return words_; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

  /// Micro-batch of one replica in one step. Places in the global batch: replica-major, then micro-batch.
  MicroBatch micro_batch(const Config& config, int step, int replica, int number) const;

 private:
  std::vector<std::int32_t> tokens_;
  std::size_t words_ = 0;
  std::size_t sequence_;
};

}  // namespace zero1
