// Process groups of torch.distributed -> communicators of the trace: name, description, members and identity, taken once from torch's own tables.
#pragma once

#include "comm_registry.h"
#include "torch/python_api.h"

namespace lockstep::shim::torch {

/// The communicator of a ProcessGroup object of Python; registered at first sight. The interpreter's lock is held. Null: no room.
Comm* comm_of_group(PyObject* group) noexcept;

/// The same for one that has just been made: all its calls will be seen.
Comm* comm_of_new_group(PyObject* group) noexcept;
/// Whether torch keeps it as a group that this process belongs to.
bool is_group(PyObject* object) noexcept;
/// A communicator of all ranks from 0 to `size` - 1 for init_process_group, before there is any group.
Comm* add_world(std::int32_t rank, std::int32_t size) noexcept;

/// The communicator that a backend object of torch's C++ works for; one that no group is known for has no members and no identity.
Comm* comm_of_backend(const void* backend) noexcept;

/// A new backend stands at this address: what was known of an earlier one there is not true any more.
void note_new_backend(const void* backend) noexcept;
/// Those that were noted on this thread since there were `first` of them work for `comm`; null: nobody knows for whom.
void bind_new_backends(std::uint32_t first, Comm* comm) noexcept;

/// For a new file after a fork.
void reset_groups() noexcept;

}  // namespace lockstep::shim::torch
