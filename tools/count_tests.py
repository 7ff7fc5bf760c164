#!/usr/bin/env python3
"""Prints "PASSED FAILED NAMES-OF-FAILED..." from JUnit reports, ctest's and pytest's. Of ctest's a test that was not run has failed; of pytest's it was
left out for a reason that it gives, and does not count."""
import sys
import xml.etree.ElementTree as ElementTree

passed, bad = 0, []
for report in sys.argv[1:]:
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        of_ctest = case.get("status") is not None
        if case.get("status") == "run" if of_ctest else not len(case) or case[0].tag in ("properties", "system-out", "system-err"):
            passed += 1
        elif of_ctest or case.find("skipped") is None:
            bad.append(case.get("name").replace(" ", "_"))
print(passed, len(bad), *bad)
sys.exit(0 if passed or bad else 1)
