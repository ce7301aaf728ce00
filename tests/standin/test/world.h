// Ranks as threads of a process of their own, on the stand-ins, until all have ended or none can move any more.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hooks.h"
#include "nccl_api.h"

namespace lockstep::standin::testing {

struct Outcome {
  int exit_code = 0;        ///< of the process; 0 unless the stand-in ended it
  bool stuck = false;
  std::vector<int> ended{};  ///< ranks whose body came to its end
  std::string failures{};   ///< what `expect` found wrong
  std::string stderr_text{};
};

/// What the body of a rank has.
class Rank {
 public:
  Rank(int own_number, int all, std::string& failures) : number(own_number), ranks(all), failures_(failures) {}
  const int number;
  const int ranks;
  /// A communicator of all ranks; `index` names it. Made in the same order by all.
  nccl::ncclComm_t communicator(int index = 0) const;
  static nccl::cudaStream_t stream();
  void expect(bool holds, const std::string& what) const;
  template <class T>
  static T* device(const std::vector<T>& values) {
    void* memory = nullptr;
    nccl::cudaMalloc(&memory, values.size() * sizeof(T) + 1);
    nccl::cudaMemcpy(memory, values.data(), values.size() * sizeof(T), 1);
    return static_cast<T*>(memory);
  }
  template <class T>
  static std::vector<T> host(const T* memory, std::size_t count) {
    std::vector<T> values(count);
    nccl::cudaMemcpy(values.data(), memory, count * sizeof(T), 2);
    return values;
  }

 private:
  std::string& failures_;
};

/// `settings`: LOCKSTEP_REHEARSE_<key> of the process.
Outcome run_world(int ranks, const std::map<std::string, std::string>& settings, const std::function<void(Rank&)>& body);

}  // namespace lockstep::standin::testing
