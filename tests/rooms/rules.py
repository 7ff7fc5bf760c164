"""Who may know whom. Written a second time, apart from src/CMakeLists.txt, so that a change there does not go unnoticed."""
import pathlib
import re

KNOWS = {
    "core": set(),
    "arch": set(),
    "scheduler": {"core"},
    "planner": {"core", "scheduler"},
    "simulator": {"core", "scheduler"},
    "trace": {"core", "scheduler"},
    "reference": {"core", "scheduler"},
    "kernel": {"arch", "scheduler", "core"},
    "launch": {"kernel", "arch", "scheduler", "core"},
    "api": {"core"},
}
ONLY_PUBLIC = ("cli", "bench", "examples", "python")  # these know include/ and themselves
SOURCES = (".hpp", ".cpp", ".h", ".c", ".cuh", ".cu", ".def")


def sources(root: pathlib.Path, *folders: str):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path


def without_comments(text: str) -> str:
    """The code alone: comments and the contents of string literals blanked, line breaks kept."""
    def blank(match: re.Match) -> str:
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return '""' if token.startswith('"') else "' '"
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])'", blank, text, flags=re.DOTALL)


def quoted_includes(text: str):
    return re.findall(r"^\s*#\s*include\s+[\"<]([^\">]+)[\">]", text, re.MULTILINE)
