// Uses lockstep::format alone: headers, no library.
#include "lockstep/op_kind.h"

int main() { return lockstep::op_name(lockstep::OpKind::kAllReduce) == "all_reduce" ? 0 : 1; }
