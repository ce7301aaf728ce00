// Everything that a run is told, in one place. All ranks must be told the same: check_arguments sees to it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layer.h"

namespace zero1 {

/// A fault that every rank sees alike, so every rank ends: bad sizes, arguments that differ between ranks.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Norm { kPerGroup, kFused, kAgreedGroups };
enum class Reduce { kAllReduce, kReduceScatter };
enum class Precision { kF64, kF32, kMixed };

struct Config {
  ModelShape model;

  int pipe = 2;
  int data = 1;
  static constexpr int tensor =
      1;  ///< the model-parallel group spans pipe x tensor; a tensor-parallel layer would go here
  std::string partition = "type:embed";

  int micro_batches = 4;
  int micro_batch_size = 2;  ///< sequences in each, on each replica
  int steps = 50;

  Norm norm = Norm::kFused;
  Reduce reduce = Reduce::kAllReduce;
  Precision precision = Precision::kF32;
  bool ordered = false;  ///< sums in rank order, so that equal runs have equal bits

  double rate = 0.003;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 1.0;  ///< of the global gradient norm; 0 = none

  double loss_scale =
      0;  ///< 0 = dynamic from 2^16 in mixed precision, 1 in the others; above 0 = dynamic from there
  int scale_window = 100;  ///< steps without overflow until the scale doubles

  std::uint64_t seed = 1;
  int nan_step = -1;  ///< a NaN is put into a gradient of `nan_rank` in this step, to see what becomes of it
  int nan_rank = 0;

  int ranks() const { return pipe * data * tensor; }
  int global_batch() const { return data * micro_batches * micro_batch_size; }
};

const char* name_of(Norm norm);
const char* name_of(Reduce reduce);
const char* name_of(Precision precision);

/// Throws ConfigError for what cannot run, whatever the number of ranks started.
void check_sizes(const Config& config);

/// Option names and values as text, for comparing ranks and for the head of a log. Same names in the same
/// order everywhere.
std::vector<std::pair<std::string, std::string>> described(const Config& config);

}  // namespace zero1
