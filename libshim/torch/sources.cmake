# torch.distributed: nothing of torch or Python is needed to build; both are met by name at run time.
list(APPEND LOCKSTEP_SHIM_SOURCES
  torch/constructions.cc torch/entries.cc torch/groups.cc torch/module.cc torch/options.cc torch/python_api.cc torch/python_sites.cc torch/recording.cc torch/reducer.cc
  torch/scope.cc torch/stand_in.cc torch/tensors.cc)
