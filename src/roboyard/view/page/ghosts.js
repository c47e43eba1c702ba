// Planned motions as ghosts: the robot's own bodies, seen through, at the moments of a plan.

import * as THREE from "./three/three.module.min.js";
import { floats } from "./socket.js";

const PAUSE = 0.7; // at the end of a motion, before it is shown again [s]

export class Ghosts {
  constructor(stage, bodies) {
    this.stage = stage;
    this.bodies = bodies;
    this.all = new Map();
    stage.before.push(() => this.tick());
  }

  show(head) {
    const key = head.topic || `own ${head.robot}`;
    this.remove(key);
    if (head.number !== this.bodies.number) return;
    const colour = head.topic ? 0x6e56cf : 0x00a896;
    const material = new THREE.MeshLambertMaterial({ color: colour, transparent: true, opacity: 0.42, depthWrite: false });
    const root = new THREE.Group();
    const groups = head.bodies.map((index) => {
      const group = new THREE.Group();
      for (const part of this.bodies.groups[index].children) {
        const mesh = new THREE.Mesh(part.geometry, material);
        mesh.position.copy(part.position);
        mesh.quaternion.copy(part.quaternion);
        group.add(mesh);
      }
      root.add(group);
      return group;
    });
    this.stage.scene.add(root);
    const ghost = { root, groups, material, times: head.times, rows: floats(head.parts[0]), start: performance.now() / 1000, once: Boolean(head.topic) };
    this.all.set(key, ghost);
    this.put(ghost, head.times.length - 1);
  }

  put({ groups, rows }, moment) {
    groups.forEach((group, index) => {
      const o = (moment * groups.length + index) * 7;
      group.position.set(rows[o], rows[o + 1], rows[o + 2]);
      group.quaternion.set(rows[o + 4], rows[o + 5], rows[o + 6], rows[o + 3]);
    });
    this.stage.change();
  }

  // Ghosts of several moments move, again and again; those that a topic tells move once and fade out.
  tick() {
    const now = performance.now() / 1000;
    for (const [key, ghost] of this.all) {
      const { times, start, once } = ghost;
      const length = times[times.length - 1];
      if (times.length > 1) {
        const passed = once ? Math.min(now - start, length) : (now - start) % (length + PAUSE);
        const moment = times.findIndex((time) => time >= passed);
        if (moment !== ghost.moment) this.put(ghost, ghost.moment = moment < 0 ? times.length - 1 : moment);
      }
      if (once && now - start > length + 2) this.remove(key);
    }
  }

  // Plain discard would free what the robot itself is drawn with.
  remove(key) {
    const ghost = this.all.get(key);
    if (!ghost) return;
    ghost.root.removeFromParent();
    ghost.material.dispose();
    this.all.delete(key);
    this.stage.change();
  }

  clear() {
    for (const key of [...this.all.keys()]) this.remove(key);
  }
}
