#!/usr/bin/python3
"""Prints "PASSED FAILED SKIPPED" for a JUnit file that ctest wrote.

Usage: count_junit.py FILE CTEST_EXIT_CODE. A test that ctest could not start is a failure, though ctest files it with
the skipped ones; so is a non-zero exit code that no test accounts for.
"""
import sys
import xml.etree.ElementTree as tree


def main():
    passed = failed = skipped = 0
    for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None:
            failed += 1
        elif case.get("status") == "disabled" or (skip is not None and
                                                  skip.get("message", "").startswith("SKIP_")):
            skipped += 1
        elif case.get("status") == "run":
            passed += 1
        else:
            failed += 1
    if int(sys.argv[2]) != 0 and failed == 0:
        failed += 1
    print(passed, failed, skipped)


main()
