// It learns: on the text in the repository the loss falls below what the best table of letter pairs would
// have.
#include <gtest/gtest.h>

#include <numeric>

#include "pipeline_run.h"

namespace zero1 {
namespace {

/// Mean loss per token of the text itself under its own frequencies of pairs: no bigram model does better on
/// it.
double bigram_loss(const Corpus& corpus) {
  const std::vector<std::int32_t>& tokens = corpus.tokens();
  std::vector<double> pairs(corpus.words() * corpus.words());
  std::vector<double> firsts(corpus.words());
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const auto first = static_cast<std::size_t>(tokens[i]);
    pairs[first * corpus.words() + static_cast<std::size_t>(tokens[i + 1])] += 1;
    firsts[first] += 1;
  }
  double loss = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] > 0) loss -= pairs[i] * std::log(pairs[i] / firsts[i / corpus.words()]);
  }
  return loss / static_cast<double>(tokens.size() - 1);
}

TEST(Learning, FallsBelowTheBestTableOfLetterPairs) {
  Config config;
  config.model = {0, 32, 4, 2, 16};
  config.partition = "type:embed";
  config.micro_batches = 2;
  config.micro_batch_size = 8;
  config.steps = 450;
  config.rate = 0.008;
  const Corpus corpus(default_text(), config.model.sequence);
  config.model.words = corpus.words();
  const Trained run = train_in_threads<F32>(config, corpus);
  const double last = std::accumulate(run.losses.end() - 50, run.losses.end(), 0.0) / 50;
  RecordProperty("loss", std::to_string(last));
  RecordProperty("bigram", std::to_string(bigram_loss(corpus)));
  EXPECT_GT(run.losses.front(), bigram_loss(corpus) + 1);
  EXPECT_LT(last, bigram_loss(corpus));
}

}  // namespace
}  // namespace zero1
