#!/usr/bin/env python3
"""Checks of the project's structure. Prints what to mend; ends with 1 if there is anything."""

import argparse
import sys
from pathlib import Path

import config_keys
import documents
import includes
import lengths
import stray

CHECKS = {"includes": includes, "lengths": lengths, "stray": stray, "config_keys": config_keys, "documents": documents}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], help="the project's folder")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"any of {', '.join(CHECKS)}; default: all")
    options = parser.parse_args()
    unknown = [name for name in options.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    count = 0
    for name in options.checks or CHECKS:
        for finding in CHECKS[name].check(options.root):
            print(f"{finding}  [{name}]")
            count += 1
    print(f"{count} found" if count else "nothing found")
    return 1 if count else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
