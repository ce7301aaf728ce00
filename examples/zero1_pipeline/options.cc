#include "options.h"

#include <CLI/CLI.hpp>
#include <map>

namespace zero1 {
namespace {

const char* const kFooter =
    R"(Memory and messages, with H = hidden, V = different bytes of the text, S = sequence, B = blocks:
  parameters                        V*H + S*H (embedding, tied) + B*(12*H*H + 12*H) + 2*H
  one activation or gradient message  micro-batch-size * S * H elements
  optimizer state of a rank         12 bytes (fp64: 24) * parameters of its stage / data, plus padding
  ranks to start                    pipe * data

Exit status: 0 done, 2 unusable arguments, 75 no step finished within --timeout, 1 anything else.)";

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Config& config = options.config;
  CLI::App app(
      "Trains a small GPT over pipeline stages and replicas with ZeRO stage 1, one process for each rank.",
      "zero1_pipeline");
  app.footer(kFooter);

  app.add_option("--pipe", config.pipe, "Stages that the layers are cut into")
      ->capture_default_str()
      ->group("Ranks");
  app.add_option("--data", config.data, "Replicas of every stage; optimizer state is cut into as many parts")
      ->capture_default_str()
      ->group("Ranks");
  app.add_option("--partition", config.partition,
                 "How layers are cut: uniform (equally many), parameters (equally heavy), type:REGEX "
                 "(equally many of that "
                 "type), at:I,J,... (stages begin at these layers)")
      ->capture_default_str()
      ->group("Ranks");

  app.add_option("--hidden", config.model.hidden, "Width of the model: numbers that stand for one token")
      ->capture_default_str()
      ->group("Model");
  app.add_option("--heads", config.model.heads, "Attention heads; divides --hidden")
      ->capture_default_str()
      ->group("Model");
  app.add_option("--blocks", config.model.blocks, "Transformer blocks")
      ->capture_default_str()
      ->group("Model");
  app.add_option("--sequence", config.model.sequence, "Tokens that the model sees at once")
      ->capture_default_str()
      ->group("Model");

  app.add_option("--steps", config.steps, "Optimizer steps")->capture_default_str()->group("Training");
  app.add_option("--micro-batches", config.micro_batches,
                 "Micro-batches of each replica in one step; they fill the pipeline")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--micro-batch-size", config.micro_batch_size, "Sequences in a micro-batch")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--rate", config.rate, "Learning rate of AdamW")->capture_default_str()->group("Training");
  app.add_option("--weight-decay", config.weight_decay,
                 "Of matrices and embeddings; biases and layer norms have none")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--clip", config.clip, "Largest gradient norm; 0 = any")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--seed", config.seed, "Of first weights and of the order of the text")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--text", options.text_file,
                 "File to learn from; without it, speeches and sonnets that the program carries")
      ->group("Training");

  const std::map<std::string, Norm> norms = {
      {"per_group", Norm::kPerGroup}, {"fused", Norm::kFused}, {"agreed_groups", Norm::kAgreedGroups}};
  app.add_option("--norm", config.norm,
                 "How the gradient norm is reduced: per_group (as shipped: hangs where stages own different "
                 "numbers of "
                 "groups), fused (default), agreed_groups")
      ->transform(CLI::Transformer(norms, CLI::ignore_case).description(""))
      ->type_name("NAME")
      ->group("Optimizer");
  const std::map<std::string, Reduce> reductions = {{"all_reduce", Reduce::kAllReduce},
                                                    {"reduce_scatter", Reduce::kReduceScatter}};
  app.add_option("--reduce", config.reduce, "How gradients meet: all_reduce (default), reduce_scatter")
      ->transform(CLI::Transformer(reductions, CLI::ignore_case).description(""))
      ->type_name("NAME")
      ->group("Optimizer");
  const std::map<std::string, Precision> precisions = {
      {"fp64", Precision::kF64}, {"fp32", Precision::kF32}, {"mixed", Precision::kMixed}};
  app.add_option("--precision", config.precision,
                 "fp32 (default), mixed (bf16 parameters and gradients, fp32 master), fp64")
      ->transform(CLI::Transformer(precisions, CLI::ignore_case).description(""))
      ->type_name("NAME")
      ->group("Optimizer");
  app.add_flag("--ordered", config.ordered, "Sum in rank order, so that equal runs have equal bits")
      ->group("Optimizer");
  app.add_option("--loss-scale", config.loss_scale,
                 "First dynamic loss scale; 0 = 65536 in mixed precision, else none")
      ->capture_default_str()
      ->group("Optimizer");
  app.add_option("--scale-window", config.scale_window, "Steps without overflow until the loss scale doubles")
      ->capture_default_str()
      ->group("Optimizer");
  app.add_option("--nan-step", config.nan_step, "Put a NaN into a gradient in this step, to see it skipped")
      ->group("Optimizer");
  app.add_option("--nan-rank", config.nan_rank, "The rank that gets it")->group("Optimizer");

  app.add_option("--csv", options.csv_file,
                 "Write step, loss, gradient norm, loss scale and time of each step to this file")
      ->group("Output");
  app.add_option("--timeout", options.timeout_s,
                 "Seconds without a finished step until the program ends itself; 0 = never")
      ->capture_default_str()
      ->group("Output");
  app.add_flag("--print-plan", options.print_plan,
               "Print the plan of this run as JSON and train nothing; needs one process only")
      ->group("Output");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.message = app.help();
  } catch (const CLI::ParseError& error) {
    options.message = std::string(error.what()) + "\nzero1_pipeline --help says what there is.\n";
    options.exit_code = 2;
  }
  return options;
}

}  // namespace zero1
