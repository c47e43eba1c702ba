// Robots, people and the world: bodies with what hangs on them, moved as the server says.

import * as THREE from "./three/three.module.min.js";
import { bytes, floats, signed } from "./socket.js";
import { discard } from "./stage.js";

const WIDE = 200; // half size of ground without an end [m]

export class Bodies {
  constructor(stage) {
    this.stage = stage;
    this.number = 0;
    this.groups = [];
    this.names = [];
    this.robots = [];
    this.people = [];
    this.shown = { world: true, robots: true, people: true };
    this.root = new THREE.Group();
    stage.scene.add(this.root);
  }

  // Makes everything anew, as a frame "scene" says.
  build(head) {
    const first = this.number === 0;
    discard(this.root);
    this.root = new THREE.Group();
    this.stage.scene.add(this.root);
    this.separator = head.separator;
    this.names = head.bodies;
    this.robots = head.robots;
    this.people = head.people;
    this.groups = head.bodies.map(() => {
      const group = new THREE.Group();
      this.root.add(group);
      return group;
    });
    const meshes = head.meshes.map((mesh) => meshGeometry(head, mesh));
    const pictures = head.pictures.map((picture) => pictureTexture(head, picture, () => this.stage.change()));
    const shapes = new Map();
    const materials = new Map();
    for (const geom of head.geoms) {
      const geometry = geom.kind === "mesh" ? meshes[geom.mesh] : known(shapes, `${geom.kind} ${geom.size}`, () => simple(geom));
      const material = known(materials, `${geom.rgba} ${geom.picture} ${geom.repeat}`, () => surface(geom, pictures));
      const mesh = new THREE.Mesh(geometry, material);
      place(mesh, geom.pose);
      mesh.userData.model = geom.name.split(head.separator)[0];
      mesh.userData.kind = this.kindOf(mesh.userData.model);
      mesh.visible = this.shown[mesh.userData.kind];
      this.groups[geom.body].add(mesh);
    }
    this.number = head.number;
    this.fresh = first;
    this.unlabelled = true;
    this.stage.change();
  }

  kindOf(model) {
    return this.robots.includes(model) ? "robots" : this.people.includes(model) ? "people" : "world";
  }

  show(kind, on) {
    this.shown[kind] = on;
    this.root.traverse((part) => { if (part.isMesh && part.userData.kind === kind) part.visible = on; });
    this.stage.change();
  }

  // Poses of a frame "poses"; gives whether anything has moved.
  move(head) {
    if (head.number !== this.number || !head.parts.length) return false;
    const rows = floats(head.parts[0]);
    let moved = false;
    this.groups.forEach((group, index) => {
      const at = index * 7;
      const { position: p, quaternion: q } = group;
      if (p.x !== rows[at] || p.y !== rows[at + 1] || p.z !== rows[at + 2] || q.w !== rows[at + 3] || q.x !== rows[at + 4]
        || q.y !== rows[at + 5] || q.z !== rows[at + 6]) {
        p.set(rows[at], rows[at + 1], rows[at + 2]);
        q.set(rows[at + 4], rows[at + 5], rows[at + 6], rows[at + 3]);
        moved = true;
      }
    });
    if (moved) this.stage.change();
    if (this.unlabelled) {
      this.unlabelled = false;
      this.label();
    }
    if (this.fresh) {
      this.fresh = false;
      this.stage.frame(this.robots.length ? this.around(this.robots[0]) : this.bounds());
    }
    return moved;
  }

  // The first body of a model that moves; null for what stands still.
  bodyOf(model) {
    const index = this.names.findIndex((name) => name.split(this.separator)[0] === model);
    return index < 0 ? null : this.groups[index];
  }

  // What there is to see, ground without an end left out.
  bounds(model = null) {
    const box = new THREE.Box3();
    this.root.updateMatrixWorld(true);
    this.root.traverse((part) => {
      if (!part.isMesh || (model !== null && part.userData.model !== model)) return;
      if (part.geometry.userData.wide) return;
      box.expandByObject(part);
    });
    if (box.isEmpty()) box.set(new THREE.Vector3(-2, -2, 0), new THREE.Vector3(2, 2, 1));
    return box;
  }

  // A model and some of what is about it.
  around(model) {
    const box = this.bounds(model);
    const reach = Math.min(Math.max(2 * box.getSize(new THREE.Vector3()).length(), 0.6), 1.4);
    box.expandByVector(new THREE.Vector3(reach, reach, 0.3 * reach));
    box.min.z = Math.max(box.min.z, 0);
    return box;
  }

  label() {
    this.stage.unlabelAll("name ");
    if (this.named === false) return;
    for (const model of [...this.robots, ...this.people]) {
      const body = this.bodyOf(model);
      if (!body) continue;
      const top = this.bounds(model).max.z - body.position.z + 0.1;
      this.stage.label(`name ${model}`, model, () => body.position.clone().add(new THREE.Vector3(0, 0, top)));
    }
  }
}

export function place(object, row) {
  object.position.set(row[0], row[1], row[2]);
  object.quaternion.set(row[4], row[5], row[6], row[3]);
}

function known(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function simple({ kind, size: [x, y, z] }) {
  switch (kind) {
    case "box": return new THREE.BoxGeometry(2 * x, 2 * y, 2 * z);
    case "sphere": return new THREE.SphereGeometry(x, 24, 16);
    case "ellipsoid": return new THREE.SphereGeometry(1, 24, 16).scale(x, y, z);
    case "cylinder": return new THREE.CylinderGeometry(x, x, 2 * y, 32).rotateX(Math.PI / 2);
    case "capsule": return new THREE.CapsuleGeometry(x, 2 * y, 8, 20).rotateX(Math.PI / 2);
    default: {
      const plane = new THREE.PlaneGeometry(2 * (x || WIDE), 2 * (y || WIDE));
      plane.userData.wide = !x || !y || x > 30 || y > 30;
      return plane;
    }
  }
}

function meshGeometry(head, mesh) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(floats(head.parts[mesh.corners]), 3));
  const normals = new THREE.InterleavedBuffer(signed(head.parts[mesh.normals]), 4);
  geometry.setAttribute("normal", new THREE.InterleavedBufferAttribute(normals, 3, 0, true));
  if (mesh.uv !== undefined) {
    const uv = floats(head.parts[mesh.uv]);
    for (let k = 1; k < uv.length; k += 2) uv[k] = 1 - uv[k];
    geometry.setAttribute("uv", new THREE.BufferAttribute(uv, 2));
  }
  return geometry;
}

function pictureTexture(head, picture, ready) {
  const url = URL.createObjectURL(new Blob([bytes(head.parts[picture.png])], { type: "image/png" }));
  const texture = new THREE.TextureLoader().load(url, () => { URL.revokeObjectURL(url); ready(); });
  texture.colorSpace = THREE.SRGBColorSpace;
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  return texture;
}

function surface(geom, pictures) {
  const [red, green, blue, alpha] = geom.rgba;
  const material = new THREE.MeshLambertMaterial({ color: new THREE.Color().setRGB(red, green, blue, THREE.SRGBColorSpace) });
  if (alpha < 0.999) Object.assign(material, { transparent: true, opacity: alpha, depthWrite: alpha > 0.6 });
  if (geom.picture !== undefined) {
    const map = pictures[geom.picture].clone();
    if (geom.kind === "plane") map.repeat.set(geom.repeat[0] || 1, geom.repeat[1] || 1);
    material.map = map;
  }
  return material;
}
