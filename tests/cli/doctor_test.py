#!/usr/bin/python3
"""`lockstep doctor` sees what would keep a program from being recorded, without running it.

Usage: doctor_test.py LOCKSTEP LIBRARY
"""
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, LIBRARY = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
COMPILER = shutil.which("g++") or shutil.which("c++")
PYTHON = os.path.realpath("/usr/bin/python3")


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(os.path.realpath(tempfile.mkdtemp()))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def doctor(self, *command, env=None, **options):
        """{subject: (state, what, fix)}; the last of several with one subject."""
        variables = {name: value for name, value in os.environ.items()
                     if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH") and not name.startswith("LOCKSTEP")}
        variables.update(env or {})
        done = subprocess.run([LOCKSTEP, "doctor", "--format", "json", *(["--", *command] if command else [])],
                              env=variables, cwd=options.pop("cwd", self.folder), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False, **options)
        self.assertEqual(done.stderr, b"")
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if report["problems"] else 0)
        return {check["subject"]: (check["state"], check["what"], check.get("fix")) for check in report["checks"]}

    def assert_problem(self, check, words):
        self.assertEqual(check[0], "problem", check)
        self.assertIn(words, check[1])
        self.assertTrue(check[2])

    def build(self, name, source, *flags):
        if COMPILER is None:
            self.skipTest("no compiler")
        path = self.folder / name
        done = subprocess.run([COMPILER, "-x", "c++", "-", "-x", "none", "-o", str(path), *map(str, flags)], input=source.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0 and "-static" in flags:
            self.skipTest("no static libc")
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return str(path)

    def test_nothing_in_the_way(self):
        checks = self.doctor(PYTHON)
        self.assertEqual({check[0] for check in checks.values()} - {"ok", "note"}, set())
        self.assertIn(LIBRARY, checks["library"][1])
        self.assertIn(PYTHON, checks["program"][1])
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_program_is_not_run(self):
        script = self.folder / "script"
        script.write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
        script.chmod(0o755)
        self.doctor("./script")
        self.assertEqual(os.listdir(self.folder), ["script"])

    def test_python(self):
        checks = self.doctor(PYTHON, "train.py")
        version = pathlib.Path(PYTHON).name.removeprefix("python")
        self.assertIn(f"Python {version}", checks["Python"][1])
        self.assertIn("torch.distributed", checks["Python"][1])
        self.assertIn("cannot be seen", checks["ctypes"][1])

    def test_a_script_is_its_interpreter(self):
        script = self.folder / "a script"
        script.write_text(f"#!/usr/bin/env -S {PYTHON} -u\n", encoding="utf-8")
        script.chmod(0o755)
        self.assertIn(PYTHON, self.doctor(str(script))["program"][1])
        script.write_text("#!/nowhere/python\n", encoding="utf-8")
        self.assert_problem(self.doctor(str(script))["program"], "/nowhere/python: no such program")

    def test_wrappers_are_seen_through(self):
        checks = self.doctor("env", "A=1", "nice", "-n", "3", PYTHON)
        self.assertIn(PYTHON, checks["program"][1])

    def test_a_launcher(self):
        launcher = self.folder / "mpirun"
        launcher.write_text("#!/bin/sh\n", encoding="utf-8")
        launcher.chmod(0o755)
        checks = self.doctor(str(launcher), "-n", "4", PYTHON)
        self.assertEqual(checks["launcher"][0], "note")
        self.assertIn("lockstep run", checks["launcher"][2])
        self.assertIn(PYTHON, checks["program"][1])

    def test_a_command_that_is_not_there(self):
        self.assert_problem(self.doctor("no-such-command-of-ours")["program"], "no such program")

    def test_a_static_program(self):
        path = self.build("static", "int main() {}", "-static")
        self.assert_problem(self.doctor(path)["program"], "statically linked")

    def test_mpi_linked_statically(self):
        path = self.build("all_in_one", 'extern "C" int PMPI_Init(int*, char***) { return 0; } int main() {}')
        self.assert_problem(self.doctor(path)["MPI"], "linked statically")

    def test_nccl_that_is_linked(self):
        function = 'extern "C" int ncclAllReduce() { return 0; }'
        nccl = self.build("libnccl.so.2", function, "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2")
        user = 'extern "C" int ncclAllReduce(); int main() { return ncclAllReduce(); }'
        path = self.build("user", user, "-Wl,-rpath,$ORIGIN", nccl)
        self.assertIn(nccl, self.doctor(path)["NCCL"][1])
        path = self.build("static_user", function + " int main() {}")
        self.assert_problem(self.doctor(path)["NCCL"], "linked statically")

    def test_a_library_that_is_missing(self):
        library = self.build("libgone.so", 'extern "C" int f() { return 0; }', "-shared", "-fPIC", "-Wl,-soname,libgone.so")
        path = self.build("user", 'extern "C" int f(); int main() { return f(); }', library)
        self.assert_problem(self.doctor(path)["needs"], "libgone.so")
        checks = self.doctor(path, env={"LD_LIBRARY_PATH": str(self.folder)})
        self.assertNotIn("needs", checks)

    def test_a_program_for_another_machine(self):
        path = self.folder / "foreign"
        contents = bytearray(pathlib.Path(PYTHON).read_bytes()[:8192])
        contents[18:20] = struct.pack("<H", 243)
        path.write_bytes(contents)
        path.chmod(0o755)
        self.assert_problem(self.doctor(str(path))["program"], "riscv")

    def test_a_set_user_id_program(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to give a file away")
        path = self.folder / "other"
        shutil.copy(PYTHON, path)
        os.chown(path, 65534, 65534)
        path.chmod(0o4755)
        self.assert_problem(self.doctor(str(path))["rights"], "set-user-id: the loader ignores LD_PRELOAD")

    def test_the_library(self):
        self.assert_problem(self.doctor(env={"LOCKSTEP_LIBRARY": "/nowhere/x.so"})["library"], "/nowhere/x.so")
        self.assert_problem(self.doctor(env={"LOCKSTEP_LIBRARY": PYTHON})["library"], "is not Lockstep's recorder")
        (self.folder / "x.so").write_bytes(pathlib.Path(LIBRARY).read_bytes()[:100])
        self.assert_problem(self.doctor(env={"LOCKSTEP_LIBRARY": str(self.folder / "x.so")})["library"], "cut")
        (self.folder / "a b").mkdir()
        shutil.copy(LIBRARY, self.folder / "a b")
        self.assert_problem(self.doctor(env={"LOCKSTEP_LIBRARY": str(self.folder / "a b/liblockstep.so")})["library"], "space")

    def test_variables(self):
        self.assert_problem(self.doctor(env={"LOCKSTEP": "0"})["LOCKSTEP"], "LOCKSTEP=0")
        self.assertEqual(self.doctor(env={"LOCKSTEP_RING": "lots"})["LOCKSTEP_RING"][0], "note")
        self.assertEqual(self.doctor(env={"LOCKSTEP_MODE": "rw"})["LOCKSTEP_MODE"][0], "note")

    def test_another_preload(self):
        other = self.build("other.so", "int other;", "-shared", "-fPIC")
        self.assertEqual(self.doctor(env={"LD_PRELOAD": other})["LD_PRELOAD"][0], "ok")
        stands_in = self.build("tool.so", 'extern "C" int MPI_Send() { return 0; }', "-shared", "-fPIC")
        self.assertEqual(self.doctor(env={"LD_PRELOAD": stands_in})["LD_PRELOAD"][0], "note")

    def test_the_directory(self):
        self.assert_problem(self.doctor(env={"LOCKSTEP_DIR": "/dev/null/traces"})["directory"], "/dev/null")
        long = self.folder / "/".join(["long" * 50] * 5)
        self.assert_problem(self.doctor(env={"LOCKSTEP_DIR": str(long)})["directory"], "too long")
        checks = self.doctor(env={"LOCKSTEP_LOCAL_DIR": "/dev/shm"})
        self.assertEqual(checks["directory"][0], "note")
        self.assertIn("/dev/shm/lockstep-", checks["directory"][1])

    def test_a_directory_that_cannot_be_written(self):
        # Root may write everywhere, so somebody else has to try.
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        options = {"user": 65534} if os.geteuid() == 0 else {}
        try:
            checks = self.doctor(**options)
        except PermissionError:
            self.skipTest("the build tree is not readable for others")
        self.assert_problem(checks["directory"], "Permission denied")

    def test_limits(self):
        def limited(which, value):
            return self.doctor(preexec_fn=lambda: resource.setrlimit(which, (value, value)))
        self.assert_problem(limited(resource.RLIMIT_FSIZE, 64 << 10)["limits"], "RLIMIT_FSIZE")
        self.assertEqual(limited(resource.RLIMIT_FSIZE, 1 << 20)["limits"][0], "note")
        self.assert_problem(limited(resource.RLIMIT_NOFILE, 6)["limits"], "RLIMIT_NOFILE")

    def test_wrong_usage(self):
        for arguments in (["prog"], ["--format", "xml"], ["--frmat", "json"]):
            done = subprocess.run([LOCKSTEP, "doctor", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)

    def test_damaged_programs(self):
        whole = pathlib.Path(LIBRARY).read_bytes()
        noise = random.Random(7)
        path = self.folder / "damaged"
        for trial in range(150):
            contents = bytearray(whole[: noise.choice([0, 3, 17, 52, 63, 64, 100, 700, 5000, len(whole)])])
            for _ in range(noise.randrange(1, 40)):
                if contents:
                    # Most of what steers a reader stands in the first bytes.
                    limit = min(len(contents), noise.choice([64, 1024, len(contents)]))
                    contents[noise.randrange(limit)] = noise.randrange(256)
            path.write_bytes(contents)
            path.chmod(0o755)
            with self.subTest(trial=trial):
                self.doctor(str(path))


unittest.main(argv=sys.argv[:1])
