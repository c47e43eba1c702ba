// What topics show: each topic has a group at the place of its frame, made anew with every message.

import * as THREE from "./three/three.module.min.js";
import { bytes, floats, signed } from "./socket.js";
import { discard } from "./stage.js";
import { place } from "./bodies.js";

const COLOURS = [0xe5484d, 0x3b82f6, 0x12a594, 0xf76b15, 0x8e4ec6, 0x46a758, 0xd6409f, 0x0894b3, 0xb8860b, 0x6e56cf];
const LIFT = { grid: 0.006, line: 0.03, arrows: 0.04 };

// Alike for the same topic on each day.
export function colourOf(topic) {
  let sum = 7;
  for (const letter of topic) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return COLOURS[sum % COLOURS.length];
}

export class Drawings extends EventTarget {
  constructor(stage) {
    super();
    this.stage = stage;
    this.groups = new Map();
    this.order = 1;
  }

  draw(head) {
    const old = this.groups.get(head.topic);
    const order = old ? old.userData.order : this.order++;
    if (head.shape === "grid" && old && refill(old, head)) {
      place(old, head.pose);
      this.stage.change();
      return;
    }
    if (old) discard(old);
    const make = SHAPES[head.shape];
    const group = new THREE.Group();
    group.userData.order = order;
    place(group, head.pose || [0, 0, 0, 1, 0, 0, 0]);
    if (make) make(group, head, colourOf(head.topic), order);
    this.groups.set(head.topic, group);
    this.stage.scene.add(group);
    this.stage.change();
  }

  remove(topic) {
    const old = this.groups.get(topic);
    if (!old) return;
    discard(old);
    this.groups.delete(topic);
    this.stage.change();
  }

  clear() {
    for (const topic of [...this.groups.keys()]) this.remove(topic);
  }
}

