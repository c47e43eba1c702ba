// Where robots have been, and where frames are.

import * as THREE from "./three/three.module.min.js";
import { flat, ribbon } from "./drawings.js";
import { discard } from "./stage.js";

const STEP = 0.04; // way between two points of a trail [m]
const MOST = 3000;
const COLOURS = [0x00897b, 0x6e56cf, 0xf76b15, 0x0894b3];

export class Trails {
  constructor(stage, bodies) {
    this.stage = stage;
    this.bodies = bodies;
    this.points = new Map();
    this.meshes = new Map();
    this.shown = true;
    this.time = -Infinity;
  }

  show(on) {
    this.shown = on;
    for (const mesh of this.meshes.values()) mesh.visible = on;
    this.stage.change();
  }

  clear() {
    this.points.clear();
    for (const mesh of this.meshes.values()) discard(mesh);
    this.meshes.clear();
    this.stage.change();
  }

  move(time) {
    if (time < this.time - 1e-6 || time > this.time + 5) this.clear(); // somebody has jumped in time
    this.time = time;
    this.bodies.robots.forEach((name, index) => {
      const body = this.bodies.bodyOf(name);
      if (!body) return;
      const points = this.points.get(name) || [];
      const { x, y } = body.position;
      const n = points.length;
      if (n && Math.hypot(points[n - 3] - x, points[n - 2] - y) < STEP) return;
      points.push(x, y, 0.02);
      if (points.length > 3 * MOST) points.splice(0, 3);
      this.points.set(name, points);
      if (points.length < 6) return;
      const old = this.meshes.get(name);
      if (old) discard(old);
      const mesh = new THREE.Mesh(ribbon(points, 0.025), flat(COLOURS[index % COLOURS.length], 0.8));
      mesh.visible = this.shown;
      this.meshes.set(name, mesh);
      this.stage.scene.add(mesh);
    });
  }
}

export class Transforms {
  constructor(stage) {
    this.stage = stage;
    this.group = new THREE.Group();
    this.axes = new Map();
    this.group.visible = false;
    stage.scene.add(this.group);
  }

  show(on) {
    this.group.visible = on;
    if (!on) this.stage.unlabelAll("frame ");
    this.stage.change();
  }

  update(frames) {
    if (!this.group.visible) return;
    for (const [name, row] of Object.entries(frames)) {
      let axes = this.axes.get(name);
      if (!axes) {
        axes = new THREE.AxesHelper(0.15);
        this.axes.set(name, axes);
        this.group.add(axes);
      }
      axes.position.set(row[0], row[1], row[2]);
      axes.quaternion.set(row[4], row[5], row[6], row[3]);
      if (!this.stage.marks.has(`frame ${name}`)) this.stage.label(`frame ${name}`, name, () => axes.position.clone(), "frame");
    }
    this.stage.change();
  }
}
