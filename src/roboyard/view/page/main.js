// Brings the parts of the page together.

import * as THREE from "./three/three.module.min.js";
import { ArmPanel } from "./arm.js";
import { Bodies, place } from "./bodies.js";
import { Displays } from "./displays.js";
import { Drawings } from "./drawings.js";
import { DrivePanel } from "./drive.js";
import { Ghosts } from "./ghosts.js";
import { ParameterPanel, TreePanel } from "./nodes.js";
import { Panels } from "./panels.js";
import { Pictures } from "./pictures.js";
import { PlotPanel } from "./plots.js";
import { Socket } from "./socket.js";
import { Stage } from "./stage.js";
import { GraphPanel, LogPanel } from "./tables.js";
import { Tools } from "./tools.js";
import { Trails, Transforms } from "./traces.js";
import { Transport } from "./transport.js";
import { WorldPanel } from "./world.js";

const by = (id) => document.getElementById(id);
const socket = new Socket();
const stage = new Stage(by("canvas"), by("labels"));
const bodies = new Bodies(stage);
const drawings = new Drawings(stage);
const displays = new Displays(by("displays"), by("filter"), socket);
const pictures = new Pictures(by("pictures"));
const trails = new Trails(stage, bodies);
const transforms = new Transforms(stage);
const panels = new Panels(by("tabs"), by("right").querySelector("#panels"));
const transport = new Transport(by("transport"), socket);
const page = { socket, stage, bodies, drawings, displays, panels, transport, time: 0, run: null, mine: false, updates: 0 };
window.roboyard = page; // for the console, and for tests
page.place = place;
page.ghosts = new Ghosts(stage, bodies);
page.tools = new Tools(by("tools"), page);
page.drive = new DrivePanel(panels.add("drive", "Drive"), page);
page.arm = new ArmPanel(panels.add("arm", "Arm"), page, page.ghosts);
const world = new WorldPanel(panels.add("world", "World"), page);
const plots = new PlotPanel(panels.add("plots", "Plots"), page);
const graph = new GraphPanel(panels.add("graph", "Topics"));
const parameters = new ParameterPanel(panels.add("parameters", "Parameters"), page);
const forest = new TreePanel(panels.add("trees", "Tree"), page);
const log = new LogPanel(panels.add("log", "Log"));

