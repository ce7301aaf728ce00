"""What the recorder adds to torch.distributed: torch_cost.py LIBRARY [PYTHON]. Prints, decides nothing.

Two jobs, one with and one without the recorder, live side by side and take turns in blocks of calls, so that both meet the same machine:
a one-element all_reduce between two ranks (as a ratio), and in a group of one rank, where nothing is waited for (as ns a call)."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/torch_hangs"))
from launch import free_port

BLOCK = 300
ROUNDS = 60

WORKER = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
tensor = torch.zeros(1)
one = dist.new_group([0])
def block(count, group):
    times = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        dist.all_reduce(tensor, group=group)
        times.append(time.perf_counter_ns() - begin)
    times.sort()
    return times
first = dist.get_rank() == 0
for line in sys.stdin:
    word, count = line.split()
    if word == "alone" and not first:
        print("0 0", flush=True)
        continue
    times = block(int(count), one if word == "alone" else None)
    print(times[len(times) // 20], times[len(times) // 2], flush=True)
"""


def start(python, library, traces):
    port = free_port()
    environment = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo",
                       OMP_NUM_THREADS="1")
    if library:
        environment.update(LD_PRELOAD=library, LOCKSTEP_DIR=traces)
    return [subprocess.Popen([python, "-c", WORKER], env=dict(environment, RANK=str(rank)), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) for rank in range(2)]


def ask(job, word):
    for process in job:
        process.stdin.write(f"{word} {BLOCK}\n")
        process.stdin.flush()
    return [tuple(int(value) for value in process.stdout.readline().split()) for process in job][0]


def main():
    library = os.path.abspath(sys.argv[1])
    python = sys.argv[2] if len(sys.argv) > 2 else "/usr/bin/python3"
    with tempfile.TemporaryDirectory() as traces:
        jobs = {"without": start(python, None, None), "recorded": start(python, library, traces)}
        for word, what in (("alone", "all_reduce in a group of one, ns a call"), ("pair", "all_reduce of two ranks, ns a call")):
            seen = {name: [] for name in jobs}
            for _ in range(ROUNDS):
                for name, job in jobs.items():
                    seen[name].append(ask(job, word))
            low = {name: min(value[0] for value in values) for name, values in seen.items()}
            middle = {name: sorted(value[1] for value in values)[len(values) // 2] for name, values in seen.items()}
            print(f"{what}: lowest p5 {low['without']} without, {low['recorded']} recorded, {low['recorded'] - low['without']:+} "
                  f"({low['recorded'] / low['without']:.3f}); median of medians {middle['without']}, {middle['recorded']} "
                  f"({middle['recorded'] / middle['without']:.3f})")
        for job in jobs.values():
            for process in job:
                process.stdin.close()
                process.wait()


main()
