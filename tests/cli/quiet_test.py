#!/usr/bin/python3
"""The reading subcommands open no connection, start no process and write to no file but those that they are told to.

Usage: quiet_test.py LOCKSTEP TRACES GOLDEN. Seen from outside, by strace; exit status 77 where that cannot trace.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, TRACES, GOLDEN = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])


def traced(folder, *command):
    """The system calls that matter, one a line, without process ids."""
    log = folder / "strace.log"
    # Where debuginfod answered, names of native call sites would come over the network.
    env = dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:9")
    done = subprocess.run(["strace", "-f", "-qq", "-e", "signal=none", "-e",
                           "trace=%network,%process,open,openat,creat,unlink,rename", "-o", str(log), *map(str, command)],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False, env=env)
    return done, [re.sub(r"^\d+\s+", "", line) for line in log.read_text(errors="replace").splitlines()]


class Quiet(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(os.path.realpath(tempfile.mkdtemp()))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def expect_quiet(self, arguments, written=()):
        _, calls = traced(self.folder, LOCKSTEP, *arguments)
        self.assertTrue(any(call.startswith("execve(") for call in calls), "nothing was traced")
        seen = set()
        for call in calls:
            name = call.split("(")[0]
            self.assertNotIn(name, ("socket", "connect", "socketpair", "bind", "sendto", "vfork", "fork", "creat", "unlink",
                                    "rename"), call)
            if name in ("clone", "clone3"):
                self.assertIn("CLONE_THREAD", call)
            if name == "execve":
                self.assertIn(LOCKSTEP, call)
            if name in ("open", "openat") and re.search(r"O_WRONLY|O_RDWR|O_CREAT", call):
                seen.add(re.search(r'"([^"]*)"', call).group(1))
        self.assertLessEqual(seen, {str(path) for path in written})
        self.assertEqual(len(seen), len(written))

    def test_check_of_traces_with_native_sites(self):
        self.expect_quiet(["check", TRACES])

    def test_check_with_an_output_file(self):
        self.expect_quiet(["check", f"{GOLDEN}/hostile_names/job.json", "--output",
                           f"json={self.folder}/report.json"], [self.folder / "report.json"])

    def test_show_and_explain(self):
        self.expect_quiet(["show", TRACES])
        self.expect_quiet(["explain", "size_differs"])

    def test_doctor(self):
        self.expect_quiet(["doctor", "--", "/bin/true"])

    def test_json_is_ascii_whatever_the_input_holds(self):
        done = subprocess.run([LOCKSTEP, "check", "--format", "json", f"{GOLDEN}/hostile_names/job.json"], capture_output=True,
                              timeout=60, check=False)
        self.assertTrue(done.stdout.isascii() and done.stdout)
        self.assertFalse(re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", done.stdout))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        try:
            works = traced(pathlib.Path(place), "/bin/true")[0].returncode == 0
        except OSError:
            works = False
    if not works:
        print("skipped: strace is not installed, or may not trace")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
