#!/usr/bin/env python3
"""Sums up a test run from ctest's JUnit file: what failed, and what was skipped and why."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict


def reason_of(output):
    """What GoogleTest, or a script of ours, printed as the reason of a skip."""
    match = re.search(r": Skipped\n(.*?)\n\s*(?:\[|$)", output, re.DOTALL) or re.search(r"^SKIP: (.*)$", output,
                                                                                       re.MULTILINE)
    return " ".join(match[1].split()) if match and match[1].strip() else "no reason given"


def main():
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} NAME JUNIT_FILE", file=sys.stderr)
        return 2
    name, path = sys.argv[1:]
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    failed = [case.get("name") for case in cases if case.get("status") == "fail"]
    skipped = defaultdict(list)
    for case in cases:
        if case.get("status") in ("notrun", "disabled"):
            skipped[reason_of(case.findtext("system-out") or "")].append(case.get("name"))
    count = sum(len(names) for names in skipped.values())
    print(f"{name}: {len(cases)} tests, {len(failed)} failed, {count} skipped")
    for test in failed:
        print(f"  failed: {test}")
    for reason, names in sorted(skipped.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(f"  skipped: {shown}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
