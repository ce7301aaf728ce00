// Programs of others, unmodified, as Debian packages them: recorded whole, same output. Skipped where they
// are not installed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "check_traces.h"
#include "compare_traces.h"
#include "mpi_runs.h"

namespace lockstep::shim_test {
namespace {

namespace fs = std::filesystem;

const char* const kPickles = R"(
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
shared = comm.bcast({"a": 1}, root=0)
squares = comm.gather(rank * rank, root=0)
total = comm.allreduce(rank, op=MPI.SUM)
half = comm.Split(rank % 2, rank)
members = half.allgather(rank)
request = comm.isend({"from": rank}, dest=(rank + 1) % size, tag=3)
message = comm.recv(source=MPI.ANY_SOURCE, tag=3)
request.wait()
if rank == 0: print(shared, squares, total, members, message)
half.Free()
)";

const char* const kMolecules = R"(
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 50
run 200
)";

/// Lines that hold no measured time: LAMMPS prints those of its loop between the table and the end.
std::string table_of(const std::string& output) {
  std::istringstream lines(output);
  std::string table;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Step") != std::string::npos) inside = true;
    if (line.rfind("Loop time", 0) == 0) inside = false;
    if (inside) table += line + "\n";
  }
  return table;
}

class Others : public testing::Test {
 protected:
  HostRun run(const std::vector<std::string>& program,
              const std::vector<std::pair<std::string, std::string>>& env) {
    std::vector<std::string> command{
        LOCKSTEP_OPENMPI_RUN, "--allow-run-as-root", "--oversubscribe", "-n", "2", "env"};
    for (const auto& [name, value] : env) command.push_back(name + "=" + value);
    command.insert(command.end(), program.begin(), program.end());
    HostOptions options;
    options.directory = directory_.path();
    options.timeout_s = 100;
    return run_host(command, options);
  }
  std::string write(const std::string& name, const char* content) {
    std::ofstream(directory_.path() + "/" + name) << content;
    return directory_.path() + "/" + name;
  }
  void expect_whole(std::size_t calls) {
    const std::vector<ReadTrace> traces = read_traces(directory_.path() + "/traces");
    ASSERT_EQ(traces.size(), 2U);
    for (const ReadTrace& trace : traces) {
      EXPECT_EQ(trace.problems, std::vector<std::string>{});
      EXPECT_EQ(trace.header.end, trace::ProcessEnd::kExited);
      EXPECT_EQ(trace.header.state, 0U);
      EXPECT_GT(trace.calls.size(), calls);
      for (const ReadCall& call : trace.calls) EXPECT_EQ(call.record.flags & trace::kCallOpaqueArgs, 0);
    }
    EXPECT_EQ(first_differences(traces), "");
    EXPECT_EQ(stuck_calls(traces), "");
    // These programs are right: calls that no rule decides may leave the verdict open, and nobody may be accused.
    const std::string verdict = verdict_on(directory_.path() + "/traces");
    EXPECT_TRUE(verdict.starts_with("consistent") || verdict.starts_with("insufficient"))
        << report_on(directory_.path() + "/traces");
  }
  TemporaryDirectory directory_;
};

TEST_F(Others, Mpi4py) {
  if (std::string(LOCKSTEP_OPENMPI_RUN).find("NOTFOUND") != std::string::npos ||
      run_host({"/usr/bin/python3", "-c", "import mpi4py.MPI"}).status != 0) {
    GTEST_SKIP() << "python3-mpi4py is not installed";
  }
  const std::string script = write("pickles.py", kPickles);
  const HostRun without = run({"/usr/bin/python3", script}, {});
  ASSERT_EQ(without.status, 0) << without.err;
  const HostRun with = run({"/usr/bin/python3", script}, recorded_into(directory_.path() + "/traces"));
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.status, 0);
  expect_whole(10);
}

TEST_F(Others, Lammps) {
  if (!fs::exists("/usr/bin/lmp")) GTEST_SKIP() << "lammps is not installed";
  const std::string input = write("in.lj", kMolecules);
  const std::vector<std::string> command{"/usr/bin/lmp", "-in", input, "-log", "none", "-nocite"};
  const HostRun without = run(command, {});
  ASSERT_EQ(without.status, 0) << without.err;
  const HostRun with = run(command, recorded_into(directory_.path() + "/traces"));
  EXPECT_EQ(table_of(with.out), table_of(without.out));
  EXPECT_EQ(with.status, 0);
  expect_whole(1000);
}

TEST_F(Others, Hpcc) {
  if (!fs::exists("/usr/bin/hpcc")) GTEST_SKIP() << "hpcc is not installed";
  const fs::path example = "/usr/share/doc/hpcc/examples/_hpccinf.txt";
  if (!fs::exists(example)) GTEST_SKIP() << "hpcc has no example input";
  std::ifstream from(example);
  std::ostringstream input;
  for (std::string line; std::getline(from, line);) {
    if (line.find(" Ns") != std::string::npos && line.find("NBs") == std::string::npos) line = "200 Ns";
    if (line.find(" Ps") != std::string::npos) line = "1 Ps";
    input << line << "\n";
  }
  write("hpccinf.txt", input.str().c_str());
  const HostRun with = run({"/usr/bin/hpcc"}, recorded_into(directory_.path() + "/traces"));
  EXPECT_EQ(with.status, 0) << with.err;
  std::ifstream result(directory_.path() + "/hpccoutf.txt");
  const std::string text((std::istreambuf_iterator<char>(result)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("Success=1"), std::string::npos);
  expect_whole(10000);
}

}  // namespace
}  // namespace lockstep::shim_test
