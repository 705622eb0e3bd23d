"""What the checks share: which files there are, and C++ text without comments and strings."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CPP_SUFFIXES = {".h", ".cc", ".cpp", ".hpp"}


@dataclass(frozen=True)
class Finding:
    """One thing to mend; printed the way compilers print theirs."""

    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


def files_of(root):
    """Paths of the project's files, relative to `root`: what git knows or would take, else all but build folders."""
    root = Path(root)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False) if (root / ".git").exists() else None
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith("build/")]
    return sorted(name for name in set(names) if (root / name).is_file())


def cpp_files(root):
    return [name for name in files_of(root) if Path(name).suffix in CPP_SUFFIXES]


def read(root, name):
    return (Path(root) / name).read_text(encoding="utf-8", errors="replace")


_TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL)


def without_comments_and_strings(text):
    """The same text with comments, strings and character literals blanked: lines and columns stay."""
    def blank(match):
        piece = match.group(0)
        if piece.startswith("/"):
            return re.sub(r"[^\n]", " ", piece)
        return piece[0] + re.sub(r"[^\n]", " ", piece[1:-1]) + piece[-1]
    return _TOKENS.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
