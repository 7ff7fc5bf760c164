"""What the pages show is what the tool says: commands of `plan`, `explain`, `simulate` and `list` in docs/, their output word for word, and the
pictures that they draw.

SLUICE_EXECUTABLE=build-cpu/cli/sluice python3 tests/cli/docs_test.py --write : writes the pages and pictures again, to be read before a commit."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import EXECUTABLE

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = ("cli.md", "explain.md", "simulate.md")
# A block of a page, and in it a command with what it says, up to the next command.
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^\$ (?P<command>(?:for .*; do )?sluice (?:plan|explain|simulate|list) .*)\n(?P<said>(?:(?!\$ ).*\n)*)", re.MULTILINE)
PICTURES_OF_OTHERS = {"way.svg", "wave.svg", "crossover.svg"}  # drawn by hand, and from measurements, as those of trace.md (.png)


class Folder:
    """A place like the root of the repository, where commands may write pictures."""

    def __enter__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sluice-docs-"))
        (self.root / "docs/pictures").mkdir(parents=True)
        (self.root / "bin").mkdir()
        (self.root / "bin/sluice").symlink_to(pathlib.Path(EXECUTABLE).resolve())
        for device in DOCS.glob("*.json"):
            shutil.copy(device, self.root / "docs")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)

    def says(self, command):
        path = f"{self.root / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.root, env={"PATH": path}, text=True, capture_output=True, timeout=120, check=False)
        if done.returncode not in (0, 2):  # 2: a command line that the page shows to be refused
            raise RuntimeError(f"exit code {done.returncode} of: {command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def pictures(self):
        return {picture.name: picture.read_bytes() for picture in (self.root / "docs/pictures").iterdir()}


def examples(page):
    """[(command, what the page says that it says)]"""
    text = (DOCS / page).read_text()
    return [(found["command"], found["said"]) for block in BLOCK.findall(text) for found in EXAMPLE.finditer(block)]


class DocsTest(unittest.TestCase):
    maxDiff = None

    def test_what_the_pages_show_is_what_the_tool_says(self):
        with Folder() as folder:
            for page in PAGES:
                for command, said in examples(page):
                    with self.subTest(page=page, command=command):
                        self.assertEqual(folder.says(command), said)
            drawn = folder.pictures()
        kept = {picture.name: picture.read_bytes() for picture in (DOCS / "pictures").iterdir() if picture.name not in PICTURES_OF_OTHERS and picture.suffix != ".png"}
        self.assertEqual(sorted(drawn), sorted(kept), "pictures that no command of a page draws, or that are not kept")
        for name, picture in drawn.items():
            self.assertEqual(picture, kept[name], f"docs/pictures/{name} is not what the command draws")

    def test_pages_have_examples(self):
        for page, least in zip(PAGES, (5, 4, 15)):
            self.assertGreaterEqual(len(examples(page)), least, page)

    def test_every_picture_stands_above_the_command_that_draws_it(self):
        lines = [line for line in (DOCS / "simulate.md").read_text().splitlines() if line]
        for picture, below, command in zip(lines, lines[1:], lines[2:]):
            if found := re.match(r"!\[.*\]\(pictures/(.*)\)", picture):
                self.assertEqual(below, "```console")
                self.assertIn(f" --svg docs/pictures/{found[1]} ", command)


def write():
    with Folder() as folder:
        for page in PAGES:

            def block(found):
                return EXAMPLE.sub(lambda example: f"$ {example['command']}\n{folder.says(example['command'])}", found[0])

            path = DOCS / page
            path.write_text(BLOCK.sub(block, path.read_text()))
        for name, picture in folder.pictures().items():
            (DOCS / "pictures" / name).write_bytes(picture)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
