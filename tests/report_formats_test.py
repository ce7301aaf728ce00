#!/usr/bin/python3
"""SARIF, JUnit and GitHub annotations as the services read them, also where names in the input are hostile.

SARIF is checked against tests/support/sarif-2.1.0-part.schema.json, made from the OASIS specification for the parts that are written here;
and against the whole schema of OASIS where LOCKSTEP_SARIF_SCHEMA names its file.

Usage: report_formats_test.py LOCKSTEP SOURCE_DIR
"""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

try:
    import jsonschema
except ImportError:
    jsonschema = None

LOCKSTEP, SOURCE = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
HOSTILE = ["plain", "a&b<c>\"d'e", "]]><x/>", "\u001b[31mred\u001b[0m", "line\nbreak\r::error::x", "comma,colon:%0A%", "\u0000\u0001\u007f",
           "\ufffe\uffff\ud7ff", "\u202egnp.exe", "𝔘𝔫𝔦", "x" * 5000, "-->", "`$(id)`", "../../etc", " "]


def run(*arguments, cwd=None):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False, cwd=cwd)


def deadlock(name, site="f"):
    """Two ranks that call two groups in opposite order."""
    site = urllib.parse.quote(site, safe="")
    lines = [f"all_reduce {group} f32[1] site={site}@{site}.py:3" for group in ("g", "h")]
    return {"schema": "lockstep-job/1", "name": name, "groups": {"g": [0, 1], "h": [0, 1]}, "group_names": {},
            "ranks": {"0": lines, "1": lines[::-1]}}


def validators():
    schemas = [SOURCE / "tests/support/sarif-2.1.0-part.schema.json"]
    if os.environ.get("LOCKSTEP_SARIF_SCHEMA"):
        schemas.append(pathlib.Path(os.environ["LOCKSTEP_SARIF_SCHEMA"]))
    for schema in map(json.loads, (path.read_text(encoding="utf-8") for path in schemas)):
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        yield kind(schema)


class Formats(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def reports(self, style):
        """(what, text) of findings with hostile names, of a clean run, of an undecided one, and of the example plans."""
        for i, (name, file) in enumerate(itertools.zip_longest(HOSTILE, ["j.json", "a b,c:%&<\">.json", "é\n::x.json", "#?.json"], fillvalue="j.json")):
            path = self.folder / f"{i}" / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(deadlock(name, name)))
            done = run("check", path, "--format", style)
            self.assertEqual(done.returncode, 1, (name, done.stdout[:300], done.stderr))
            yield name, done.stdout.decode("utf-8")  # must be that
        for file, status in (("founding_type_embed", 1), ("founding_uniform", 0)):
            done = run("gate", SOURCE / f"examples/plans/{file}.json", "--format", style)
            self.assertEqual(done.returncode, status)
            yield file, done.stdout.decode("utf-8")
        path = self.folder / "alone.json"
        path.write_text(json.dumps({"groups": {"g": [0, 1]}, "ranks": {"0": ["all_reduce g f32[1]"]}, "ranks_expected": 2, "complete": False}))
        yield "undecided", run("check", path, "--format", style).stdout.decode("utf-8")

    @unittest.skipUnless(jsonschema, "python3-jsonschema is not installed")
    def test_sarif_follows_its_schema(self):
        known = list(validators())
        for name, text in self.reports("sarif"):
            report = json.loads(text)
            for validator in known:
                problems = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(report)]
                self.assertEqual(problems, [], name)
            rules = report["runs"][0]["tool"]["driver"]["rules"]
            for result in report["runs"][0]["results"]:
                self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                self.assertLessEqual(len(result.get("locations", [])), 100)
                for location in result["locations"]:
                    uri = location["physicalLocation"]["artifactLocation"]["uri"]
                    self.assertRegex(uri, r"^[A-Za-z0-9._~/%-]+$")
                    self.assertTrue(pathlib.Path(urllib.parse.unquote(uri)).exists(), uri)
        broken = json.loads(text)
        broken["runs"][0]["results"] = [{"ruleId": "x", "level": "fatal"}]
        for validator in known:
            self.assertFalse(validator.is_valid(broken))

    def test_fingerprints_are_stable(self):
        def prints(job, name):
            path = self.folder / name
            path.write_text(json.dumps(job))
            return [r["partialFingerprints"]["lockstep/v1"] for r in json.loads(run("check", path, "--format", "sarif").stdout)["runs"][0]["results"]]
        job = deadlock("run")
        first = prints(job, "a.json")
        self.assertTrue(first)
        self.assertEqual(prints({**job, "name": "other"}, "b.json"), first)  # another run and file
        later = [f"all_reduce {g} f32[1] site=f@f.py:99" for g in ("g", "g", "h")]  # another line, further on
        self.assertEqual(prints({**job, "ranks": {"0": later, "1": [later[0], later[2], later[1]]}}, "c.json"), first)
        self.assertNotEqual(prints(deadlock("run", "another_function"), "d.json"), first)

    def test_junit_is_xml(self):
        for name, text in self.reports("junit"):
            root = ElementTree.fromstring(text)  # raises where it is none
            self.assertEqual(root.tag, "testsuites", name)
            cases = root.findall("./testsuite/testcase")
            self.assertEqual(int(root.get("tests")), len(cases))
            self.assertEqual(int(root.get("failures")), len(root.findall(".//failure")))
            self.assertEqual(root.findall(".//x"), [])

    def test_annotations_are_one_line_each(self):
        for name, text in self.reports("github"):
            self.assertTrue(text.endswith("\n"))
            for line in text[:-1].split("\n"):
                self.assertRegex(line, r"^::(error|warning|notice) (file=[^,:]+,)?(line=\d+,)?title=[^,:]*::", name)
                self.assertIsNone(re.search("[\x00-\x1f\x7f]", line), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
