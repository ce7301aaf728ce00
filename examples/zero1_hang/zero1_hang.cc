// The calls around one optimizer step of a ZeRO-1 pipeline engine, over MPI: with the gradient norm reduced
// once per optimizer group, and the layers cut so that the last stage owns nothing but the tied embedding,
// the job hangs. See README.md.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace zero1 {

constexpr int kTimeoutStatus = 75;
constexpr int kMicroBatches = 2;
constexpr int kActivations = 256;  // micro-batch 2 x sequence 8 x hidden 16
constexpr int kEmbedding = 512;    // vocabulary 32 x hidden 16
constexpr int kDecay = 6144;       // matrices of a stage's transformer blocks
constexpr int kNoDecay = 576;      // biases and layer norms of the same

struct Options {
  int pipe = 2;
  int data = 1;
  int steps = 2;
  int timeout_s = 10;
  bool fused = false;
  bool embed = true;  // the layers are cut before the tied output embedding
};

/// Parameters that one optimizer group of this rank updates, and their gradients.
struct ParamGroup {
  std::vector<float> weights;
  std::vector<float> grads;
};

struct Engine {
  Options options;
  int rank = 0;
  int stage = 0;
  int replica = 0;
  MPI_Comm model = MPI_COMM_NULL;  // all stages of one replica: what the framework calls the model group
  MPI_Comm dp = MPI_COMM_NULL;     // all replicas of one stage
  MPI_Comm pipe = MPI_COMM_NULL;   // the stages of one replica, once more
  MPI_Comm tied = MPI_COMM_NULL;   // first and last stage of one replica
  std::vector<ParamGroup> groups;
  std::vector<float> activations = std::vector<float>(kActivations);
  float loss = 0;

  bool first() const { return stage == 0; }
  bool last() const { return stage == options.pipe - 1; }
  int rank_of_stage(int other) const { return other * options.data + replica; }
};

// ---- forward and backward: one message per micro-batch and direction

[[gnu::noinline]] void _exec_send_activations(Engine& engine) {
  MPI_Send(engine.activations.data(), kActivations, MPI_FLOAT, engine.rank_of_stage(engine.stage + 1), 0,
           MPI_COMM_WORLD);
}