const SHAPES = {
  points(group, head, colour) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(floats(head.parts[0]), 3));
    const coloured = head.parts.length > 1;
    if (coloured) geometry.setAttribute("color", new THREE.BufferAttribute(bytes(head.parts[1]), 3, true));
    const size = head.style === "scan" ? 4 : 2.5;
    const material = new THREE.PointsMaterial({ size, sizeAttenuation: false, vertexColors: coloured,
      color: coloured ? 0xffffff : colour });
    const points = new THREE.Points(geometry, material);
    points.frustumCulled = false;
    group.add(points);
  },

  line(group, head, colour) {
    const points = floats(head.parts[0]);
    const mesh = new THREE.Mesh(ribbon(points, head.width || 0.035, head.closed), flat(colour));
    mesh.position.z = LIFT.line;
    group.add(mesh);
  },

  segments(group, head, colour) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(floats(head.parts[0]), 3));
    group.add(new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: colour })));
  },

  arrows(group, head, colour) {
    const rows = floats(head.parts[0]);
    const count = rows.length / 7;
    const mesh = new THREE.InstancedMesh(arrow(), flat(colour), count);
    const matrix = new THREE.Matrix4();
    const at = new THREE.Vector3();
    const turn = new THREE.Quaternion();
    const size = new THREE.Vector3(head.size, head.size, head.size);
    for (let k = 0; k < count; k += 1) {
      const o = k * 7;
      at.set(rows[o], rows[o + 1], rows[o + 2] + LIFT.arrows);
      turn.set(rows[o + 4], rows[o + 5], rows[o + 6], rows[o + 3]);
      mesh.setMatrixAt(k, matrix.compose(at, turn, size));
    }
    mesh.frustumCulled = false;
    group.add(mesh);
    if (head.ellipse && count) {
      const [a, b, angle] = head.ellipse;
      const disc = new THREE.Mesh(new THREE.CircleGeometry(1, 40), flat(colour, 0.25));
      disc.scale.set(Math.max(2 * a, 0.01), Math.max(2 * b, 0.01), 1);
      disc.rotation.z = angle;
      disc.position.set(rows[0], rows[1], rows[2] + 0.02);
      group.add(disc);
    }
  },

  cone(group, head, colour) {
    const shape = new THREE.CircleGeometry(head.range, 16, -head.angle / 2, head.angle);
    group.add(new THREE.Mesh(shape, flat(colour, 0.3)));
  },

  force(group, head, colour) {
    addForce(group, [0, 0, 0], head.force, colour);
  },

  forces(group, head, colour) {
    const places = floats(head.parts[0]);
    const forces = floats(head.parts[1]);
    for (let k = 0; k < places.length; k += 3) addForce(group, places.slice(k, k + 3), forces.slice(k, k + 3), colour);
  },

  axes(group, head) {
    const rows = floats(head.parts[0]);
    for (let k = 0; k < rows.length; k += 7) {
      const axes = new THREE.AxesHelper(head.size);
      place(axes, rows.slice(k, k + 7));
      group.add(axes);
    }
  },

  grid(group, head, colour, order) {
    const material = new THREE.MeshBasicMaterial({ map: gridTexture(head), transparent: true, depthWrite: false,
      side: THREE.DoubleSide, polygonOffset: true, polygonOffsetFactor: -order, polygonOffsetUnits: -order });
    const mesh = new THREE.Mesh(new THREE.PlaneGeometry(1, 1), material);
    mesh.renderOrder = order;
    group.add(mesh);
    layGrid(mesh, head, order);
  },

  heights(group, head) {
    const values = floats(head.parts[0]);
    const { width, height, cell, corner } = head;
    const points = new Float32Array(values.length * 3);
    const colours = new Float32Array(values.length * 3);
    const known = values.filter(Number.isFinite);
    let low = Infinity;
    let high = -Infinity;
    for (const value of known) { low = Math.min(low, value); high = Math.max(high, value); }
    const colour = new THREE.Color();
    for (let k = 0; k < values.length; k += 1) {
      const z = Number.isFinite(values[k]) ? values[k] : NaN;
      points.set([corner[0] + ((k % width) + 0.5) * cell, corner[1] + (Math.floor(k / width) + 0.5) * cell, z], 3 * k);
      heat(colour, (values[k] - low) / Math.max(high - low, 1e-3));
      colours.set([colour.r, colour.g, colour.b], 3 * k);
    }
    const faces = [];
    for (let row = 0; row + 1 < height; row += 1) {
      for (let column = 0; column + 1 < width; column += 1) {
        const a = row * width + column;
        const corners = [a, a + 1, a + width + 1, a + width];
        if (corners.every((index) => Number.isFinite(values[index]))) {
          faces.push(corners[0], corners[1], corners[2], corners[0], corners[2], corners[3]);
        }
      }
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(points, 3));
    geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3));
    geometry.setIndex(faces);
    const material = new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.DoubleSide, transparent: true, opacity: 0.75 });
    const mesh = new THREE.Mesh(geometry, material);
    mesh.frustumCulled = false;
    mesh.position.z = 0.004;
    group.add(mesh);
  },

  voxels(group, head) {
    const rows = floats(head.parts[0]);
    const count = rows.length / 4;
    const material = new THREE.MeshLambertMaterial();
    const mesh = new THREE.InstancedMesh(new THREE.BoxGeometry(1, 1, 1), material, count);
    const matrix = new THREE.Matrix4();
    const colour = new THREE.Color();
    const colours = head.parts.length > 1 ? bytes(head.parts[1]) : null;
    let low = Infinity;
    let high = -Infinity;
    for (let k = 0; k < count; k += 1) { low = Math.min(low, rows[4 * k + 2]); high = Math.max(high, rows[4 * k + 2]); }
    for (let k = 0; k < count; k += 1) {
      const size = rows[4 * k + 3];
      matrix.makeScale(size, size, size).setPosition(rows[4 * k], rows[4 * k + 1], rows[4 * k + 2]);
      mesh.setMatrixAt(k, matrix);
      if (colours) colour.setRGB(colours[3 * k] / 255, colours[3 * k + 1] / 255, colours[3 * k + 2] / 255, THREE.SRGBColorSpace);
      else heat(colour, (rows[4 * k + 2] - low) / Math.max(high - low, 1e-3));
      mesh.setColorAt(k, colour);
    }
    mesh.frustumCulled = false;
    group.add(mesh);
  },

  support(group, head, colour) {
    const corners = floats(head.parts[0]);
    const feet = floats(head.parts[1]);
    if (corners.length >= 9) {
      const shape = new THREE.BufferGeometry();
      const triangles = [];
      for (let k = 3; k + 5 < corners.length; k += 3) triangles.push(...corners.slice(0, 3), ...corners.slice(k, k + 6));
      shape.setAttribute("position", new THREE.Float32BufferAttribute(triangles, 3));
      const mesh = new THREE.Mesh(shape, flat(colour, 0.3));
      mesh.position.z = 0.004;
      group.add(mesh);
    }
    const points = new THREE.BufferGeometry();
    points.setAttribute("position", new THREE.BufferAttribute(feet, 3));
    group.add(new THREE.Points(points, new THREE.PointsMaterial({ color: colour, size: 6, sizeAttenuation: false })));
  },

  steps(group, head, colour) {
    const track = floats(head.parts[0]);
    const holds = floats(head.parts[1]);
    if (track.length >= 6) group.add(new THREE.Mesh(ribbon(track, 0.012), flat(colour)));
    const count = holds.length / 4;
    const discs = new THREE.InstancedMesh(new THREE.CircleGeometry(0.018, 16), flat(0xffffff, 0.85), count);
    const matrix = new THREE.Matrix4();
    for (let k = 0; k < count; k += 1) {
      discs.setMatrixAt(k, matrix.makeTranslation(holds[4 * k], holds[4 * k + 1], holds[4 * k + 2] + 0.004));
      discs.setColorAt(k, new THREE.Color(COLOURS[holds[4 * k + 3] % COLOURS.length]));
    }
    discs.frustumCulled = false;
    group.add(discs);
  },

  markers(group, head) {
    for (const marker of head.markers) addMarker(group, marker, marker.points === undefined ? null : floats(head.parts[marker.points]));
  },
};

