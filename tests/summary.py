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


def summarize(name, path):
    """The lines of the summary."""
    failed, skipped, count = [], defaultdict(list), 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        count += 1
        test, status = case.get("name"), case.get("status")
        why = case.find("skipped").get("message", "") if case.find("skipped") is not None else ""
        if status == "run":
            continue
        if status == "disabled":
            skipped["disabled in its source"].append(test)
        elif why.startswith("SKIP"):
            skipped[reason_of(case.findtext("system-out") or "")].append(test)
        else:
            failed.append(test + (f": {why}" if why else ""))
    lines = [f"{name}: {count} tests, {len(failed)} failed, {sum(map(len, skipped.values()))} skipped"]
    lines += [f"  failed: {test}" for test in failed]
    for reason, tests in sorted(skipped.items()):
        shown = ", ".join(tests[:3]) + (f" and {len(tests) - 3} more" if len(tests) > 3 else "")
        lines.append(f"  skipped: {shown}: {reason}")
    return lines


def main():
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} NAME JUNIT_FILE", file=sys.stderr)
        return 2
    print("\n".join(summarize(*sys.argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
