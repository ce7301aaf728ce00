// Programs of others, unmodified, as Debian packages them: recorded whole, same output. Skipped where they
// are not installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

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

/// Two hydrogen atoms, and the program's own pseudopotential of one.
const char* const kAtom = R"(&input
 title='H', zed=1.0, rel=0, config='1s1', iswitch=3, dft='PZ'
/
&inputp
 pseudotype=1, lloc=0, file_pseudopw='H.UPF', tm=.true.
/
1
1S 1 0 1.00 0.00 0.80 0.80
)";
const char* const kTwoAtoms = R"(&control
 calculation='scf', prefix='h2', pseudo_dir='./', outdir='./scratch'
/
&system
 ibrav=1, celldm(1)=8.0, nat=2, ntyp=1, ecutwfc=12.0
/
&electrons
/
ATOMIC_SPECIES
 H 1.008 H.UPF
ATOMIC_POSITIONS bohr
 H 0.0 0.0 0.0
 H 1.4 0.0 0.0
K_POINTS gamma
)";

/// What a program measures differs between any two runs of it. In lines that match `timed`, numbers become "#" and spaces one;
/// lines that match `dropped` go. All other lines stay as they are.
std::string without_times(const std::string& output, const std::string& timed, const std::string& dropped = "") {
  const std::regex number("[-+]?[0-9]+([.:][0-9]*)*([eE][-+]?[0-9]+)?");
  const std::regex spaces(" +");
  const std::regex is_timed(timed);
  const std::regex is_dropped(dropped);
  std::istringstream lines(output);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (!dropped.empty() && std::regex_search(line, is_dropped)) continue;
    if (std::regex_search(line, is_timed)) line = std::regex_replace(std::regex_replace(line, number, "#"), spaces, " ");
    result += line + "\n";
  }
  return result;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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
  // The loop's time and rate, the table of where it went, and the wall time of all.
  const std::string timed = "^(Loop time|Performance|Pair|Neigh|Comm|Output|Modify|Other|Total wall time| *create_atoms CPU)|% CPU use";
  EXPECT_EQ(without_times(with.out, timed), without_times(without.out, timed));
  EXPECT_NE(without.out.find("\n     200 "), std::string::npos) << "it ran to its end:\n" << without.out;
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
  const fs::path result = directory_.path() + "/hpccoutf.txt";
  ASSERT_EQ(run({"/usr/bin/hpcc"}, {}).status, 0);
  const std::string without = text_of(result);
  fs::remove(result);
  const HostRun with = run({"/usr/bin/hpcc"}, recorded_into(directory_.path() + "/traces"));
  EXPECT_EQ(with.status, 0) << with.err;
  // Nearly every line is a rate. Integers stay, but for repetitions that it chooses by what it measured.
  const std::string timed = "[0-9][.e][-+0-9]|^max number of ping pong pairs|^max client pings|microseconds|clock ticks";
  EXPECT_EQ(without_times(text_of(result), timed, "^Current time"), without_times(without, timed, "^Current time"));
  EXPECT_NE(without.find("Success=1"), std::string::npos);
  expect_whole(10000);
}

TEST_F(Others, NetPipe) {
  if (!fs::exists("/usr/bin/NPopenmpi")) GTEST_SKIP() << "netpipe-openmpi is not installed";
  const std::vector<std::string> command{"/usr/bin/NPopenmpi", "-u", "256", "-n", "50"};
  const fs::path result = directory_.path() + "/np.out";
  const HostRun without = run(command, {});
  ASSERT_EQ(without.status, 0) << without.err;
  const std::string file = text_of(result);
  fs::remove(result);
  const HostRun with = run(command, recorded_into(directory_.path() + "/traces"));
  EXPECT_EQ(with.status, 0);
  // "12:      48 bytes     50 times -->   3339.13 Mbps in       0.11 usec"; in the file, size and rate.
  // Two processes write them, in an order of their own.
  const auto sizes = [](const std::string& text, const std::string& rate) {
    std::istringstream masked(std::regex_replace(text, std::regex(rate), "#"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(masked, line);) lines.push_back(line);
    std::ranges::sort(lines);
    return lines;
  };
  EXPECT_EQ(sizes(with.out, " +[0-9.]+ Mbps in +[0-9.]+ usec"), sizes(without.out, " +[0-9.]+ Mbps in +[0-9.]+ usec"));
  EXPECT_EQ(sizes(with.err, " +[0-9.]+ Mbps in +[0-9.]+ usec"), sizes(without.err, " +[0-9.]+ Mbps in +[0-9.]+ usec"));
  EXPECT_EQ(sizes(text_of(result), " +[0-9]+\\.[0-9]+"), sizes(file, " +[0-9]+\\.[0-9]+"));
  EXPECT_NE(file, "");
  expect_whole(1000);
}

TEST_F(Others, QuantumEspresso) {
  if (!fs::exists("/usr/bin/pw.x") || !fs::exists("/usr/bin/ld1.x")) GTEST_SKIP() << "quantum-espresso is not installed";
  HostOptions options;
  options.directory = directory_.path();
  write("atom.in", kAtom);
  ASSERT_EQ(run_host({"/bin/sh", "-c", "ld1.x < atom.in"}, options).status, 0);
  const std::vector<std::string> command{"/usr/bin/pw.x", "-in", write("pair.in", kTwoAtoms)};
  const HostRun without = run(command, {{"OMP_NUM_THREADS", "1"}});
  ASSERT_EQ(without.status, 0) << without.out << without.err;
  std::vector<std::pair<std::string, std::string>> env = recorded_into(directory_.path() + "/traces");
  env.emplace_back("OMP_NUM_THREADS", "1");
  const HostRun with = run(command, env);
  EXPECT_EQ(with.status, 0) << with.err;
  const std::string timed = "CPU .*WALL|cpu time spent|starts on|terminated on";
  EXPECT_EQ(without_times(with.out, timed), without_times(without.out, timed));
  EXPECT_NE(without.out.find("convergence has been achieved"), std::string::npos) << without.out;
  expect_whole(500);
}

}  // namespace
}  // namespace lockstep::shim_test
