// Draws what #data holds: how busy the tensor cores were, what was predicted for each SM, and what each did.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
// By number of a phase, as the data counts them.
const colours = ["#3b7dbd", "#8d5fc0", "#e8913a", "#d64545", "#f2d479", "#dcdcdc", "#f1f1f1"];
const left = 64;
// page.html#us=40-110&sms=0-11 shows so much of the time and of the SMs.
const wanted = new URLSearchParams(location.hash.slice(1));
const range = (name, begin, end) => wanted.has(name) ? wanted.get(name).split("-").map(Number) : [begin, end];
const [firstSm, lastSm] = range("sms", 0, Infinity);
data.sms = data.sms.filter((sm) => firstSm <= sm.sm && sm.sm <= lastSm);
data.predicted = data.predicted.filter((piece) => firstSm <= piece.sm && piece.sm <= lastSm);
data.predicted_sms = Math.max(0, Math.min(data.predicted_sms - 1, lastSm) - firstSm + 1);
const view = {};
[view.begin, view.end] = range("us", 0, data.end_us);
const byId = (id) => document.getElementById(id);
const width = () => byId("measured").clientWidth;
const x = (us) => left + (us - view.begin) / (view.end - view.begin) * (width() - left);
const us = (px) => view.begin + (px - left) / (width() - left) * (view.end - view.begin);

// Few SMs get tall lanes, many must fit on a page.
const count = Math.max(data.sms.length, data.predicted_sms), many = count > 48;
const predictedPitch = many ? 4 : count > 8 ? 12 : 24;
const consumers = Math.max(1, ...data.sms.map((sm) => sm.lanes.length));
const lanePitch = many ? 4 : count > 8 ? 9 : 18;
const measuredPitch = consumers * lanePitch + (many ? 1 : 4);

function prepare(id, height) {
  const canvas = byId(id), scale = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = canvas.clientWidth * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = "11px Helvetica, Arial, sans-serif";
  return context;
}

function label(context, text, y) {
  context.fillStyle = "#222";
  context.textAlign = "right";
  context.fillText(text, left - 6, y);
}

function bar(context, begin, end, y, height, colour) {
  const from = Math.max(x(begin), left), to = x(end);
  if (to <= left || from >= width()) return;
  context.fillStyle = colour;
  context.fillRect(from, y, Math.max(to - from - (to - from > 3 ? 0.5 : 0), 0.3), height);
}

function labelStep() { return many ? 8 : 1; }

function drawBusy() {
  const height = 90, plot = height - 24, context = prepare("busy", height);
  for (const share of [0, 0.5, 1]) {
    label(context, share * 100 + "%", 12 + plot * (1 - share));
    context.fillStyle = "#ddd";
    context.fillRect(left, 8 + plot * (1 - share), width(), 1);
  }
  for (const [line, colour] of [[data.predicted_busy, "#999"], [data.busy, colours[0]]]) {
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    line.forEach((share, i) => {
      const at = x((i + 0.5) * data.busy_step_us), y = 8 + plot * (1 - share);
      if (i === 0) context.moveTo(at, y); else context.lineTo(at, y);
    });
    context.stroke();
  }
  context.clearRect(0, 0, left - 40, height);
  drawTicks(context, height - 12);
}

function drawTicks(context, y) {
  const span = view.end - view.begin, power = 10 ** Math.floor(Math.log10(span / 6));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => span / s <= 10);
  context.textAlign = "center";
  context.fillStyle = "#222";
  for (let t = Math.ceil(view.begin / step) * step; t <= view.end; t += step)
    context.fillText(t.toFixed(Math.max(0, -Math.floor(Math.log10(step)))), x(t), y + 10);
}

function drawPredicted() {
  const context = prepare("predicted", Math.max(data.predicted_sms * predictedPitch, 1));
  data.predicted.forEach((piece) => {
    const y = (piece.sm - firstSm) * predictedPitch;
    bar(context, piece.begin, piece.end, y, predictedPitch - 1, colours[0]);
    bar(context, piece.end, piece.done, y, predictedPitch - 1, colours[3]);
  });
  for (let row = 0; row < data.predicted_sms; row += labelStep())
    label(context, "SM " + (firstSm + row), row * predictedPitch + Math.min(predictedPitch, 12));
}

function laneTop(sm, lane) { return sm * measuredPitch + lane * lanePitch; }

