#!/usr/bin/python3
"""`lockstep pack` makes one private file that is read like the traces it was made of.

Usage: pack_test.py LOCKSTEP LIBRARY TRACES [HOST]
TRACES is a directory with the traces of a run; HOST is tests/shim's host program, for the test on a live trace.
"""
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, LIBRARY, TRACES = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
HOST = sys.argv[4] if len(sys.argv) > 4 else None


def lockstep(*arguments, **options):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, **options)


def unpacked(path):
    """All frames of a pack."""
    zstd = ctypes.CDLL("libzstd.so.1")
    for name in ("ZSTD_decompress", "ZSTD_findFrameCompressedSize", "ZSTD_getFrameContentSize"):
        getattr(zstd, name).restype = ctypes.c_ulonglong
    packed, result = path.read_bytes()[64:], b""
    while packed:
        size = zstd.ZSTD_findFrameCompressedSize(packed, ctypes.c_size_t(len(packed)))
        content = ctypes.create_string_buffer(zstd.ZSTD_getFrameContentSize(packed, ctypes.c_size_t(len(packed))))
        got = zstd.ZSTD_decompress(content, ctypes.c_size_t(len(content)), packed, ctypes.c_size_t(size))
        assert got == len(content)
        result, packed = result + content.raw, packed[size:]
    return result


def texts_of_process(trace):
    """Host, program, run, launcher, version and directory in the first side record (schemas/FORMAT.md)."""
    data = trace.read_bytes()
    side, = struct.unpack_from("<Q", data, 48)
    length, = struct.unpack_from("<I", data, side + 4)
    return [text.decode() for text in data[side + 40:side + length].split(b"\0")[:6]]


