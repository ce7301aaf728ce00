#!/usr/bin/python3
"""`lockstep rehearse` becomes the command, on the stand-ins: what it sets, what it keeps, and a program that runs and hangs.

Usage: rehearse_test.py LOCKSTEP LIBRARY STANDIN PROGRAM    LIBRARY: liblockstep.so, STANDIN: folder of the stand-ins, PROGRAM: a
                                                            program over NCCL that forks its ranks
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, LIBRARY, STANDIN, PROGRAM = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:5])


def rehearse(*arguments, env=None, **options):
    variables = {name: value for name, value in os.environ.items()
                 if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH") and not name.startswith("LOCKSTEP")}
    variables.update(env or {})
    return subprocess.run([LOCKSTEP, "rehearse", *arguments], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, **options)


def shown(name, *options, env=None):
    done = rehearse(*options, "--", "/bin/sh", "-c", f"echo ${name}", env=env)
    return done.stdout.decode().rstrip("\n")


class Rehearse(unittest.TestCase):
    def test_a_program_runs_unmodified(self):
        with tempfile.TemporaryDirectory() as folder:
            done = rehearse("--dir", folder, PROGRAM, "3")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(done.stdout.decode().split("\n")), ["", "rank 0 ok", "rank 1 ok", "rank 2 ok"])

    def test_it_hangs_and_is_ended_with_a_line_for_each_process(self):
        done = rehearse("--no-record", "--timeout", "1", PROGRAM, "2", "skip", "1")
        self.assertEqual(done.returncode, 124)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(all("stood still for 1 s and is ended: rank " in line for line in lines), lines)

    def test_a_function_that_the_stand_in_lacks_is_named_once_and_fails(self):
        program = "import ctypes; r = ctypes.CDLL('libcudart.so.13'); print(r.cudaDeviceGetDefaultMemPool(None, 0), r.cudaDeviceGetDefaultMemPool(None, 0))"
        done = rehearse("--no-record", sys.executable, "-c", program)
        self.assertEqual(done.stdout, b"801 801\n", done.stderr)
        self.assertRegex(done.stderr.decode(), r"^lockstep rehearse: process \d+ calls cudaDeviceGetDefaultMemPool, which the stand-in [^\n]* does not "
                                               r"have: the call fails\n$")

    def test_a_mismatch_is_detected_where_that_is_wished(self):
        done = rehearse("--no-record", "--on-mismatch", "detect", "--timeout", "10", PROGRAM, "2", "skip", "1")
        self.assertEqual(done.returncode, 124 if b"stood still" in done.stderr else 123, done.stderr)
        self.assertIn(b"at collective #2: rank 0: all_reduce", done.stderr)

    def test_calls_of_a_program_that_opens_nccl_by_name_are_recorded_too(self):
        program = ("import ctypes; n = ctypes.CDLL('libnccl.so.2'); ctypes.CDLL('libcudart.so.13').cudaSetDevice(0); c = ctypes.c_void_p()\n"
                   "n.ncclCommInitAll(ctypes.byref(c), 1, None); n.ncclCommDestroy(c)\n")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "by_name.py"
            script.write_text(program, encoding="utf-8")
            command = ["/usr/bin/env", "MARK=1", "/usr/bin/python3", str(script)]  # behind a launcher
            self.assertEqual(rehearse("--dir", f"{folder}/traces", *command).returncode, 0)
            self.assertEqual(len(list(pathlib.Path(folder).glob("traces/*/*.lst"))), 1)
            self.assertEqual(rehearse("--no-audit", "--dir", f"{folder}/none", *command).returncode, 0)
            self.assertEqual(len(list(pathlib.Path(folder).glob("none/*/*.lst"))), 0)

    def test_the_stand_ins_come_first_and_paths_are_kept(self):
        self.assertEqual(shown("LD_LIBRARY_PATH"), STANDIN)
        self.assertEqual(shown("LD_LIBRARY_PATH", env={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}), f"{STANDIN}:/usr/local/cuda/lib64")
        self.assertEqual(shown("LD_LIBRARY_PATH", env={"LD_LIBRARY_PATH": f"{STANDIN}:/x"}), f"{STANDIN}:/x")

    def test_the_recorder_is_preloaded_unless_not_wished(self):
        self.assertEqual(shown("LD_PRELOAD"), LIBRARY)
        self.assertEqual(shown("LD_PRELOAD", "--no-record"), "")

    def test_options_become_settings_and_nothing_else_is_set(self):
        command = ["--", "/bin/sh", "-c", "env | grep ^LOCKSTEP | sort"]
        self.assertEqual(rehearse(*command).stdout, b"")
        done = rehearse("--p2p", "eager", "--groups", "nccl226", "--on-mismatch", "corrupt", "--resident", "1", "--devices", "2",
                        "--timeout", "7.5", "--nccl-version", "22203", "--fault", "skip:rank=0,comm=0,seq=1", *command)
        self.assertEqual(done.stdout.decode().split(), [
            "LOCKSTEP_REHEARSE_DEVICES=2", "LOCKSTEP_REHEARSE_FAULT=skip:rank=0,comm=0,seq=1", "LOCKSTEP_REHEARSE_GROUPS=nccl226",
            "LOCKSTEP_REHEARSE_NCCL_VERSION=22203", "LOCKSTEP_REHEARSE_ON_MISMATCH=corrupt", "LOCKSTEP_REHEARSE_P2P=eager",
            "LOCKSTEP_REHEARSE_RESIDENT=1", "LOCKSTEP_REHEARSE_TIMEOUT=7.5"])

    def test_statuses_are_the_commands(self):
        self.assertEqual(rehearse("--", "/bin/sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(rehearse("no-such-command-of-ours").returncode, 127)
        for arguments in ([], ["--p2p", "sometimes", "true"], ["--resident", "-1", "true"], ["--timeout", "0", "true"]):
            self.assertEqual(rehearse(*arguments).returncode, 2, arguments)

    def test_without_the_stand_ins_nothing_is_started(self):
        done = rehearse("echo", "started", env={"LOCKSTEP_STANDIN": "/nowhere"})
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertEqual(done.stderr, b"lockstep rehearse: LOCKSTEP_STANDIN: no libnccl.so.2 in /nowhere\n")

    def test_an_installed_command_finds_them(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(os.path.realpath(folder))
            files = [(LOCKSTEP, prefix / "bin/lockstep"), (LIBRARY, prefix / "lib/lockstep/liblockstep.so")]
            files += [(file, prefix / "lib/lockstep/standin" / file.name) for file in pathlib.Path(STANDIN).iterdir()]
            for source, target in files:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(pathlib.Path(source).read_bytes())
                target.chmod(0o755)
            done = subprocess.run([prefix / "bin/lockstep", "rehearse", "/bin/sh", "-c", "echo $LD_LIBRARY_PATH"],
                                  env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, check=False)
            self.assertEqual(done.stdout.decode(), f"{prefix}/lib/lockstep/standin\n")


unittest.main(argv=sys.argv[:1])
