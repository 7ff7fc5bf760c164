#!/usr/bin/env python3
"""The README's examples are the programs of tests/consumer/project, word for word, and the files it links to exist."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
readme = (root / "README.md").read_text()
problems = []
for language, name in (("cpp", "example.cpp"), ("c", "example.c")):
    blocks = re.findall(rf"^```{language}\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    wanted = (root / "tests/consumer/project" / name).read_text()
    if wanted not in blocks:
        problems.append(f"README.md has no ```{language} block equal to tests/consumer/project/{name}")

pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]
for page in pages:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            problems.append(f"{page.relative_to(root)} links to {target}, which is not there")

print("\n".join(problems) or f"{len(pages)} pages: examples and links hold")
sys.exit(1 if problems else 0)
