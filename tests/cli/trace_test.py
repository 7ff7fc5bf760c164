"""trace, and the pages of trace and explain. Under emulation: the same events as on a GPU, in the emulator's order."""

import collections
import json
import pathlib
import re
import unittest

from support import SluiceTest

KERNEL_128 = "bf16_rc_coop_128x128x64_c1x1"
PINGPONG_64 = "bf16_rc_ping_64x64x64_c1x1"
SMALL = ("--device", "h10", "--backend", "emulator")
NINE_TILES = ("--m", 384, "--n", 384, "--k", 256, "--kernel", KERNEL_128, *SMALL)
PHASES = {"main loop", "reduction", "epilogue", "waiting for peers", "waiting for data", "waiting for its turn", "loading"}
ROUNDING_US = 0.0015


class TraceFile:
    """A trace as Perfetto would see it."""

    def __init__(self, path):
        self.whole = json.loads(pathlib.Path(path).read_text())
        self.events = self.whole["traceEvents"]
        self.threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in self.events if e["name"] == "thread_name"}
        self.processes = {e["pid"]: e["args"]["name"] for e in self.events if e["name"] == "process_name"}
        self.tiles = [e for e in self.events if e.get("cat") == "tile"]
        self.phases = [e for e in self.events if e.get("cat") == "phase"]
        self.arrows = {kind: [e for e in self.events if e["ph"] == kind] for kind in "sf"}

    def role(self, event):
        return self.threads[event["pid"], event["tid"]].split(" ", 2)[2]

    def of_consumers(self):
        return [tile for tile in self.tiles if self.role(tile).startswith("consumer")]

    def tile_around(self, event):
        """The tile that an arrow's end stands in."""
        return [t for t in self.tiles if (t["pid"], t["tid"]) == (event["pid"], event["tid"]) and t["ts"] <= event["ts"] <= t["ts"] + t["dur"]]


def place(tile):
    return tile["args"]["tile_m"], tile["args"]["tile_n"]