// -- looks ------------------------------------------------------------------------------------------------------------
function dress(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  by("theme").textContent = theme === "dark" ? "Light" : "Dark";
  stage.theme();
}
const wished = new URLSearchParams(location.search).get("theme") || localStorage.getItem("theme");
dress(wished || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
by("theme").addEventListener("click", () => dress(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

displays.scene("world", "World", true, (on) => bodies.show("world", on));
displays.scene("robots", "Robots", true, (on) => bodies.show("robots", on));
displays.scene("people", "People", true, (on) => bodies.show("people", on));
displays.scene("names", "Names", true, (on) => { bodies.named = on; bodies.label(); });
displays.scene("trails", "Trails", true, (on) => trails.show(on));
displays.scene("grid", "Grid, 1 m", true, (on) => stage.showGrid(on));
displays.scene("transforms", "Frames", false, (on) => { transforms.show(on); socket.say("want", { topic: "transforms", on }); });
displays.addEventListener("want", ({ detail: { name, on } }) => {
  if (!on) { drawings.remove(name); pictures.remove(name); }
});

let timer = 0;
function notice(text, bad = false) {
  const element = by("notice");
  element.textContent = text;
  element.className = bad ? "seen bad" : "seen";
  clearTimeout(timer);
  timer = setTimeout(() => { element.className = ""; }, 5000);
}
page.notice = notice;
socket.on("notice", ({ text, bad }) => notice(text, bad));

function state(kind, text) {
  by("state").dataset.state = kind;
  by("state").textContent = text;
}

// -- what the server says ---------------------------------------------------------------------------------------------
socket.on("closed", ({ was }) => {
  state("lost", was ? "connection lost" : location.hash ? "no connection" : "no token in the address");
});
socket.on("welcome", (said) => {
  page.viewer = said.viewer;
  page.readOnly = said.read_only;
  displays.again();
  plots.again();
  socket.say("want", { topic: "trees", on: true });
  if (displays.isOn("transforms")) socket.say("want", { topic: "transforms", on: true });
});
socket.on("show", ({ there }) => { if (!there) state("waiting", page.run ? "ended" : "waiting"); });
socket.on("run", (said) => {
  const anew = page.run !== null;
  page.run = said;
  by("run-name").textContent = said.name;
  document.title = `${said.name} · Roboyard`;
  if (anew) {
    drawings.clear();
    trails.clear();
    displays.forget();
    bodies.number = -1;
    page.ghosts.clear();
  }
  log.clear();
  transport.about(said);
  for (const key of ["drive", "arm", "world", "plots", "parameters", "trees"]) panels.hide(key, said.kind !== "live");
  by("tools").style.display = said.kind === "live" && !page.readOnly ? "" : "none";
});
socket.on("scene", (head) => {
  bodies.build(head);
  const chosen = by("follow").value;
  by("follow").replaceChildren(new Option("nothing", ""), ...[...bodies.robots, ...bodies.people].map((name) => new Option(name, name)));
  by("follow").value = chosen;
  if (bodies.fresh && bodies.robots.length) by("follow").value = bodies.robots[0];
});
const paces = [];
socket.on("poses", (head) => {
  page.time = head.t;
  page.updates += 1;
  state(head.paused ? "paused" : "running", head.paused ? "paused" : page.run?.kind === "recording" ? "playing" : "running");
  const now = performance.now() / 1000;
  paces.push([now, head.t]);
  while (paces.length > 2 && paces[0][0] < now - 2) paces.shift();
  const [wall, simulated] = [now - paces[0][0], head.t - paces[0][1]];
  by("time").textContent = `${head.t.toFixed(2)} s`;
  by("pace").textContent = wall > 0.5 && !head.paused ? `${(simulated / wall).toFixed(2)} ×` : "";
  transport.update(head);
  bodies.move(head);
  trails.move(head.t);
});
socket.on("graph", (said) => {
  page.graph = said;
  displays.update(said.topics);
  graph.update(said);
  if (page.run?.kind !== "live") return;
  plots.update(said.topics);
  parameters.update(said.nodes);
});
socket.on("abilities", (said) => {
  page.tools.update(said);
  page.drive.update();
  page.arm.update(said.arms);
  panels.hide("arm", !Object.keys(said.arms).length);
  world.update(said.things, said.people, said.tasks);
});
socket.on("trees", ({ trees }) => forest.update(trees));
socket.on("log", (record) => log.add(record));
socket.on("draw", (head) => {
  if (!displays.isOn(head.topic)) return;
  if (head.shape === "picture") pictures.show(head); else drawings.draw(head);
});
socket.on("ghost", (head) => { if (!head.topic || displays.isOn(head.topic)) page.ghosts.show(head); });
socket.on("transforms", (head) => transforms.update(head.frames));
socket.on("refused", (said) => { if (said.id === null || said.id === undefined) notice(said.what, true); });

// -- control ----------------------------------------------------------------------------------------------------------
socket.on("control", ({ holder, asking, viewers }) => {
  page.mine = holder !== null && holder === page.viewer;
  const element = by("control");
  const button = (text, op) => {
    const made = document.createElement("button");
    made.textContent = text;
    made.dataset.op = op;
    made.addEventListener("click", () => socket.say(op));
    return made;
  };
  const others = viewers.length > 1 ? ` · ${viewers.length} viewers` : "";
  const who = page.readOnly ? "looking only" : page.mine ? "you have control" : holder === null ? "nobody has control" : `viewer ${holder} has control`;
  element.replaceChildren(`${who}${others} `);
  if (!page.readOnly) {
    if (page.mine && asking.length) element.append(`viewer ${asking[0]} asks `, button("Hand over", "give"), " ", button("Keep", "keep"));
    else if (page.mine && viewers.length > 1) element.append(button("Let go", "give"));
    else if (!page.mine) element.append(asking.includes(page.viewer) ? "asked" : button(holder === null ? "Take control" : "Ask for control", "take"));
  }
  transport.allow(page.mine);
  page.tools.refresh();
  page.drive.update();
  page.arm.refresh();
});

// -- camera -----------------------------------------------------------------------------------------------------------
let last = null; // where who is followed was
stage.before.push(() => {
  const body = by("follow").value ? bodies.bodyOf(by("follow").value) : null;
  if (!body) { last = null; return; }
  const now = body.position;
  if (last) {
    const way = new THREE.Vector3().subVectors(now, last);
    if (way.lengthSq() > 1e-12) {
      stage.camera.position.add(way);
      stage.controls.target.add(way);
      stage.change();
    }
  }
  last = now.clone();
});
function approach(model) {
  const box = bodies.bounds(model);
  const middle = box.getCenter(new THREE.Vector3());
  const reach = Math.max(box.getSize(new THREE.Vector3()).length() * 0.5, 0.3);
  const body = bodies.bodyOf(model);
  const behind = new THREE.Vector3(-1, 0.35, 0).applyQuaternion(body.quaternion).setZ(0).normalize().multiplyScalar(4.2 * reach);
  stage.controls.target.copy(middle);
  stage.camera.position.copy(middle).add(behind).add(new THREE.Vector3(0, 0, 2.4 * reach));
  stage.change();
}
by("follow").addEventListener("change", () => { last = null; if (by("follow").value) approach(by("follow").value); });
by("home").addEventListener("click", () => { by("follow").value = ""; stage.frame(bodies.bounds()); });
document.addEventListener("keydown", (event) => { if (event.code === "Home") by("home").click(); });
by("shot").addEventListener("click", async () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await stage.picture());
  link.download = `${page.run?.name || "roboyard"}-${page.time.toFixed(2)}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
page.approach = approach;
