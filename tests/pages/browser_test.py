"""Pages as a browser shows them: they load without a network, zoom, move, say what stands under the mouse, and show the right numbers of
tracks and tiles. A script at the end of a page plays the user, and writes what it finds into the page."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

EXECUTABLE = os.environ["SLUICE_EXECUTABLE"]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SKIPPED = 77
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,900", "--host-resolver-rules=MAP * ~NOTFOUND")
SMALL = ("--device", "h10", "--backend", "emulator", "--kernel", "bf16_rc_coop_128x128x64_c1x1")
NINE_TILES = ("--m", "384", "--n", "384", "--k", "256", *SMALL)

# What a user does. `canvas` is the measured timeline; at(x, y) are pixels in it.
PLAYER = """
<pre id="found"></pre>
<script>
"use strict";
const found = { errors: [] };
window.addEventListener("error", (event) => found.errors.push(event.message));
try {
  const canvas = document.getElementById("measured"), tip = document.getElementById("tip"), box = canvas.getBoundingClientRect();
  const send = (kind, type, x, y, more) =>
    canvas.dispatchEvent(new kind(type, { clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true, ...more }));
  const range = () => document.getElementById("range").textContent;
  const painted = (x, y) => {
    const scale = window.devicePixelRatio || 1;
    return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data.slice(0, 3)];
  };
  found.tracks = +canvas.dataset.tracks;
  found.tiles = +canvas.dataset.tiles;
  found.whole = range();
  found.hovered = data.sms.map((sm, i) => {
    const phase = sm.lanes[0].tiles[0].parts.findIndex(([phase]) => data.phases[phase] === "main loop");
    const [, begin, end] = sm.lanes[0].tiles[0].parts[phase], px = x((begin + end) / 2), py = laneTop(i, 0) + 3;
    send(MouseEvent, "mousemove", px, py);
    return { text: tip.textContent, shown: tip.style.display, colour: painted(px, py), name: sm.lanes[0].tiles[0].name };
  });
  send(MouseEvent, "mousemove", 10, 3);
  send(WheelEvent, "wheel", 600, 20, { deltaY: -100 });
  send(WheelEvent, "wheel", 600, 20, { deltaY: -100 });
  found.zoomed = range();
  send(MouseEvent, "mousedown", 600, 20);
  send(MouseEvent, "mousemove", 500, 20);
  window.dispatchEvent(new MouseEvent("mouseup"));
  found.moved = range();
  document.getElementById("all").click();
  found.all = range();
} catch (problem) {
  found.errors.push(String(problem));
}
document.getElementById("found").textContent = JSON.stringify(found);
</script>
</body>
"""


def bounds(text):
    return [float(number) for number in re.match(r"([\d.]+) to ([\d.]+) us", text).groups()]


class BrowserTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-pages-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def page(self, command, *flags):
        path = self.folder / f"{command}.html"
        subprocess.run([EXECUTABLE, command, *flags, "--html", str(path)], check=True, capture_output=True, timeout=120)
        return path

    def show(self, path, fragment=""):
        """The page's elements when its scripts have run."""
        profile = f"--user-data-dir={self.folder / 'profile'}"
        done = subprocess.run([BROWSER, *FLAGS, profile, "--dump-dom", f"file://{path}{fragment}"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def play(self, path, fragment=""):
        played = path.with_name("played.html")
        played.write_text(path.read_text().replace("</body>\n", PLAYER))
        return json.loads(re.search(r'<pre id="found">(.*?)</pre>', self.show(played, fragment), re.DOTALL)[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))

    def test_the_trace_page_is_used(self):
        found = self.play(self.page("trace", *NINE_TILES))
        self.assertEqual(found["errors"], [])
        self.assertEqual((found["tracks"], found["tiles"]), (8, 18))  # two consumers on each of four SMs, nine tiles each
        self.assertEqual(len(found["hovered"]), 4)
        for sm, hovered in enumerate(found["hovered"]):
            self.assertEqual(hovered["shown"], "block")
            self.assertTrue(hovered["text"].startswith(hovered["name"] + "\nmain loop: "), hovered["text"])
            self.assertIn(f"SM {sm}, CTA ", hovered["text"])
            self.assertEqual(hovered["colour"], [0x3B, 0x7D, 0xBD])
        whole, zoomed, moved = bounds(found["whole"]), bounds(found["zoomed"]), bounds(found["moved"])
        self.assertAlmostEqual(zoomed[1] - zoomed[0], 0.64 * (whole[1] - whole[0]), delta=0.02)
        self.assertAlmostEqual(moved[1] - moved[0], zoomed[1] - zoomed[0], delta=0.002)
        self.assertGreater(moved[0], zoomed[0])
        self.assertEqual(found["all"], found["whole"])

    def test_a_part_of_the_time_and_of_the_sms(self):
        found = self.play(self.page("trace", *NINE_TILES), "#us=1-3&sms=1-2")
        self.assertEqual(found["errors"], [])
        self.assertEqual(found["tracks"], 4)
        self.assertEqual(found["whole"], "1.000 to 3.000 us")

    def test_the_pages_tables(self):
        text = self.show(self.page("trace", *NINE_TILES))
        self.assertIn("9 work tiles, at most 3 on a CTA", text)
        self.assertIn("<td>main loop</td>", text)
        text = self.show(self.page("explain", "--m", "4096", "--n", "4096", "--k", "4096", "--device", "h200", "--most", "4"))
        self.assertEqual(len(re.findall(r'<tr(?: class="chosen")?><td>\d', text)), 4)


if __name__ == "__main__":
    if BROWSER is None:
        print("skipped: no chromium on the PATH; `bash scripts/setup.sh test` installs the Debian package")
        sys.exit(SKIPPED)
    unittest.main()
