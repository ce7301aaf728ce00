// The model as a list of layer specs, as a pipeline framework is given it: what each is called, what it owns,
// what is tied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cross_entropy.h"
#include "embedding.h"
#include "layer.h"
#include "transformer_block.h"

namespace zero1 {

enum class LayerKind { kFunction, kEmbedding, kBlock, kFinalNorm, kProjection };

struct LayerSpec {
  LayerKind kind = LayerKind::kFunction;
  std::string type;      ///< class or function name: what `type:regex` looks at
  std::string tied_key;  ///< layers with one key share their parameters; empty = none
};

/// A cast, the embedding, a function, the blocks, a function, the final norm, the embedding once more, a
/// cast.
std::vector<LayerSpec> layer_specs(const ModelShape& model);

/// Layer `index` of the list, which names its parameters. `tied` is the embedding that the layers of one
/// stage share: the first of them makes it.
template <class P>
std::unique_ptr<Layer<P>> make_layer(const LayerSpec& spec, std::size_t index, const ModelShape& model,
                                     std::shared_ptr<Embedding<P>>& tied) {
  const std::string name = std::to_string(index);
  const double deviation = 0.08;
  const double output_deviation = deviation / std::sqrt(2.0 * static_cast<double>(model.blocks));
  if (!spec.tied_key.empty() && tied == nullptr) tied = std::make_shared<Embedding<P>>(spec.tied_key, model);
  switch (spec.kind) {
    case LayerKind::kFunction:
      return std::make_unique<Function<P>>();
    case LayerKind::kEmbedding:
      return std::make_unique<TiedEmbedding<P>>(tied);
    case LayerKind::kBlock:
      return std::make_unique<TransformerBlock<P>>(name, model, deviation, output_deviation);
    case LayerKind::kFinalNorm:
      return std::make_unique<LayerNorm<P>>(name, model.hidden);
    case LayerKind::kProjection:
      return std::make_unique<TiedProjection<P>>(tied);
  }
  return nullptr;
}

/// Parameters of each layer, a tied one with each of its layers: what the method `parameters` balances.
std::vector<std::size_t> parameters_by_layer(const std::vector<LayerSpec>& specs, const ModelShape& model);

}  // namespace zero1
