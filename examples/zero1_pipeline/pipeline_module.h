// The layers of one stage, and its parameters by name.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "model_spec.h"
#include "partition.h"

namespace zero1 {

/// Stages that own a layer with a tied key, ascending; empty if no layer is tied.
inline std::vector<std::size_t> stages_of_tied_layers(const std::vector<LayerSpec>& specs,
                                                      const Parts& parts) {
  std::vector<std::size_t> stages;
  for (std::size_t stage = 0; stage + 1 < parts.size(); ++stage) {
    for (std::size_t layer = parts[stage]; layer < parts[stage + 1]; ++layer) {
      if (!specs[layer].tied_key.empty() && (stages.empty() || stages.back() != stage))
        stages.push_back(stage);
    }
  }
  return stages;
}

template <class P>
class PipelineModule {
 public:
  using Activation = Array<typename P::Real>;

  PipelineModule(const std::vector<LayerSpec>& specs, const Parts& parts, const ModelShape& model,
                 std::size_t stage) {
    for (std::size_t index = parts[stage]; index < parts[stage + 1]; ++index)
      layers_.push_back(make_layer<P>(specs[index], index, model, tied_));
    const std::vector<std::size_t> owners = stages_of_tied_layers(specs, parts);
    for (const auto& layer : layers_) {
      for (Parameter<P>* parameter : layer->parameters()) {
        if (std::find(parameters_.begin(), parameters_.end(), parameter) == parameters_.end())
          parameters_.push_back(parameter);
      }
    }
    if (tied_ != nullptr && owners.front() != stage) {
      for (Parameter<P>* parameter : tied_->parameters()) parameter->replicated = true;
    }
  }

  const std::vector<Parameter<P>*>& parameters() const { return parameters_; }
  /// Those of a tied layer. Equally many, of equal sizes, on every stage that owns a copy; a stage that owns all of
  /// them reduces with itself alone, as in DeepSpeed.
  std::vector<Parameter<P>*> tied_parameters() const {
    return tied_ != nullptr ? tied_->parameters() : std::vector<Parameter<P>*>{};
  }

  Activation forward(Activation input, Tape<P>& tape) {
    for (const auto& layer : layers_) input = layer->forward(std::move(input), tape);
    return input;
  }
  Activation backward(Activation output_grad, Tape<P>& tape) {
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer)
      output_grad = (*layer)->backward(std::move(output_grad), tape);
    return output_grad;
  }

 private:
  std::shared_ptr<Embedding<P>> tied_;
  std::vector<std::unique_ptr<Layer<P>>> layers_;
  std::vector<Parameter<P>*> parameters_;
};

}  // namespace zero1