export function flat(colour, opacity = 1) {
  return new THREE.MeshBasicMaterial({ color: colour, side: THREE.DoubleSide, transparent: opacity < 1, opacity,
    depthWrite: opacity === 1 });
}

// A band of some width along points, level.
export function ribbon(points, width, closed = false) {
  const count = points.length / 3;
  const corners = [];
  const legs = closed ? count : count - 1;
  for (let k = 0; k < legs; k += 1) {
    const a = 3 * k;
    const b = 3 * ((k + 1) % count);
    const dx = points[b] - points[a];
    const dy = points[b + 1] - points[a + 1];
    const length = Math.hypot(dx, dy) || 1;
    const nx = (-dy / length) * width * 0.5;
    const ny = (dx / length) * width * 0.5;
    const [az, bz] = [points[a + 2], points[b + 2]];
    const p = [points[a] + nx, points[a + 1] + ny, az];
    const q = [points[a] - nx, points[a + 1] - ny, az];
    const r = [points[b] - nx, points[b + 1] - ny, bz];
    const s = [points[b] + nx, points[b + 1] + ny, bz];
    corners.push(...p, ...q, ...r, ...p, ...r, ...s);
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(corners, 3));
  return geometry;
}

// A level arrow of length 1 along x.
export function arrow() {
  const shape = new THREE.Shape();
  [[0, -0.08], [0.6, -0.08], [0.6, -0.24], [1, 0], [0.6, 0.24], [0.6, 0.08], [0, 0.08]].forEach(([x, y], k) => {
    if (k) shape.lineTo(x, y); else shape.moveTo(x, y);
  });
  return new THREE.ShapeGeometry(shape);
}

