#include "model_spec.h"

namespace zero1 {

std::vector<LayerSpec> layer_specs(const ModelShape& model) {
  std::vector<LayerSpec> specs;
  specs.push_back({LayerKind::kFunction, "_to_float16", ""});
  specs.push_back({LayerKind::kEmbedding, "EmbeddingPipe", "embed"});
  specs.push_back({LayerKind::kFunction, "<lambda>", ""});
  for (std::size_t block = 0; block < model.blocks; ++block)
    specs.push_back({LayerKind::kBlock, "ParallelTransformerLayerPipe", ""});
  specs.push_back({LayerKind::kFunction, "<lambda>", ""});
  specs.push_back({LayerKind::kFinalNorm, "MixedFusedLayerNorm", ""});
  specs.push_back({LayerKind::kProjection, "EmbeddingPipe", "embed"});
  specs.push_back({LayerKind::kFunction, "float16_to_fp32", ""});
  return specs;
}

std::vector<std::size_t> parameters_by_layer(const std::vector<LayerSpec>& specs, const ModelShape& model) {
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::shared_ptr<Embedding<F32>> tied;
    std::size_t count = 0;
    const auto layer = make_layer<F32>(specs[i], i, model, tied);
    for (const Parameter<F32>* parameter : layer->parameters()) count += parameter->size();
    counts.push_back(count);
  }
  return counts;
}

}  // namespace zero1
