"""Files that do not belong into the tree, and words that do not belong into its files."""

import re
from pathlib import Path

from source import Finding, files_of, read

MAX_BYTES = 400_000

_STRAY_NAMES = re.compile(
    r"(~|\.(bak|orig|rej|swp|swo|tmp|o|a|so|obj|exe|pyc|class|zip|tar|gz|xz|7z|deb|rpm|log|pcap))$|"
    r"(^|/)(\.DS_Store|Thumbs\.db|__pycache__|\.idea|\.vscode|CMakeCache\.txt|CMakeFiles)(/|$)|"
    r"(^|/)(core|core\.\d+|a\.out|vgcore\.\d+|#.*#)$")
# Corpora are bytes that a program found: not text, nor named by people.
_BINARY_ALLOWED = ("tests/fuzz/corpus/",)
# Pages and pictures can be binary.
_BINARY_SUFFIXES = {".png", ".svg"}

_FUZZER_NAME = re.compile(r"^tests/fuzz/corpus/.*/(?:crash-|leak-|timeout-|oom-)?[0-9a-f]{40}$")

_WORDS = [
    (re.compile(r"\b(?:TODO|FIX" + r"ME|XXX)\b"), "is a thing left open: do it, or leave it out"),
    (re.compile(r"(?<![\w.$}])/(?:work|root|home/\w+)/[\w.]"), "is a path of one machine"),
    (re.compile(r"<{7} |>{7} "), "is left over from a merge"),
]
# This file names the words that it looks for, and its test plants them.
_WORDS_ALLOWED = ("tests/tidy/",)


def check(root):
    findings = []
    for name in files_of(root):
        path = Path(root) / name
        if _STRAY_NAMES.search(name):
            findings.append(Finding(name, 0, "is a stray file: built, backed up, or an editor's"))
            continue
        if _FUZZER_NAME.search(name):
            findings.append(Finding(name, 0, "was left by a fuzzer: leave it out, or name it by what it is"))
        if path.stat().st_size > MAX_BYTES:
            findings.append(Finding(name, 0, f"has {path.stat().st_size} bytes, {MAX_BYTES} is the most"))
        binary = b"\0" in path.read_bytes()
        if binary and not name.startswith(_BINARY_ALLOWED) and path.suffix not in _BINARY_SUFFIXES:
            findings.append(Finding(name, 0, "is binary"))
        if binary or name.startswith(_WORDS_ALLOWED + _BINARY_ALLOWED):
            continue
        for number, line in enumerate(read(root, name).splitlines(), 1):
            for pattern, why in _WORDS:
                match = pattern.search(line)
                if match:
                    findings.append(Finding(name, number, f"\"{match[0]}\" {why}"))
    return findings
