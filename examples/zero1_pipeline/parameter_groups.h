// Parameters of a stage in optimizer groups: those with weight decay and those without.
#pragma once

#include <string>
#include <vector>

#include "communicator.h"
#include "layer.h"

namespace zero1 {

template <class P>
struct ParameterGroup {
  std::string name;  ///< "decay" or "no_decay"
  bool decays = false;
  std::vector<Parameter<P>*> parameters;
};

/// Both groups, also where one is empty: a stage of the embedding alone has nothing without decay.
template <class P>
std::vector<ParameterGroup<P>> parameter_groups(const std::vector<Parameter<P>*>& parameters) {
  std::vector<ParameterGroup<P>> groups = {{"decay", true, {}}, {"no_decay", false, {}}};
  for (Parameter<P>* parameter : parameters)
    groups[parameter->decays ? 0 : 1].parameters.push_back(parameter);
  return groups;
}

/// As frameworks do. From here on the number of groups differs between stages: whoever loops over them must
/// not communicate beyond the stage.
template <class P>
void drop_empty_groups(std::vector<ParameterGroup<P>>& groups) {
  std::erase_if(groups, [](const ParameterGroup<P>& group) { return group.parameters.empty(); });
}

/// Groups that any stage has, told to all: bit g of `mask` = group g is not empty here. One call, of one
/// size, everywhere.
std::uint64_t agree_on_groups(const Groups& ranks, std::uint64_t mask);

}  // namespace zero1