function addForce(group, at, force, colour) {
  const way = new THREE.Vector3(...force);
  const size = way.length();
  if (!(size > 1e-3)) return;
  group.add(new THREE.ArrowHelper(way.normalize(), new THREE.Vector3(...at), Math.min(0.05 + size * 0.01, 1), colour, 0.05, 0.03));
}

// From blue over green to red, for 0 to 1.
function heat(colour, share) {
  colour.setHSL(0.66 * (1 - Math.min(Math.max(share || 0, 0), 1)), 0.75, 0.5);
}

function gridPixels(head) {
  const cells = signed(head.parts[0]);
  const pixels = new Uint8Array(cells.length * 4);
  const cost = /costmap/.test(head.topic);
  for (let k = 0; k < cells.length; k += 1) {
    const value = cells[k];
    const o = 4 * k;
    if (value < 0) pixels.set(cost ? [0, 0, 0, 0] : [120, 130, 135, 60], o);
    else if (!cost) { const grey = 245 - 2.3 * value; pixels.set([grey, grey, grey, 60 + 1.7 * value], o); }
    else if (value === 0) pixels.set([0, 0, 0, 0], o);
    else if (value >= 100) pixels.set([200, 30, 160, 200], o);
    else if (value >= 99) pixels.set([20, 170, 190, 150], o);
    else pixels.set([40 + 2 * value, 60, 230 - 2 * value, 30 + value], o);
  }
  return pixels;
}

function gridTexture(head) {
  const texture = new THREE.DataTexture(gridPixels(head), head.width, head.height, THREE.RGBAFormat);
  texture.colorSpace = THREE.SRGBColorSpace;
  texture.magFilter = THREE.NearestFilter;
  texture.minFilter = THREE.LinearFilter;
  texture.needsUpdate = true;
  return texture;
}

function layGrid(mesh, head, order) {
  const [width, height] = [head.width * head.cell, head.height * head.cell];
  const frame = new THREE.Group();
  place(frame, head.origin);
  const middle = new THREE.Vector3(width / 2, height / 2, LIFT.grid + 0.002 * (order % 8)).applyQuaternion(frame.quaternion);
  mesh.position.copy(frame.position).add(middle);
  mesh.quaternion.copy(frame.quaternion);
  mesh.scale.set(width, height, 1);
}

// Puts new cells into a map that has kept its size.
function refill(group, head) {
  const mesh = group.children[0];
  const map = mesh?.material.map;
  if (!map || map.image.width !== head.width || map.image.height !== head.height) return false;
  map.image.data.set(gridPixels(head));
  map.needsUpdate = true;
  layGrid(mesh, head, group.userData.order);
  return true;
}

function addMarker(group, marker, points) {
  const [red, green, blue, alpha] = marker.colour;
  const colour = new THREE.Color().setRGB(red, green, blue, THREE.SRGBColorSpace);
  const [x, y, z] = marker.scale;
  let object = null;
  if (marker.kind === "points" && points) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(points, 3));
    object = new THREE.Points(geometry, new THREE.PointsMaterial({ color: colour, size: Math.max(x, 0.03) }));
  } else if ((marker.kind === "lines" || marker.kind === "strip") && points) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(points, 3));
    const Kind = marker.kind === "lines" ? THREE.LineSegments : THREE.Line;
    object = new Kind(geometry, new THREE.LineBasicMaterial({ color: colour }));
  } else if (marker.kind === "arrow") {
    object = new THREE.Mesh(arrow(), flat(colour, alpha));
    object.scale.set(x, x, x);
  } else {
    const shapes = { cube: () => new THREE.BoxGeometry(x, y, z), sphere: () => new THREE.SphereGeometry(0.5, 16, 12).scale(x, y, z),
      cylinder: () => new THREE.CylinderGeometry(0.5, 0.5, 1, 20).rotateX(Math.PI / 2).scale(x, y, z) };
    if (shapes[marker.kind]) object = new THREE.Mesh(shapes[marker.kind](), flat(colour, alpha));
  }
  if (!object) return;
  place(object, marker.pose);
  object.frustumCulled = false;
  group.add(object);
}
