// shim_host MODE: a program with an MPI in it that does one of the things programs do. Run with and without
// the recorder, it must say and end the same. Linked with libmpi_stub.so.
#define MPICH_SKIP_MPICXX 1
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace {

int sum_once() {
  int mine = 3;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

void say(const char* text, int value) {
  std::printf("%s %d\n", text, value);
  std::fflush(stdout);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int mode_plain() {
  say("sum", sum_once());
  MPI_Finalize();
  return 7;
}

int mode_fork() {
  say("before", sum_once());
  const pid_t child = fork();
  if (child == 0) {
    say("child", 1);
    _exit(5);
  }
  say("status", wait_for(child));
  say("after", sum_once());
  MPI_Finalize();
  return 0;
}

int mode_fork_communicates() {
  say("before", sum_once());
  const pid_t child = fork();
  if (child == 0) {
    say("child", sum_once() + sum_once());
    std::exit(6);
  }
  say("status", wait_for(child));
  for (int i = 0; i < 3; ++i) say("after", sum_once());
  MPI_Finalize();
  return 0;
}

int mode_fork_exec() {
  say("before", sum_once());
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "echo from a shell; exit 4", static_cast<char*>(nullptr));
    _exit(127);
  }
  say("status", wait_for(child));
  say("after", sum_once());
  return 0;
}

int mode_vfork() {
  say("before", sum_once());
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(127);
  }
  say("status", wait_for(child));
  say("after", sum_once());
  return 0;
}

int mode_posix_spawn() {
  say("before", sum_once());
  pid_t child = 0;
  char name[] = "sh";
  char flag[] = "-c";
  char command[] = "exit 9";
  char* arguments[] = {name, flag, command, nullptr};
  say("spawned", posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environ));
  say("status", wait_for(child));
  say("after", sum_once());
  return 0;
}

std::atomic<int> g_total{0};
void* many_calls(void* argument) {
  const auto peer = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  int value = 1;
  for (int i = 0; i < 2000; ++i) {
    MPI_Send(&value, 1, MPI_INT, 0, peer, MPI_COMM_WORLD);
    g_total += value;
  }
  return nullptr;
}

int mode_threads() {
  std::vector<pthread_t> threads(16);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    pthread_create(&threads[i], nullptr, many_calls, reinterpret_cast<void*>(i + 1));
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  say("total", g_total);
  MPI_Finalize();
  return 0;
}

// Two threads in one communicator at once, which MPI forbids; and one after the other, which it does not.
void* slow_broadcast(void*) {
  char buffer[77];
  MPI_Bcast(buffer, 77, MPI_CHAR, 0, MPI_COMM_WORLD);
  return nullptr;
}
int mode_concurrent() {
  pthread_t thread;
  pthread_create(&thread, nullptr, slow_broadcast, nullptr);
  usleep(30'000);
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  pthread_join(thread, nullptr);
  say("done", 1);
  return 0;
}
int mode_alternating() {
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, slow_broadcast, nullptr);
    pthread_join(thread, nullptr);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  say("done", 1);
  return 0;
}

// More threads over time than the ring has blocks.
int mode_short_threads() {
  for (int i = 0; i < 700; ++i) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          sum_once();
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
  }
  say("done", 700);
  return 0;
}

void communicate_at_exit() { say("at exit", sum_once()); }
int mode_atexit() {
  std::atexit(communicate_at_exit);
  say("main", sum_once());
  return 11;
}

int mode_abort() {
  say("before", sum_once());
  MPI_Abort(MPI_COMM_WORLD, 23);
  return 0;
}

int mode_exit_without_finalize() {
  say("before", sum_once());
  std::exit(13);
}

int mode_underscore_exit() {
  say("before", sum_once());
  _exit(14);
}

int mode_raise() {
  say("before", sum_once());
  raise(SIGTERM);
  return 0;
}

std::atomic<int> g_ticks{0};
int mode_signals() {
  signal(SIGALRM, [](int) { ++g_ticks; });
  itimerval often{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  int total = 0;
  for (int i = 0; i < 300000 || g_ticks < 20; ++i) total = sum_once();
  itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  say("sum", total);
  return 0;
}

// The library leaves EXDEV in errno at a barrier, and nothing at a reduction.
int mode_errno() {
  errno = ERANGE;
  sum_once();
  say("errno kept", errno == ERANGE ? 1 : 0);
  MPI_Barrier(MPI_COMM_WORLD);
  say("errno of the library", errno == EXDEV ? 1 : 0);
  return 0;
}

int mode_environment() {
  sum_once();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0 && std::strncmp(*variable, "LOCKSTEP", 8) != 0)
      std::puts(*variable);
  }
  return 0;
}

int mode_descriptors() {
  const auto print = [] {
    DIR* directory = opendir("/proc/self/fd");
    int count = 0;
    for (const dirent* entry = readdir(directory); entry != nullptr; entry = readdir(directory)) ++count;
    closedir(directory);
    say("descriptors", count);
  };
  print();
  say("sum", sum_once());
  print();
  return 0;
}

int mode_silent() {
  say("never communicates", 0);
  return 0;
}