[[gnu::noinline]] void _exec_recv_activations(Engine& engine) {
  MPI_Recv(engine.activations.data(), kActivations, MPI_FLOAT, engine.rank_of_stage(engine.stage - 1), 0,
           MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

[[gnu::noinline]] void _exec_send_grads(Engine& engine) {
  MPI_Send(engine.activations.data(), kActivations, MPI_FLOAT, engine.rank_of_stage(engine.stage - 1), 1,
           MPI_COMM_WORLD);
}

[[gnu::noinline]] void _exec_recv_grads(Engine& engine) {
  MPI_Recv(engine.activations.data(), kActivations, MPI_FLOAT, engine.rank_of_stage(engine.stage + 1), 1,
           MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void _exec_forward_pass(Engine& engine) {
  if (!engine.first()) _exec_recv_activations(engine);
  for (float& value : engine.activations)
    value = std::tanh(value + 0.01F * static_cast<float>(engine.stage + 1));
  if (engine.last()) engine.loss += engine.activations[0] * engine.activations[0];
  if (!engine.last()) _exec_send_activations(engine);
}

void _exec_backward_pass(Engine& engine) {
  if (!engine.last()) _exec_recv_grads(engine);
  float scale = 0.001F * (engine.activations[1] + 1.0F);
  for (ParamGroup& group : engine.groups) {
    for (std::size_t i = 0; i < group.grads.size(); ++i) group.grads[i] += scale * group.weights[i];
    scale *= 0.5F;
  }
  if (!engine.first()) _exec_send_grads(engine);
}

// ---- reductions of gradients

[[gnu::noinline]] void allreduce_tied_weight_gradients(Engine& engine) {
  if (engine.tied == MPI_COMM_NULL) return;
  MPI_Allreduce(MPI_IN_PLACE, engine.groups[0].grads.data(), kEmbedding, MPI_FLOAT, MPI_SUM, engine.tied);
}

[[gnu::noinline]] void allreduce_bucket(Engine& engine) {
  std::vector<float> bucket;
  for (const ParamGroup& group : engine.groups)
    bucket.insert(bucket.end(), group.grads.begin(), group.grads.end());
  MPI_Allreduce(MPI_IN_PLACE, bucket.data(), static_cast<int>(bucket.size()), MPI_FLOAT, MPI_SUM, engine.dp);
  const float* from = bucket.data();
  for (ParamGroup& group : engine.groups) {
    for (float& grad : group.grads) grad = *from++ / static_cast<float>(engine.options.data);
  }
}

// ---- the optimizer step

// Inlined, so that a look at the call's address also shows who asked.
[[gnu::always_inline]] inline void _model_parallel_all_reduce(Engine& engine, void* value, MPI_Datatype type,
                                                              MPI_Op op) {
  MPI_Allreduce(MPI_IN_PLACE, value, 1, type, op, engine.model);
}

[[gnu::noinline]] bool has_overflow(Engine& engine) {
  std::uint8_t overflow = 0;
  for (const ParamGroup& group : engine.groups) {
    for (const float grad : group.grads) {
      if (!std::isfinite(grad)) overflow = 1;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &overflow, 1, MPI_UINT8_T, MPI_MAX, engine.dp);
  _model_parallel_all_reduce(engine, &overflow, MPI_UINT8_T, MPI_MAX);
  return overflow != 0;
}

float squared_norm(const ParamGroup& group) {
  float sum = 0;
  for (const float grad : group.grads) sum += grad * grad;
  return sum;
}

/// Squared norm of the gradients of `groups` over all replicas and all stages: two reductions, whatever
/// `groups` holds.
[[gnu::noinline]] float get_grad_norm_direct(Engine& engine, const std::vector<const ParamGroup*>& groups) {
  float squared = 0;
  for (const ParamGroup* group : groups)
    squared += squared_norm(*group) / static_cast<float>(engine.options.data);
  MPI_Allreduce(MPI_IN_PLACE, &squared, 1, MPI_FLOAT, MPI_SUM, engine.dp);
  _model_parallel_all_reduce(engine, &squared, MPI_FLOAT, MPI_SUM);
  return squared;
}

float grad_norm(Engine& engine) {
  float squared = 0;
  if (engine.options.fused) {
    std::vector<const ParamGroup*> all;
    for (const ParamGroup& group : engine.groups) all.push_back(&group);
    squared = get_grad_norm_direct(engine, all);
  } else {
    // As shipped: every rank reduces once per group that it owns, and ranks own different numbers.
    for (const ParamGroup& group : engine.groups) squared += get_grad_norm_direct(engine, {&group});
  }
  return std::sqrt(squared);
}

[[gnu::noinline]] void all_gather_partitions(Engine& engine, ParamGroup& group) {
  const int part = static_cast<int>(group.weights.size()) / engine.options.data;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, group.weights.data(), part, MPI_FLOAT, engine.dp);
}

void step(Engine& engine) {
  if (has_overflow(engine)) return;
  const float norm = grad_norm(engine);
  const float rate = 0.01F / std::fmax(1.0F, norm);
  for (ParamGroup& group : engine.groups) {
    for (std::size_t i = 0; i < group.weights.size(); ++i) {
      group.weights[i] -= rate * group.grads[i];
      group.grads[i] = 0;
    }
    all_gather_partitions(engine, group);
  }
  if (engine.rank == 0) std::printf("grad norm %.4f\n", static_cast<double>(norm));
}

[[gnu::noinline]] void _aggregate_total_loss(Engine& engine, int number) {
  float losses[2] = {engine.loss / kMicroBatches, engine.loss};
  if (engine.last() && engine.options.data > 1) {
    MPI_Allreduce(MPI_IN_PLACE, losses, 2, MPI_FLOAT, MPI_SUM, engine.dp);
  }
  MPI_Bcast(losses, 2, MPI_FLOAT, engine.options.pipe - 1, engine.pipe);
  engine.loss = 0;
  if (engine.rank == 0) std::printf("step %d loss %.6f\n", number, static_cast<double>(losses[0]));
}

void train_batch(Engine& engine, int number) {
  for (int i = 0; i < kMicroBatches; ++i) _exec_forward_pass(engine);
  for (int i = 0; i < kMicroBatches; ++i) _exec_backward_pass(engine);
  allreduce_tied_weight_gradients(engine);
  allreduce_bucket(engine);
  step(engine);
  _aggregate_total_loss(engine, number);
}

// ---- set-up

ParamGroup make_group(int parameters) {
  return {std::vector<float>(static_cast<std::size_t>(parameters), 0.5F),
          std::vector<float>(static_cast<std::size_t>(parameters), 0.0F)};
}

/// Decay and no-decay parameters of this stage; an empty group is dropped, as the framework does.
void configure_optimizer(Engine& engine) {
  const bool only_embedding = engine.options.embed && engine.last() && !engine.first();
  const bool has_embedding = engine.first() || engine.last();
  int decay = only_embedding ? 0 : kDecay;
  if (has_embedding) decay += kEmbedding;
  const int no_decay = only_embedding ? 0 : kNoDecay;
  for (const int parameters : {decay, no_decay}) {
    const int rounded = (parameters + engine.options.data - 1) / engine.options.data * engine.options.data;
    if (parameters > 0) engine.groups.push_back(make_group(rounded));
  }
}

MPI_Comm make_communicator(int color, int key, const char* name) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &made);
  if (made != MPI_COMM_NULL) MPI_Comm_set_name(made, name);
  return made;
}

[[gnu::noinline]] void initialize(Engine& engine) {
  engine.stage = engine.rank / engine.options.data;
  engine.replica = engine.rank % engine.options.data;
  engine.model = make_communicator(engine.replica, engine.stage, "model");
  engine.dp = make_communicator(engine.stage, engine.replica, "data");
  engine.pipe = make_communicator(engine.replica, engine.stage, "pipe");
  engine.tied = make_communicator(engine.first() || engine.last() ? engine.replica : MPI_UNDEFINED,
                                  engine.stage, "tied");
  configure_optimizer(engine);
  std::int64_t parameters[2] = {0, 0};
  for (const ParamGroup& group : engine.groups)
    parameters[0] += static_cast<std::int64_t>(group.weights.size());
  parameters[1] = parameters[0];
  MPI_Allreduce(MPI_IN_PLACE, parameters, 2, MPI_INT64_T, MPI_SUM, engine.model);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Only what is allowed in a signal handler: a job that hangs must not keep its machine.
void give_up(int) {
  static const char kText[] = "zero1_hang: no end in sight, giving up\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kTimeoutStatus);
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--pipe")
      options.pipe = std::atoi(value.c_str());
    else if (name == "--data")
      options.data = std::atoi(value.c_str());
    else if (name == "--steps")
      options.steps = std::atoi(value.c_str());
    else if (name == "--timeout")
      options.timeout_s = std::atoi(value.c_str());
    else if (name == "--norm" && (value == "per-group" || value == "fused"))
      options.fused = value == "fused";
    else if (name == "--partition" && (value == "embed" || value == "transformer"))
      options.embed = value == "embed";
    else
      return false;
  }
  return argc % 2 == 1 && options.pipe > 0 && options.data > 0 && options.steps > 0 && options.timeout_s > 0;
}

}  // namespace zero1

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  zero1::Engine engine;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &engine.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!zero1::parse(argc, argv, engine.options) || ranks != engine.options.pipe * engine.options.data) {
    if (engine.rank == 0) {
      std::fprintf(stderr,
                   "usage: mpirun -n PIPE*DATA zero1_hang [--pipe 2] [--data 1] [--norm per-group|fused]\n"
                   "       [--partition embed|transformer] [--steps 2] [--timeout SECONDS]\n");
    }
    MPI_Finalize();
    return 2;
  }
  signal(SIGALRM, zero1::give_up);
  alarm(static_cast<unsigned>(engine.options.timeout_s));
  zero1::initialize(engine);
  for (int number = 0; number < engine.options.steps; ++number) zero1::train_batch(engine, number);
  MPI_Barrier(MPI_COMM_WORLD);
  if (engine.rank == 0) std::printf("done\n");
  MPI_Finalize();
  return 0;
}
