"""The sample config explains every key of the schema."""

import re

from source import Finding, read

SCHEMA = "proto/config.proto"
SAMPLE = "configs/replica.sample.textproto"


def check(root):
    keys = re.findall(r"^\s*(?:optional|repeated|required)\s+\w+\s+(\w+)\s*=", read(root, SCHEMA), re.MULTILINE)
    sample = read(root, SAMPLE)
    findings = [] if keys else [Finding(SCHEMA, 0, "has no keys that this check can find")]
    for key in keys:
        match = re.search(rf"^[ ]*{key}(?::| \{{)", sample, re.MULTILINE)
        if not match:
            findings.append(Finding(SAMPLE, 0, f"does not show \"{key}\" of {SCHEMA}"))
        elif not sample[:match.start()].rstrip(" \n").splitlines()[-1].lstrip().startswith("#"):
            line = sample.count("\n", 0, match.start()) + 1
            findings.append(Finding(SAMPLE, line, f"has no comment before \"{key}\" that explains it"))
    return findings
