// Arithmetic of the collectives: in the order of ranks, rounding after every step, so that results are the same in every run.
#pragma once

#include <cstddef>

#include "nccl/api.h"

namespace lockstep::standin {

/// 0 for a number that is no type.
std::size_t datatype_bytes(int datatype);

/// into[i] = into[i] op from[i]. The average is a sum here. fp8 is treated as bytes.
void combine(void* into, const void* from, std::size_t count, int datatype, int redop);
/// Integer averages are divided behind the sum; those of floating types are scaled before, as the real library does it.
void divide(void* values, std::size_t count, int datatype, int ranks);
/// values[i] *= *scalar (of the same type).
void scale(void* values, std::size_t count, int datatype, const void* scalar);
bool is_floating(int datatype);
/// 1 / ranks in the given floating type, into `scalar` (8 bytes of room).
void reciprocal(void* scalar, int datatype, int ranks);

}  // namespace lockstep::standin