class TraceTest(SluiceTest):
    def trace(self, *flags):
        path = self.path("trace.json")
        self.succeed("trace", *flags, "-o", path)
        return TraceFile(path)

    def check_slices(self, trace):
        """On a thread tiles follow one another, and the phases of each lie in it end to end."""
        by_thread = collections.defaultdict(list)
        for tile in trace.tiles:
            by_thread[tile["pid"], tile["tid"]].append(tile)
        self.assertEqual(set(by_thread), set(trace.threads))
        for thread, tiles in by_thread.items():
            self.assertEqual(tiles, sorted(tiles, key=lambda tile: tile["ts"]))
            for one, next_one in zip(tiles, tiles[1:]):
                self.assertLessEqual(one["ts"] + one["dur"], next_one["ts"] + ROUNDING_US)
            phases = [phase for phase in trace.phases if (phase["pid"], phase["tid"]) == thread]
            for tile in tiles:
                inside = [p for p in phases if tile["ts"] - ROUNDING_US <= p["ts"] and p["ts"] + p["dur"] <= tile["ts"] + tile["dur"] + ROUNDING_US]
                self.assertAlmostEqual(sum(p["dur"] for p in inside), tile["dur"], delta=ROUNDING_US * len(inside))
                self.assertLessEqual({p["name"] for p in inside}, PHASES)

    def test_whole_tiles(self):
        trace = self.trace(*NINE_TILES)
        self.assertEqual(sorted(trace.processes.values()), ["SM 0", "SM 1", "SM 2", "SM 3"])
        roles = collections.Counter(name.split(" ", 2)[2] for name in trace.threads.values())
        self.assertEqual(roles, {"producer P": 4, "producer Q": 4, "consumer 0": 4, "consumer 1": 4})
        for role in roles:
            tiles = [tile for tile in trace.tiles if trace.role(tile) == role]
            self.assertEqual(sorted(map(place, tiles)), [(m, n) for m in range(3) for n in range(3)], role)
            self.assertEqual({(t["args"]["k_begin"], t["args"]["k_end"], t["args"]["peers"]) for t in tiles}, {(0, 4, 1)})
        self.check_slices(trace)
        names = collections.Counter(phase["name"] for phase in trace.phases)
        self.assertEqual((names["main loop"], names["epilogue"], names["loading"], names["waiting for peers"]), (18, 36, 18, 0))
        self.assertEqual(trace.arrows, {"s": [], "f": []})
        self.assertEqual(trace.whole["otherData"]["lost_tiles"], 0)

    def check_arrows(self, trace, tiles, pieces):
        """From each piece of a tile to its last one, for each consumer."""
        starts, ends = ({arrow["id"]: arrow for arrow in trace.arrows[kind]} for kind in "sf")
        self.assertEqual(set(starts), set(ends))
        self.assertEqual(len(starts), tiles * (pieces - 1) * 2)
        for number, start in starts.items():
            end = ends[number]
            self.assertLessEqual(start["ts"], end["ts"])
            [piece], [last] = trace.tile_around(start), trace.tile_around(end)
            self.assertEqual(place(piece), place(last))
            self.assertEqual(trace.role(start), trace.role(end))
            self.assertEqual(last["args"]["peer"], pieces - 1)
            self.assertLess(piece["args"]["peer"], pieces - 1)

    def test_pieces_point_at_the_one_that_finishes_them(self):
        trace = self.trace("--m", 128, "--n", 256, "--k", 1024, "--kernel", KERNEL_128, *SMALL, "--scheduler", "split-k", "--splits", 4)
        self.check_slices(trace)
        self.assertEqual(collections.Counter(map(place, trace.of_consumers())), {(0, 0): 8, (0, 1): 8})
        self.check_arrows(trace, tiles=2, pieces=4)

    def test_pieces_that_meet_in_a_cluster_point_at_each_other(self):
        flags = ("--m", 128, "--n", 256, "--k", 1024, "--kernel", KERNEL_128, *SMALL, "--scheduler", "split-k", "--splits", 2, "--reduction", "cluster")
        trace = self.trace(*flags)
        self.check_slices(trace)
        self.assertEqual(len(trace.arrows["s"]), 2 * 2 * 2)  # tiles, consumers, directions
        self.assertEqual(sum(phase["name"] == "waiting for peers" for phase in trace.phases), 8)

    def test_pingpong_consumers_take_turns(self):
        trace = self.trace("--m", 256, "--n", 256, "--k", 512, "--kernel", PINGPONG_64, *SMALL)
        self.check_slices(trace)
        self.assertEqual(sorted(map(place, trace.of_consumers())), [(m, n) for m in range(4) for n in range(4)])
        for sm in trace.processes:
            mine = sorted((p for p in trace.phases if p["pid"] == sm and p["name"] == "main loop"), key=lambda p: p["ts"])
            self.assertEqual([trace.role(p) for p in mine], ["consumer 0", "consumer 1"] * 2)

    def test_the_answer_counts_what_the_file_shows(self):
        answer = self.succeed_json("trace", *NINE_TILES)
        self.assertEqual((answer["tiles"], answer["tracks"], answer["most_tiles_per_cta"], answer["lost_tiles"]), (9, 16, 3, 0))
        self.assertAlmostEqual(sum(answer["share"].values()), 1, places=9)
        self.assertAlmostEqual(sum(answer["critical_us"].values()), answer["makespan_us"], places=6)
        self.assertEqual(answer["worst_clock_error_ns"], 0)  # the emulator has one clock

    def test_says_what_it_cannot_trace(self):
        small = ("trace", "--m", 64, "--n", 64, "--k", 64, *SMALL)
        self.refuse(*small, "--layout", "cr", says=("no kernel with a recorder", "recorders have", KERNEL_128))
        self.refuse("trace", *NINE_TILES[:-1], "reference", says="choose from cuda, emulator")
        self.refuse(*small, "--batch", 2, "--grouping", "ragged", says="trace a batch of their size")
        self.refuse("trace", "--m", 0, "--n", 64, "--k", 64, *SMALL, says="nothing to trace")

    def test_takes_the_best_candidate_with_a_recorder(self):
        text = self.succeed("trace", "--m", 8, "--n", 128, "--k", 256, *SMALL)
        self.assertRegex(text, r"plan     bf16_rc_(coop|ping)_\S+, .*\n")


class PagesTest(SluiceTest):
    def check_alone(self, path):
        """One file that asks for nothing from elsewhere."""
        text = pathlib.Path(path).read_text()
        self.assertTrue(text.startswith("<!doctype html>"))
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?://|src=|<link|@import")
        return text

    def test_trace_page(self):
        path = self.path("trace.html")
        self.succeed("trace", *NINE_TILES, "--html", path)
        text = self.check_alone(path)
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*)</script>', text)[1])
        lanes = [lane for sm in data["sms"] for lane in sm["lanes"]]
        self.assertEqual((len(data["sms"]), len(lanes), sum(len(lane["tiles"]) for lane in lanes)), (4, 8, 18))
        self.assertEqual(len(data["busy"]), 240)
        self.assertIn("9 work tiles, at most 3 on a CTA", text)

    def test_explain_page(self):
        path = self.path("explain.html")
        self.succeed("explain", "--m", 4096, "--n", 4096, "--k", 4096, "--device", "h200", "--html", path, "--most", 3)
        text = self.check_alone(path)
        candidates = self.succeed_json("explain", "--m", 4096, "--n", 4096, "--k", 4096, "--device", "h200", "--most", 3)["candidates"]
        able = [candidate for candidate in candidates if candidate["verdict"] in ("chosen", "slower")]
        self.assertEqual(len(re.findall(r"<tr(?: class=\"chosen\")?><td>\d", text)), len(able))
        for candidate in able:
            self.assertIn(f">{candidate['predicted']['total_us']:.2f}</td>", text)


if __name__ == "__main__":
    unittest.main()