function drawMeasured() {
  const context = prepare("measured", data.sms.length * measuredPitch + 18);
  data.sms.forEach((sm, i) => sm.lanes.forEach((lane, j) => {
    bar(context, 0, data.makespan_us, laneTop(i, j), lanePitch - 1, colours[6]);
    lane.tiles.forEach((tile) => tile.parts.forEach(([phase, begin, end]) => bar(context, begin, end, laneTop(i, j), lanePitch - 1, colours[phase])));
  }));
  if (data.arrows.length <= 400) drawArrows(context);
  drawCriticalPath(context);
  data.sms.forEach((sm, i) => { if (i % labelStep() === 0) label(context, "SM " + sm.sm, laneTop(i, 0) + Math.min(measuredPitch, 12)); });
  drawTicks(context, data.sms.length * measuredPitch + 4);
}

const laneOfTrack = new Map();
data.sms.forEach((sm, i) => sm.lanes.forEach((lane, j) => laneOfTrack.set(lane.track, laneTop(i, j) + lanePitch / 2)));

function drawArrows(context) {
  context.strokeStyle = "#555";
  context.lineWidth = 0.6;
  context.save();
  context.beginPath();
  context.rect(left, 0, width(), data.sms.length * measuredPitch);
  context.clip();
  data.arrows.forEach(([from, leftUs, to, takenUs]) => {
    if (x(takenUs) < left || x(leftUs) > width() || !laneOfTrack.has(from) || !laneOfTrack.has(to)) return;
    context.beginPath();
    context.moveTo(x(leftUs), laneOfTrack.get(from));
    context.lineTo(x(takenUs), laneOfTrack.get(to));
    context.stroke();
  });
  context.restore();
}

function drawCriticalPath(context) {
  data.critical.forEach(([track, , begin, end]) => {
    if (laneOfTrack.has(track)) bar(context, begin, end, laneOfTrack.get(track) - lanePitch / 2 - 1, many ? 1.5 : 2, "#000");
  });
}

function draw() {
  drawBusy();
  drawPredicted();
  drawMeasured();
  byId("range").textContent = view.begin.toFixed(3) + " to " + view.end.toFixed(3) + " us";
}

// What stands under the mouse, in words; empty over nothing.
function measuredAt(px, py) {
  const i = Math.floor(py / measuredPitch), lane = Math.floor((py - i * measuredPitch) / lanePitch), sm = data.sms[i];
  if (!sm || !sm.lanes[lane]) return "";
  const at = us(px), name = "SM " + sm.sm + ", CTA " + sm.lanes[lane].cta + ", " + sm.lanes[lane].role;
  for (const tile of sm.lanes[lane].tiles)
    for (const [phase, begin, end] of tile.parts)
      if (begin <= at && at < end)
        return tile.name + "\n" + data.phases[phase] + ": " + (end - begin).toFixed(3) + " us, from " + begin.toFixed(3) + "\n" + name;
  return name + "\nno work at " + at.toFixed(3) + " us";
}

function predictedAt(px, py) {
  const sm = firstSm + Math.floor(py / predictedPitch), at = us(px);
  const piece = data.predicted.find((p) => p.sm === sm && p.begin <= at && at < p.done);
  return piece ? piece.name + "\npredicted from " + piece.begin.toFixed(3) + " to " + piece.done.toFixed(3) + " us" : "";
}

function listen(id, textAt) {
  const canvas = byId(id), tip = byId("tip");
  let dragged = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const middle = us(event.offsetX), factor = event.deltaY < 0 ? 0.8 : 1.25;
    view.begin = Math.max(0, middle - (middle - view.begin) * factor);
    view.end = Math.min(data.end_us, middle + (view.end - middle) * factor);
    draw();
  }, { passive: false });
  canvas.addEventListener("mousedown", (event) => { dragged = us(event.offsetX); });
  window.addEventListener("mouseup", () => { dragged = null; });
  canvas.addEventListener("mousemove", (event) => {
    if (dragged !== null) {
      const by = Math.min(Math.max(dragged - us(event.offsetX), -view.begin), data.end_us - view.end);
      view.begin += by;
      view.end += by;
      draw();
    }
    tip.textContent = textAt(event.offsetX, event.offsetY);
    tip.style.display = tip.textContent ? "block" : "none";
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - 320) + "px";
    tip.style.top = event.clientY + 14 + "px";
  });
  canvas.addEventListener("mouseleave", () => { tip.style.display = "none"; });
}

listen("busy", () => "");
listen("predicted", predictedAt);
listen("measured", measuredAt);
byId("all").addEventListener("click", () => { view.begin = 0; view.end = data.end_us; draw(); });
window.addEventListener("resize", draw);
byId("measured").dataset.tracks = data.sms.reduce((sum, sm) => sum + sm.lanes.length, 0);
byId("measured").dataset.tiles = data.sms.reduce((sum, sm) => sum + sm.lanes.reduce((n, lane) => n + lane.tiles.length, 0), 0);
draw();
