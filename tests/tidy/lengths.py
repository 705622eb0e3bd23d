"""A function fits a screen, a file a sitting. An approximate scanner: it knows braces, not C++."""

import re

from source import Finding, cpp_files, line_of, read, without_comments_and_strings

MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 500
MAX_COLUMNS = 120

_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum)\b[^()]*$|\bextern\s*\"\s*\"\s*$")
_INITIALIZERS = re.compile(r"\)\s*(?:noexcept\s*(?:\([^()]*\))?\s*)?:(?!:)")


def kind_of(header):
    """What a brace opens, by the text before it: "scope", "function", "initializer" or "other"."""
    header = header.strip()
    if _SCOPE.search(header):
        return "scope"
    if _INITIALIZERS.search(header) and re.search(r"[\w>]$", header):
        return "initializer"
    if ")" not in header or header.endswith(("=", ",", "(", "return")):
        return "other"
    return "function"


def functions_of(code):
    """(first line, last line) of each function body's text, its header included; lambdas count to what holds them."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: re.sub(r"[^\n]", " ", match[0]), code,
                  flags=re.MULTILINE)
    found, stack, header_start = [], [], 0
    for match in re.finditer(r"[{};]", code):
        inside = any(kind == "function" for kind, _ in stack)
        if match[0] == "{":
            header = code[header_start:match.start()]
            kind = "other" if inside else kind_of(header)
            start = header_start + len(header) - len(header.lstrip())
            stack.append((kind, start))
            if kind == "scope":
                header_start = match.end()
        elif match[0] == "}":
            kind, start = stack.pop() if stack else ("other", 0)
            if kind == "function":
                found.append((line_of(code, start), line_of(code, match.start())))
            if kind in ("function", "scope"):
                header_start = match.end()
        elif not inside and (not stack or stack[-1][0] == "scope"):
            header_start = match.end()
    return found


def check(root):
    findings = []
    for name in cpp_files(root):
        text = read(root, name)
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            findings.append(Finding(name, 0, f"has {lines} lines, {MAX_FILE_LINES} is the most: is there a second idea "
                                             "in it?"))
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS:
                findings.append(Finding(name, number, f"has {len(line)} columns, {MAX_COLUMNS} is the most"))
        for first, last in functions_of(without_comments_and_strings(text)):
            if last - first + 1 > MAX_FUNCTION_LINES:
                findings.append(Finding(name, first, f"this function has {last - first + 1} lines, "
                                                     f"{MAX_FUNCTION_LINES} is the most: which step has a name?"))
    return findings
