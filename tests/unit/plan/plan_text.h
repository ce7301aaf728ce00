// Plans for tests, in a line or two.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "plan/read_plan.h"

namespace lockstep::plan::testing {

/// A stage-cut GPT: a tied embedding at both ends, `blocks` transformer blocks between; classes as named.
/// `extra` are more members.
inline std::string gpt_plan(std::string_view method, std::string_view extra = "",
                            std::string_view table = "Embed", std::string_view block = "Block") {
  return fmt::format(
      R"({{"framework": {{"name": "deepspeed", "version": "0.16.4"}}, "topology": {{"pipe": 2}}, "datatype": "f16",
    "layers": [
      {{"class": "{1}", "tied": "t", "tied_weights": ["w"], "parameters": [{{"name": "w", "shape": [32, 16]}}], "outputs": [{{"shape": [4, 16]}}]}},
      {{"class": "{2}", "repeat": 4, "parameters": [{{"name": "norm.weight", "module": "LayerNorm", "shape": [16]}},
        {{"name": "mlp.weight", "shape": [16, 16]}}, {{"name": "mlp.bias", "shape": [16]}}]}},
      {{"class": "{1}", "tied": "t", "tied_weights": ["w"], "parameters": [{{"name": "w", "shape": [32, 16]}}]}}],
    "partition": {{"method": "{0}"}}, "optimizer": {{"groups": "megatron"}}, "zero": {{"stage": 1}},
    "schedule": {{"micro_batches": 3}}{3}}})",
      method, table, block, extra);
}

}  // namespace lockstep::plan::testing
