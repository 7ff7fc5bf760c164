#!/usr/bin/env python3
"""Lets Spin go through every order of events in the model of how pieces meet, and through planted bugs, each of which it must find.

protocol_test.py SCHEDULE_TABLE SPIN CC"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from protocol_cases import BUGS, CASES, FIXED_SPLIT_K, LAUNCHES, RUN_BUGS, RUNS, SLICE_BUGS, SLICES

HERE = pathlib.Path(__file__).parent
TABLE, SPIN, CC = sys.argv[1:4] if len(sys.argv) > 3 else ("", "", "")
MOST_STEPS = 1000000  # of one run of the model
MOST_MIB = 2000
NONE = 255  # of pieces.pml


class Failed(Exception):
    pass


def command(words, folder=None):
    done = subprocess.run([str(word) for word in words], cwd=folder, text=True, capture_output=True, timeout=300)
    if done.returncode != 0:
        raise Failed(" ".join(map(str, words)) + "\n" + done.stdout + done.stderr)
    return done.stdout


def schedule(case):
    """What check_scheduler() says, and a row for each item: peers, peer, tile, flag, first place, step between places."""
    verdict, *lines = command([TABLE, *case.arguments()]).splitlines()
    return verdict, [[int(x) for x in line.split()] for line in lines]


def constants(name, values):
    """hidden: not part of the states that the checker keeps, as they never change."""
    values = [max(0, int(value)) for value in values]
    return f"hidden {'short' if max(values) > 255 else 'byte'} {name}[{len(values)}] = {{ {', '.join(map(str, values))} }};\n"


def tables(cases):
    """schedules.pml: all cases, one behind the other."""
    items = [schedule(case)[1] for case in cases]
    rows = [row for each in items for row in each]
    most_tiles, most_peers = max(case.tiles for case in cases), max(row[0] for row in rows)
    if most_tiles * most_peers + 1 >= NONE or max(map(len, items)) >= NONE - max(case.units for case in cases):
        raise Failed("numbers of pieces and of items must fit in a byte, and 255 says that there are no more; take smaller cases")
    text = "".join(f"#define {name} {value}\n" for name, value in {
        "LAST_CASE": len(cases) - 1, "LAUNCHES": LAUNCHES, "MOST_SLOTS": max(case.slots for case in cases),
        "MOST_LOADS": max(case.room for case in cases),
        "MOST_UNITS": max(case.units for case in cases), "MOST_TILES": most_tiles, "MOST_PEERS": most_peers,
        "MOST_FLAGS": 1 + max(0, *(row[3] for row in rows)),
        "MOST_PLACES": 1 + max(row[4] + row[5] * max(0, row[0] - 2) for row in rows)}.items())
    for name, values in {
            "first_items": [sum(map(len, items[:i])) for i in range(len(items))], "item_counts": map(len, items),
            "tiles": (case.tiles for case in cases), "unit_counts": (case.units for case in cases),
            "consumer_counts": (case.consumers for case in cases), "slot_counts": (case.slots for case in cases),
            "room_for_loads": (case.room for case in cases),
            "by_ticket": (case.claim == "ticket" for case in cases), "in_turns": (case.pingpong for case in cases),
            "overlaps": (case.overlap for case in cases)}.items():
        text += constants(name, values)
    for column, name in enumerate(("peers", "peer", "tile", "flag_of", "first_place", "place_step")):
        text += constants(name, (row[column] for row in rows))
    return text


def search(cases, *defines, optimise="-O2", most_steps=MOST_STEPS):
    """What the checker says about the model of these cases."""
    return check("pieces.pml", defines, optimise, most_steps, tables(cases))


def search_slices(most_pieces, launches, *defines, optimise="-O2"):
    """The same of pieces that meet in slices."""
    return check("slices.pml", [f"MOST_PIECES={most_pieces}", f"LAUNCHES={launches}", *defines], optimise)


def search_runs(ctas, runs, rows, launches, *defines, optimise="-O2"):
    """The same of runs of attention and whoever brings their results together."""
    return check("runs.pml", [f"MOST_CTAS={ctas}", f"MOST_RUNS={runs}", f"MOST_ROWS={rows}", f"LAUNCHES={launches}", *defines], optimise)


def check(model, defines, optimise, most_steps=MOST_STEPS, schedules=""):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(HERE / model, folder)
        (folder / "schedules.pml").write_text(schedules)
        command([SPIN, *(f"-D{define}" for define in defines), "-a", model], folder)
        command([CC, optimise, "-w", "-DSAFETY", "-DVECTORSZ=4096", f"-DMEMLIM={MOST_MIB}", "-o", "pan", "pan.c"], folder)
        return command(["./pan", f"-m{most_steps}"], folder)


def errors(report):
    return [line for line in report.splitlines() if line.startswith("pan:1:")]


def cut_short(report):
    """Why a search has not seen everything, or None."""
    for sign in (r"max search depth too small", r"reached -DMEMLIM bound", r"out of memory", r"Search not completed", r"hash factor", r"Bit statespace",
                 r"Warning"):
        if re.search(sign, report):
            return sign
    wanted = (r"Full statespace search for:", r"assertion violations\s+\+", r"invalid end states\s+\+", r"errors: \d+\n",
              r"depth reached (\d+),")
    for line in wanted:
        if not re.search(line, report):
            return f"the report has no line '{line}'"
    return None


def unreached(report):
    """Lines of the model that no run came to, by process."""
    found = set()
    for process, lines in re.findall(r"^unreached in (\S+ \S+)\n((?:\t.*\n)*)", report, re.MULTILINE):
        found |= {(process, line.strip()) for line in lines.splitlines() if "states)" not in line}
    return found


class Protocol(unittest.TestCase):
    def test_every_order_is_right(self):
        never = None
        for group, cases in GROUPS.items():
            with self.subTest(group):
                report = search(cases)
                self.assertIsNone(cut_short(report), report)
                self.assertIn("errors: 0\n", report)
                self.assertEqual(errors(report), [], report)
                never = unreached(report) if never is None else never & unreached(report)
                print(group, len(cases), "schedules", re.search(r"(\S+) states, stored", report).group(1), "states", flush=True)
        # Consumers wait for more work when all is done; everything else must have happened.
        self.assertEqual([line for _, line in never or [] if '"-end-"' not in line], [])

    def test_every_order_of_slices_is_right(self):
        for size in SLICES:
            self.every_order_is_right("pieces and launches", size, search_slices)

    def test_every_order_of_runs_is_right(self):
        for size in RUNS:
            self.every_order_is_right("CTAs, runs, rows and launches", size, search_runs)

    def every_order_is_right(self, what, size, search_model):
        with self.subTest(what, size=size):
            report = search_model(*size)
            self.assertIsNone(cut_short(report), report)
            self.assertIn("errors: 0\n", report)
            self.assertEqual(errors(report), [], report)
            self.assertEqual(unreached(report), set())
            print(what, size, re.search(r"(\S+) states, stored", report).group(1), "states", flush=True)

    def test_only_permitted_schedules_are_said_to_be_right(self):
        for cases in GROUPS.values():
            for case in cases:
                self.assertEqual(schedule(case)[0], "permitted", case)

    def test_the_rule_for_fixed_turn_permits_some_and_refuses_some(self):
        self.assertGreater(len(PERMITTED_FIXED_SPLIT_K), 10)
        self.assertLess(len(PERMITTED_FIXED_SPLIT_K), len(FIXED_SPLIT_K))

    def test_a_search_that_is_cut_short_is_no_proof(self):
        full = search([CASES[0]])
        self.assertIsNone(cut_short(full))
        self.assertEqual(cut_short(search([CASES[0]], most_steps=50)), "max search depth too small")
        for sign in ("pan: reached -DMEMLIM bound\n", "Warning: Search not completed\n"):
            self.assertIsNotNone(cut_short(sign + full))
        self.assertIsNotNone(cut_short(full.replace("Full statespace", "Bit statespace")))
        self.assertIsNotNone(cut_short(full.replace("invalid end states\t+", "invalid end states\t-")))
        self.assertIsNotNone(cut_short(""))


def planted(bug):
    def test(self):
        self.assertEqual(schedule(bug.case)[0] == "permitted", bug.permitted)
        defines = [bug.name] * bool(bug.name) + [f"RESIDENT={bug.resident}"] * bool(bug.resident)
        found = errors(search([bug.case], *defines, optimise="-O0"))
        self.assertEqual(len(found), 1, "not found")
        self.assertRegex(found[0], bug.error)
    return test


def planted_in_model(bug, search_model, size):
    def test(self):
        defines = [bug.name] + [f"RESIDENT={bug.resident}"] * bool(bug.resident)
        found = errors(search_model(*size, *defines, optimise="-O0"))
        self.assertEqual(len(found), 1, "not found")
        self.assertRegex(found[0], bug.error)
    return test


if __name__ == "__main__":
    if len(sys.argv) > 3 and not shutil.which(SPIN):
        sys.exit(f"protocol: no model checker at '{SPIN}'; install Debian's package spin (scripts/setup.sh test does), and configure again")
    PERMITTED_FIXED_SPLIT_K = [case for case in FIXED_SPLIT_K if schedule(case)[0] == "permitted"]
    everything = dict.fromkeys([*CASES, *PERMITTED_FIXED_SPLIT_K, *(bug.case for bug in BUGS if bug.permitted)])
    GROUPS = {"split-K, fixed": [c for c in everything if c.consumers == 1 and c.claim == "fixed" and c.kind == "split-k"],
              "others, fixed": [c for c in everything if c.consumers == 1 and c.claim == "fixed" and c.kind != "split-k"],
              "ticket": [c for c in everything if c.consumers == 1 and c.claim == "ticket"],
              "two consumers": [c for c in everything if c.consumers == 2]}
    for number, each in enumerate(BUGS):
        setattr(Protocol, f"test_bug_{number:02}_{each.name.lower() or 'dealt_to_the_wrong_number'}", planted(each))
    for number, each in enumerate(SLICE_BUGS):
        setattr(Protocol, f"test_slice_bug_{number:02}_{each.name.lower()}", planted_in_model(each, search_slices, (3, 2)))
    for number, each in enumerate(RUN_BUGS):
        setattr(Protocol, f"test_run_bug_{number:02}_{each.name.lower()}", planted_in_model(each, search_runs, (3, 3, 1, 2)))
    unittest.main(argv=sys.argv[:1], verbosity=2)