class Pack(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(os.path.realpath(tempfile.mkdtemp()))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.file = self.folder / "hang.lspack"

    def pack(self, *arguments, source=TRACES, **options):
        done = lockstep("pack", source, "-o", self.file, *arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return self.file

    def report(self, *inputs):
        done = lockstep("check", "--format", "json", *inputs)
        self.assertIn(done.returncode, (0, 1, 5), done.stderr)
        return done.returncode, json.loads(self.without_places(done.stdout))

    def without_places(self, text):
        """Where the evidence lies is all that may differ between traces and their pack."""
        return text.decode().replace(f"{self.file}:v1/", "").replace(f"{TRACES}/", "")

    def assert_error(self, done, code, *words):
        self.assertEqual((done.returncode, done.stdout), (code, b""), done)
        for word in words:
            self.assertIn(word, done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1 if code != 2 else 2)

    def test_the_same_report(self):
        whole, packed = self.report(TRACES), self.report(self.pack())
        self.assertEqual(packed, whole)
        self.assertLess(self.file.stat().st_size, 20_000)
        calls = [self.without_places(lockstep("show", source).stdout) for source in (self.file, TRACES)]
        self.assertEqual(*calls)

    def test_names_are_redacted_and_findings_are_not(self):
        traces = list(pathlib.Path(TRACES).rglob("*.lst"))
        host, program, _, _, _, directory = texts_of_process(traces[0])
        whole = self.report(TRACES)
        self.pack()
        self.assertTrue(directory.encode() in unpacked(self.file))
        self.pack("--redact", "paths,hosts")
        content = unpacked(self.file)
        for name in (program, directory, directory.split("/")[-1]):
            self.assertFalse(name.encode() in content, name)  # the bytes are not worth printing
        self.assertIsNone(re.search(rb"(?<![A-Za-z0-9])" + host.encode() + rb"(?![A-Za-z0-9])", content))
        self.assertTrue(b"host1" in content)
        packed = self.report(self.file)
        self.assertEqual(packed[0], whole[0])
        self.assertEqual(packed[1]["verdict"], whole[1]["verdict"])
        self.assertEqual([finding["class"] for finding in packed[1]["findings"]],
                         [finding["class"] for finding in whole[1]["findings"]])

    def test_the_file_is_private_and_the_only_one(self):
        before = sorted(path.name for path in pathlib.Path(TRACES).rglob("*"))
        self.pack(cwd=self.folder, umask=0)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.file.chmod(0o666)
        self.pack(cwd=self.folder)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.assertEqual(os.listdir(self.folder), ["hang.lspack"])
        self.assertEqual(sorted(path.name for path in pathlib.Path(TRACES).rglob("*")), before)

    def test_it_does_not_write_elsewhere(self):
        copy = self.folder / "run"
        shutil.copytree(TRACES, copy)
        trace = next(copy.rglob("*.lst"))
        before = trace.read_bytes()
        self.assert_error(lockstep("pack", copy, "-o", trace), 2, "is one of the traces")
        self.assertEqual(trace.read_bytes(), before)
        target = self.folder / "target"
        target.write_bytes(b"mine")
        self.file.symlink_to(target)
        done = lockstep("pack", TRACES, "-o", self.file)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(target.read_bytes(), b"mine")
        self.assertEqual(lockstep("pack", TRACES, "-o", self.folder).returncode, 4)
        self.assertEqual(lockstep("pack", TRACES, "-o", self.folder / "no/where").returncode, 4)

    def test_a_tail(self):
        everything = int(lockstep("pack", TRACES, "-o", self.file).stdout.split()[3])
        self.assertGreater(everything, 10)
        self.pack("--tail", "1")
        self.assertIn(lockstep("check", self.file).returncode, (0, 1, 5))

    def test_the_newest_run_of_several(self):
        runs = self.folder / "lockstep-trace"
        for name, start in (("a.r0", "10"), ("b.r0", "30"), ("c.r0", "20")):
            (runs / name).mkdir(parents=True)
            for number, trace in enumerate(sorted(pathlib.Path(TRACES).rglob("*.lst"))):
                shutil.copy(trace, runs / name / f"h.{number}.{start}.lst")
        done = lockstep("pack", runs, "-o", self.file)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"b.r0 is packed, the newest of 3 runs", done.stderr)
        content = unpacked(self.file)
        self.assertTrue(b"b.r0/h.0.30.lst" in content)
        self.assertFalse(b"c.r0" in content)

    def test_a_damaged_trace_beside_good_ones(self):
        copy = self.folder / "run"
        copy.mkdir()
        for number, trace in enumerate(sorted(pathlib.Path(TRACES).rglob("*.lst"))):
            shutil.copy(trace, copy / f"h.{number}.1.lst")
        (copy / "h.9.1.lst").write_bytes(b"\0" * 5000)
        done = lockstep("pack", copy, "-o", self.file)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"h.9.1.lst: an empty trace", done.stderr)
        self.assertEqual(self.report(self.file)[1]["verdict"], self.report(TRACES)[1]["verdict"])

    def test_nothing_to_pack(self):
        (self.folder / "empty").mkdir()
        self.assert_error(lockstep("pack", self.folder / "empty", "-o", self.file), 3, "no traces in it")
        self.assert_error(lockstep("pack", self.folder / "absent", "-o", self.file), 3, "No such file")
        (self.folder / "text.lst").write_text("hello", encoding="utf-8")
        self.assert_error(lockstep("pack", self.folder / "text.lst", "-o", self.file), 3, "too short for a trace")
        self.assertFalse(self.file.exists())

    def test_wrong_usage(self):
        for arguments in ([TRACES], ["-o", "x"], [TRACES, "-o", "x", "--redact", "names"], [TRACES, "-o", "x", "--tail", "-1"]):
            done = lockstep("pack", *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
        self.assertEqual(os.listdir(self.folder), [])

    def test_damaged_and_foreign_packs(self):
        whole = self.pack().read_bytes()
        bad = self.folder / "bad"
        for size in (8, 63, 64, 70, len(whole) // 2, len(whole) - 1):
            bad.write_bytes(whole[:size])
            self.assert_error(lockstep("check", bad), 3, str(bad))
        bad.write_bytes(whole[:12] + b"\x09" + whole[13:])
        self.assert_error(lockstep("check", bad), 3, "for readers from 9 on")
        bad.write_bytes(whole[:64] + b"PK\x03\x04 something else")
        self.assert_error(lockstep("check", bad), 3, "damaged in the frame at offset 64")
        noise = random.Random(3)
        for _ in range(40):
            flipped = bytearray(whole)
            flipped[noise.randrange(64, len(whole))] ^= 1 << noise.randrange(8)
            bad.write_bytes(flipped)
            self.assertIn(lockstep("check", bad).returncode, (0, 1, 3, 5))

    def test_a_live_trace(self):
        if HOST is None:
            self.skipTest("the host program is not built: no MPI header")
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LOCKSTEP_DIR=str(self.folder / "live"), LOCKSTEP_RING="256K")
        with subprocess.Popen([HOST, "endless"], stdout=subprocess.PIPE, env=environment) as host:
            host.stdout.read(1)
            try:
                for number in range(20):
                    self.pack(source=self.folder / "live")
                    done = lockstep("check", self.file)
                    self.assertIn(done.returncode, (0, 1, 5), done.stderr)
                    self.assertNotIn(b"damaged", done.stdout + done.stderr)
                    self.assertNotIn(b"stalled", done.stdout)  # the pack stands still, not the process
                    self.assertGreater(int(lockstep("pack", self.folder / "live", "-o", self.file).stdout.split()[3]), 0, number)
            finally:
                host.kill()


unittest.main(argv=sys.argv[:1])
