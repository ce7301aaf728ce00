#!/usr/bin/python3
"""The scripts of examples/ci, run in a repository as the services run them.

Usage: ci_examples_test.py LOCKSTEP SOURCE_DIR     exit 77 (skipped) without git
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

LOCKSTEP, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PLANS = SOURCE / "examples/plans"
GOOD, BAD = PLANS / "founding_uniform.json", PLANS / "founding_type_embed.json"


def github_script():
    """The lines under `run: |`."""
    text = (SOURCE / "examples/ci/github-actions.yml").read_text()
    block = re.search(r"^( *)run: \|\n((?:\1  .*\n|\n)+)", text, re.MULTILINE)
    return block[2].replace("${{ github.base_ref }}", "main")


def gitlab_script():
    """The entries under `script:`, which run in one shell."""
    text = (SOURCE / "examples/ci/gitlab-ci.yml").read_text()
    block = re.search(r"^  script:\n((?:    - .*\n)+)", text, re.MULTILINE)
    return block[1].replace("    - ", "")


class CiExamples(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/lockstep").symlink_to(LOCKSTEP)
        self.environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
                            **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}

    def repository(self, base):
        """A clone whose main has these plans."""
        origin, clone = self.folder / "origin", self.folder / "clone"
        shutil.rmtree(origin, ignore_errors=True)
        shutil.rmtree(clone, ignore_errors=True)
        (origin / "plans").mkdir(parents=True)
        for name, plan in base.items():
            shutil.copy(plan, origin / "plans" / name)
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "plans"]):
            subprocess.run(["git", *command], cwd=origin, env=self.environment, check=True)
        subprocess.run(["git", "clone", "-q", origin, clone], env=self.environment, check=True)
        return clone

    def run_script(self, script, folder):
        return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120, check=False)

    def test_github_fails_for_what_is_new(self):
        clone = self.repository({"a.json": GOOD, "old.json": BAD})
        done = self.run_script(github_script(), clone)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(json.loads((clone / "a.sarif").read_text())["runs"]), 1)
        shutil.copy(BAD, clone / "plans/a.json")
        done = self.run_script(github_script(), clone)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("::error file=plans/a.json", done.stdout)
        self.assertIn("DEADLOCK", done.stdout)
        shutil.copy(BAD, clone / "plans/new.json")
        self.assertIn("::error file=plans/new.json", self.run_script(github_script(), clone).stdout)
        (clone / "plans/accepted.lockstep").write_text(json.dumps({"suppressions": [{"class": "count_differs_by_local_state", "reason": "a test"}]}))
        self.assertEqual(self.run_script(github_script(), clone).returncode, 0)

    def test_gitlab_makes_a_report_of_each_plan(self):
        clone = self.repository({"a.json": GOOD})
        self.assertEqual(self.run_script(gitlab_script(), clone).returncode, 0)
        shutil.copy(BAD, clone / "plans/b.json")
        self.assertEqual(self.run_script(gitlab_script(), clone).returncode, 1)
        failures = {path.name: ElementTree.parse(path).getroot().get("failures") for path in (clone / "reports").iterdir()}
        self.assertEqual(failures, {"a.xml": "0", "b.xml": "1"})


if __name__ == "__main__":
    if shutil.which("git") is None:
        print("skipped: no git")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
