#!/usr/bin/env python3
"""Starts N processes of a script with the variables that torchrun sets.

    python3 launch.py 3 checkpoint_barrier.py --fixed

The output of the ranks is what they print. The status is that of the first rank, by number, that failed; a rank that
fails leaves the others as they are, so a job that hangs after it hangs here, too. Ctrl-C and SIGTERM end all of them.
"""
import os
import random
import signal
import socket
import subprocess
import sys


CLAIMS = []  # held for the life of this process


def free_port():
    """A port on which rank 0 can listen a second later. The kernel would name a free one, too, and might meanwhile give it to
    any connection on this machine; so this one is below those that it gives away, and claimed from other callers of this
    function by a name (of an abstract socket: nothing is left behind)."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first_given_away = int(file.read().split()[0])
    ports = range(first_given_away - 10000, first_given_away) if first_given_away > 12000 else range(12000, 60000)
    while True:
        port = random.choice(ports)
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0lockstep-port-{port}")
            with socket.socket() as probe:
                probe.bind(("", port))
        except OSError:  # taken
            claim.close()
            continue
        CLAIMS.append(claim)
        return port


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit("usage: launch.py N SCRIPT [ARGUMENTS]")
    world_size = int(sys.argv[1])
    job = dict(os.environ, WORLD_SIZE=str(world_size), LOCAL_WORLD_SIZE=str(world_size), MASTER_ADDR="127.0.0.1",
               MASTER_PORT=str(free_port()), OMP_NUM_THREADS="1")
    command = [sys.executable, *sys.argv[2:]]
    ranks = [subprocess.Popen(command, env=dict(job, RANK=str(r), LOCAL_RANK=str(r))) for r in range(world_size)]

    def end_all(signum, _frame):
        for rank in ranks:
            rank.kill()
        sys.exit(128 + signum)

    signal.signal(signal.SIGINT, end_all)
    signal.signal(signal.SIGTERM, end_all)
    statuses = [rank.wait() for rank in ranks]
    sys.exit(next((status if status > 0 else 128 - status for status in statuses if status != 0), 0))


if __name__ == "__main__":
    main()
