#!/usr/bin/python3
"""`lockstep check` on inputs as people hand them in: archives by mistake, folders, pipes, compressed logs, lines without end, control characters;
and the line of progress, which a terminal gets and nothing else.

Usage: inputs_test.py LOCKSTEP
"""
import gzip
import io
import json
import os
import pathlib
import pty
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile

LOCKSTEP = str(pathlib.Path(sys.argv.pop(1)).resolve())


def wait(rank, elements):
    return (f"[rank{rank}]:[E822 16:31:16.132545756 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, "
            f"OpType=ALLREDUCE, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n").encode()


LOG = b"step 1\n" + wait(0, 8) + wait(1, 8) + wait(2, 9)  # rank 2 differs


class Inputs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, True)

    def check(self, *arguments, **options):
        return subprocess.run([LOCKSTEP, "check", *map(str, arguments)], capture_output=True, timeout=100, check=False, **options)

    def expect_right(self, done):
        report = json.loads(done.stdout)
        self.assertEqual((report["verdict"], report["findings"][0]["divergent_ranks"]), ("mismatch", [2]))
        self.assertEqual(done.returncode, 1)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_archives_are_named_and_not_read(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("job.log", LOG)
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            entry = tarfile.TarInfo("job.log")
            entry.size = len(LOG)
            archive.addfile(entry, io.BytesIO(LOG))
        for name, data, words in (("logs.zip", packed.getvalue(), b"zip archive"), ("logs.tar", tar.getvalue(), b"tar archive"),
                                  ("job.log", packed.getvalue(), b"zip archive")):
            done = self.check(self.file(name, data))
            self.assertEqual(done.returncode, 3, done)
            self.assertIn(words, done.stdout + done.stderr)
            self.assertIn(name.encode(), done.stdout + done.stderr)
        # Beside good evidence they are a warning.
        done = self.check("--format", "json", self.file("good.log", LOG), self.folder / "logs.zip")
        self.expect_right(done)
        self.assertIn(b"zip archive", done.stdout)

    def test_a_tar_inside_of_gzip_is_named_too(self):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w:gz") as archive:
            entry = tarfile.TarInfo("job.log")
            entry.size = len(LOG)
            archive.addfile(entry, io.BytesIO(LOG))
        done = self.check(self.file("logs.tgz", tar.getvalue()))
        self.assertEqual(done.returncode, 3, done)
        self.assertIn(b"tar archive", done.stdout + done.stderr)

    def test_folders(self):
        (self.folder / "run").mkdir()
        self.assertEqual(self.check(self.folder / "run").returncode, 3)
        self.file("run/job.log", LOG)
        self.file("run/picture.png", b"\x89PNG\r\n\x1a\n" + bytes(64))
        self.expect_right(self.check("--format", "json", self.folder / "run"))

    def test_standard_input_and_pipes(self):
        self.expect_right(self.check("--format", "json", "-", input=LOG))
        fifo = self.folder / "pipe"
        os.mkfifo(fifo)
        writer = threading.Thread(target=fifo.write_bytes, args=(LOG,))
        writer.start()
        self.expect_right(self.check("--format", "json", fifo))
        writer.join()

    def test_compressed_logs(self):
        self.expect_right(self.check("--format", "json", self.file("job.log.gz", gzip.compress(LOG))))
        self.expect_right(self.check("--format", "json", "-", input=gzip.compress(LOG)))

    def test_lines_of_100_megabytes(self):
        for name, log in (("before", b"x" * 100_000_000 + b"\n" + LOG), ("around", LOG + b"y" * 50_000_000 + b" Watchdog " + b"z" * 50_000_000),
                          ("without_an_end", LOG + b"OpType=" * 14_000_000)):
            done = self.check("--format", "json", self.file(name, log))
            self.expect_right(done)
            (self.folder / name).unlink()
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 600 * 1024)  # kB

    def test_control_characters_are_never_printed(self):
        hostile = b"\x1b]0;owned\x07\x1b[2J\x08\x9b31m\x00\xff\xfe\xe2\x80\xae"
        log = (b"[rank1]: KeyError: 'a" + hostile + b"b'\n" + b"job " + hostile + b" started\n" + wait(0, 8) +
               b"[rank0]:[E ProcessGroupNCCL.cpp:2] [PG ID 0 PG GUID 0(d" + hostile + b"p) Rank 0] failure detected by watchdog at work sequence id: 77 "
               b"PG status: last enqueued work: 78, last completed work: 76\n")
        path = self.file("jo\x1b[31mb\x07.log", log)
        for form in ("text", "json", "sarif", "junit", "github", "hosts"):
            for done in (self.check("--format", form, path), self.check("--format", form, self.file("x.zip", b"PK\x03\x04" + hostile), path)):
                for output in (done.stdout, done.stderr):
                    for byte in (b"\x1b", b"\x07", b"\x08", b"\x00", b"\x9b31m", b"\xff"):
                        self.assertNotIn(byte, output, (form, byte))
                if form in ("text", "github", "hosts"):
                    self.assertNotIn(b"\xe2\x80\xae", done.stdout)

    def slow_log(self, command, **streams):
        """Enough for a line of progress: above its block, and for longer than a second."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **streams)
        block = b"nothing to see in this line of a log, which is as long as others\n" * 700_000
        for _ in range(3):
            process.stdin.write(block)
            process.stdin.flush()
            time.sleep(1.2)
        process.stdin.write(LOG)
        process.stdin.close()
        return process

    def test_progress_is_for_terminals(self):
        ours, theirs = pty.openpty()
        seen = bytearray()

        def watch():
            try:
                while data := os.read(ours, 4096):
                    seen.extend(data)
            except OSError:
                pass

        watcher = threading.Thread(target=watch)
        watcher.start()
        process = self.slow_log([LOCKSTEP, "check", "--format", "json", "-"], stderr=theirs)
        report = json.loads(process.stdout.read())
        process.stdout.close()
        process.wait(60)
        os.close(theirs)
        watcher.join(10)
        os.close(ours)
        self.assertEqual(report["verdict"], "mismatch")
        self.assertIn(b"reading standard input: ", seen)
        self.assertTrue(seen.endswith(b"\r\x1b[K"), bytes(seen[-80:]))  # and it is taken away at the end

    def test_no_progress_in_a_pipe(self):
        process = self.slow_log([LOCKSTEP, "check", "--format", "json", "-"], stderr=subprocess.PIPE)
        out, err = process.stdout.read(), process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        process.wait(60)
        self.assertEqual(err, b"")
        self.assertEqual(json.loads(out)["verdict"], "mismatch")


if __name__ == "__main__":
    unittest.main(verbosity=2)
