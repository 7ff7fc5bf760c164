#!/usr/bin/env python3
"""Prints "PASSED FAILED NAMES-OF-FAILED..." from the JUnit report that ctest writes. A test that was not run has failed."""
import sys
import xml.etree.ElementTree as ElementTree

cases = ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
bad = [case.get("name").replace(" ", "_") for case in cases if case.get("status") != "run"]
print(len(cases) - len(bad), len(bad), *bad)
sys.exit(0 if cases else 1)
