// Compiled to nothing in builds that communicate over MPI.
#ifdef ZERO1_COMM_NCCL
#include "nccl_communicator.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace zero1 {

std::pair<int, int> rank_and_size_from_environment() {
  constexpr std::pair<const char*, const char*> kNames[] = {{"RANK", "WORLD_SIZE"},
                                                            {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                            {"PMI_RANK", "PMI_SIZE"},
                                                            {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const auto& [rank, size] : kNames) {
    const char* rank_text = std::getenv(rank);
    const char* size_text = std::getenv(size);
    if (rank_text != nullptr && size_text != nullptr) return {std::atoi(rank_text), std::atoi(size_text)};
  }
  return {0, 1};
}

ncclUniqueId job_id(int rank, int size) {
  ncclUniqueId id;
  const char* name = std::getenv("ZERO1_NCCL_ID");
  if (size > 1 && name == nullptr)
    throw std::runtime_error("ZERO1_NCCL_ID must name a file that all ranks see");
  if (rank == 0) {
    if (ncclGetUniqueId(&id) != ncclSuccess) throw std::runtime_error("ncclGetUniqueId failed");
    if (size == 1) return id;
    const std::string half = std::string(name) + ".half";  // renamed when whole, so that nobody reads a part
    std::ofstream out(half, std::ios::binary);
    out.write(id.internal, sizeof id.internal);
    out.close();
    if (!out || std::rename(half.c_str(), name) != 0)
      throw std::runtime_error("ZERO1_NCCL_ID=" + std::string(name) + " cannot be written");
    return id;
  }
  for (int tenths = 0; tenths < 600; ++tenths) {
    std::ifstream in(name, std::ios::binary);
    if (in.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw std::runtime_error("ZERO1_NCCL_ID=" + std::string(name) + " did not appear");
}

void NcclCommunicator::abort(int code) { _exit(code); }  // the launcher ends the others

NcclCommunicator NcclCommunicator::adopted(ncclComm_t comm, bool ordered) {
  NcclCommunicator result;
  result.comm_ = comm;
  check(ncclCommUserRank(comm, &result.rank_));
  check(ncclCommCount(comm, &result.size_));
  result.ordered_ = ordered;
  return result;
}

NcclCommunicator NcclCommunicator::world() {
  const auto [rank, size] = rank_and_size_from_environment();
  int devices = 0;
  check_cuda_call(cudaGetDeviceCount(&devices));
  if (devices > 0) check_cuda_call(cudaSetDevice(rank % devices));
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, size, job_id(rank, size), rank));
  return adopted(comm, false);
}

}  // namespace zero1
#endif
