#!/usr/bin/python3
"""`lockstep run` becomes the command: status, signals, streams, arguments and environment are the command's own.

Usage: run_test.py LOCKSTEP LIBRARY      LIBRARY is liblockstep.so of the same build
"""
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, LIBRARY = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])


def run(*arguments, env=None, stdin=b"", **options):
    variables = {name: value for name, value in os.environ.items()
                 if name != "LD_PRELOAD" and not name.startswith("LOCKSTEP")}
    variables.update(env or {})
    return subprocess.run([LOCKSTEP, "run", *arguments], env=variables, input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, **options)


def shell(text, *arguments, **options):
    return run("--", "/bin/sh", "-c", text, "sh", *arguments, **options)


class Run(unittest.TestCase):
    def test_the_status_is_the_commands(self):
        for status in (0, 1, 3, 42, 255):
            self.assertEqual(shell(f"exit {status}").returncode, status)

    def test_the_signal_is_the_commands(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            self.assertEqual(shell(f"kill -{int(number)} $$").returncode, -number)

    def test_no_process_stands_between(self):
        with subprocess.Popen([LOCKSTEP, "run", "/bin/sh", "-c", "echo $$ $PPID"], stdout=subprocess.PIPE) as process:
            own, parent = process.stdout.read().split()
        self.assertEqual((int(own), int(parent)), (process.pid, os.getpid()))

    def test_streams_are_untouched(self):
        text = bytes(range(256)) * 1000
        done = run("--", "cat", stdin=text)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (text, b"", 0))
        done = shell("read line; echo out $line; echo err >&2", stdin=b"first\nsecond\n")
        self.assertEqual((done.stdout, done.stderr), (b"out first\n", b"err\n"))

    def test_a_closed_pipe_ends_the_command_as_ever(self):
        # /proc says what is ignored: bit SIGPIPE - 1.
        done = run("--", "/bin/cat", "/proc/self/status")
        ignored = next(line for line in done.stdout.decode().splitlines() if line.startswith("SigIgn"))
        plain = subprocess.run(["/bin/cat", "/proc/self/status"], stdout=subprocess.PIPE, check=False).stdout.decode()
        self.assertIn(ignored, plain.splitlines())

    def test_arguments_arrive_as_they_are(self):
        words = ["a b", "", "--dir", "-x", "--", "*", "quo\"te", "new\nline", "--help"]
        done = shell("printf '%s\\0' \"$@\"", *words)
        self.assertEqual(done.stdout.decode().split("\0")[:-1], words)

    def test_the_first_word_that_is_no_option_begins_the_command(self):
        self.assertEqual(run("echo", "--ring", "x").stdout, b"--ring x\n")
        self.assertEqual(run("--dir=/d", "echo", "--dir").stdout, b"--dir\n")

    def test_preload_keeps_what_is_there(self):
        self.assertEqual(shell("echo $LD_PRELOAD").stdout.decode(), LIBRARY + "\n")
        # The loader complains about the library that does not exist; that is its affair.
        done = shell("echo $LD_PRELOAD", env={"LD_PRELOAD": "libabsent.so:other.so"})
        self.assertEqual(done.stdout.decode(), LIBRARY + ":libabsent.so:other.so\n")

    def test_nested_runs_preload_once(self):
        done = run("--", LOCKSTEP, "run", "--", "/bin/sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(done.stdout.decode(), LIBRARY + "\n")

    def test_only_what_options_say_is_set(self):
        names = "env | grep ^LOCKSTEP | sort"
        self.assertEqual(shell(names).stdout, b"")
        self.assertEqual(shell(names, env={"LOCKSTEP_MODE": "640"}).stdout, b"LOCKSTEP_MODE=640\n")
        with tempfile.TemporaryDirectory() as folder:
            here = os.path.realpath(folder)
            done = run("--dir", "traces", "--ring", "1M", "--", "/bin/sh", "-c", names, cwd=here)
            self.assertEqual(done.stdout.decode(), f"LOCKSTEP_DIR={here}/traces\nLOCKSTEP_RING=1M\n")

    def test_a_command_that_is_not_there(self):
        done = run("--", "no-such-command-of-ours")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr, b"lockstep run: no-such-command-of-ours: command not found\n")

    def test_a_command_that_cannot_be_executed(self):
        with tempfile.NamedTemporaryFile() as file:
            done = run(file.name)
            self.assertEqual(done.returncode, 126)
            self.assertEqual(done.stderr.decode(), f"lockstep run: {file.name}: Permission denied\n")
        self.assertEqual(run("/").returncode, 126)

    def test_wrong_usage(self):
        for arguments in ([], ["--"], ["--dir"], ["--ring", "1", "true"], ["--ring", "99T", "true"], ["--rnig", "1M", "true"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertTrue(done.stderr.startswith(b"lockstep run: "), done.stderr)

    def test_without_the_library_nothing_is_started(self):
        done = run("echo", "started", env={"LOCKSTEP_LIBRARY": "/nowhere/liblockstep.so"})
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertEqual(done.stderr, b"lockstep run: LOCKSTEP_LIBRARY: no file /nowhere/liblockstep.so\n")

    def test_a_path_that_the_loader_would_split(self):
        with tempfile.TemporaryDirectory(prefix="two words") as folder:
            library = pathlib.Path(folder) / "liblockstep.so"
            library.write_bytes(pathlib.Path(LIBRARY).read_bytes())
            done = run("true", env={"LOCKSTEP_LIBRARY": str(library)})
            self.assertEqual(done.returncode, 125)
            self.assertIn(b"space or colon", done.stderr)

    def test_an_installed_command_finds_its_library(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(os.path.realpath(folder))
            command, library = prefix / "bin/lockstep", prefix / "lib/lockstep/liblockstep.so"
            for source, target in ((LOCKSTEP, command), (LIBRARY, library)):
                target.parent.mkdir(parents=True)
                target.write_bytes(pathlib.Path(source).read_bytes())
                target.chmod(stat.S_IRWXU)
            done = subprocess.run([command, "run", "/bin/sh", "-c", "echo $LD_PRELOAD"], stdout=subprocess.PIPE,
                                  check=False)
            self.assertEqual(done.stdout.decode(), f"{library}\n")


unittest.main(argv=sys.argv[:1])