// Asks about three things in turn, none of which happens, then goes on.
int mode_polls_in_turn() {
  int value = 0;
  int flag = 0;
  MPI_Request requests[2];
  for (MPI_Request& request : requests) MPI_Isend(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
  MPI_Request none = MPI_REQUEST_NULL;
  for (int i = 0; i < 1000; ++i) {
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
    MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
  }
  say("sum", sum_once());
  return 0;
}

// Ten times two messages, each pair polled until it is complete.
int mode_polls() {
  int value = 0;
  for (int i = 0; i < 10; ++i) {
    MPI_Request requests[2];
    for (MPI_Request& request : requests) MPI_Isend(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request);
    int polls = 0;
    for (int flag = 0; flag == 0; ++polls) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    say("polls", polls);
  }
  return 0;
}

// Leaves calls by other ways than their return, as an error handler may.
jmp_buf g_back;
int mode_jump() {
  for (int i = 0; i < 3; ++i) {
    if (setjmp(g_back) == 0) {
      MPI_Status status;
      MPI_Recv(nullptr, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, &status);  // the stub jumps back for tag 99
    }
    say("sum", sum_once());
  }
  return 0;
}

int mode_throw() {
  for (int i = 0; i < 3; ++i) {
    try {
      MPI_Recv(nullptr, 1, MPI_INT, 0, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // the stub throws for tag 98
    } catch (const std::runtime_error& error) {
      std::puts(error.what());
    }
    say("sum", sum_once());
  }
  return 0;
}

// Counted calls on two communicators, for tests of ring and checkpoints; ends as argv[2] says.
int mode_count(int calls, int differ_at) {
  int value = 0;
  for (int i = 0; i < calls; ++i) {
    MPI_Allreduce(&i, &value, 1, MPI_INT, i == differ_at ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  }
  say("value", value);
  return 0;
}

// From now on any system call but write and exit ends the process. (The strict mode would take the time stamp
// counter away as well.)
bool forbid_system_calls() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int mode_strict() {
  int value = 0;
  sum_once();
  MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request request = MPI_REQUEST_NULL;
  for (int round = 0; round < 2; ++round) {
    if (round == 1 && !forbid_system_calls()) return 3;
    for (int i = 0; i < (round == 0 ? 1 : 400000); ++i) {
      MPI_Allreduce(&i, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      MPI_Send(&value, 1, MPI_INT, 0, i & 0xFF, MPI_COMM_WORLD);
      MPI_Isend(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  static const char kText[] = "no system call\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, kText, sizeof kText - 1);
  syscall(SYS_exit, 0);
  return 0;
}

int mode_vanish() {
  say("sum", sum_once());
  const char* directory = std::getenv("LOCKSTEP_DIR");
  if (directory != nullptr) {
    const std::string command = std::string("rm -rf ") + directory;
    [[maybe_unused]] const int status = std::system(command.c_str());
  }
  for (int i = 0; i < 100000; ++i) sum_once();
  say("sum", sum_once());
  return 0;
}

// Until it is killed. The first number says that the recorder is on.
int mode_endless() {
  say("sum", sum_once());
  int peer = 0;
  for (;;) {
    sum_once();
    MPI_Send(&peer, 1, MPI_INT, 0, ++peer & 0xFF, MPI_COMM_WORLD);
  }
}

struct Mode {
  const char* name;
  int (*run)();
};
const Mode kModes[] = {
    {"plain", mode_plain},
    {"fork", mode_fork},
    {"fork_communicates", mode_fork_communicates},
    {"fork_exec", mode_fork_exec},
    {"vfork", mode_vfork},
    {"posix_spawn", mode_posix_spawn},
    {"threads", mode_threads},
    {"concurrent", mode_concurrent},
    {"alternating", mode_alternating},
    {"short_threads", mode_short_threads},
    {"atexit", mode_atexit},
    {"abort", mode_abort},
    {"exit_without_finalize", mode_exit_without_finalize},
    {"underscore_exit", mode_underscore_exit},
    {"raise", mode_raise},
    {"signals", mode_signals},
    {"polls", mode_polls}, {"polls_in_turn", mode_polls_in_turn},
    {"errno", mode_errno},
    {"environment", mode_environment},
    {"descriptors", mode_descriptors},
    {"silent", mode_silent},
    {"jump", mode_jump},
    {"throw", mode_throw},
    {"endless", mode_endless},
    {"strict", mode_strict},
    {"vanish", mode_vanish},
};

}  // namespace

// Called back by the stub for special tags: see MPI_Recv there.
extern "C" void stub_leave_call(int tag) {
  if (tag == 99) longjmp(g_back, 1);
  if (tag == 98) throw std::runtime_error("thrown by the library");
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "plain";
  if (const char* files = std::getenv("STUB_NOFILE")) {
    // Here and not before the program: the loader needs descriptors too.
    const rlimit limit{static_cast<rlim_t>(std::atoi(files)), static_cast<rlim_t>(std::atoi(files))};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (mode != "silent") MPI_Init(&argc, &argv);
  if (mode == "count" && argc > 2) return mode_count(std::atoi(argv[2]), argc > 3 ? std::atoi(argv[3]) : -1);
  for (const Mode& known : kModes) {
    if (mode == known.name) return known.run();
  }
  return 2;
}
