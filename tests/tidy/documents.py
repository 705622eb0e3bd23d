"""What the documents name is there: commands, files, links."""

import os
import re
from pathlib import Path

from source import Finding, files_of, line_of, read

# Commands of ours in a code block or in backquotes: tools/test, ./tools/demo, build/release/bin/lockstep-counter.
_COMMAND = re.compile(r"(?<![\w/.-])(?:\./)?((?:tools|\.ci)/[a-z][\w-]*)(?![\w/.-])")
_PROGRAM = re.compile(r"build/\w+/bin/([\w-]+)")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def programs_of(root):
    """Names of the programs that the CMake files build."""
    names = set()
    for name in files_of(root):
        if name.endswith("CMakeLists.txt"):
            names.update(re.findall(r"(?:lockstep_program|add_executable)\(\s*([\w-]+)", read(root, name)))
    return names


def check_command(root, command):
    path = Path(root) / command
    if not path.exists():
        return f"names {command}, which is not there"
    if path.is_file() and not os.access(path, os.X_OK):
        return f"names {command}, which is not executable"
    return ""


def check(root):
    findings = []
    programs = programs_of(root)
    for name in [name for name in files_of(root) if name.endswith(".md")]:
        text = read(root, name)
        for match in _COMMAND.finditer(text):
            problem = check_command(root, match[1])
            if problem:
                findings.append(Finding(name, line_of(text, match.start()), problem))
        for match in _PROGRAM.finditer(text):
            if match[1] not in programs:
                findings.append(Finding(name, line_of(text, match.start()), f"names {match[0]}, which nothing builds"))
        for match in _LINK.finditer(text):
            if "://" not in match[1] and not ((Path(root) / name).parent / match[1]).exists():
                findings.append(Finding(name, line_of(text, match.start()), f"links to {match[1]}, which is not there"))
    for command in ("tools/demo", "tools/test"):
        if command not in read(root, "README.md"):
            findings.append(Finding("README.md", 0, f"does not name {command}"))
    return findings
