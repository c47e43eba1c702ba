// The stage: canvas, camera, lights, the ground's grid; pictures are drawn only when something has changed.

import * as THREE from "./three/three.module.min.js";
import { OrbitControls } from "./three/OrbitControls.js";

// Without a graphics card every pixel counts.
function isSlow() {
  const probe = document.createElement("canvas").getContext("webgl2");
  const info = probe && probe.getExtension("WEBGL_debug_renderer_info");
  const name = info ? probe.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  probe?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

export class Stage {
  constructor(canvas, labels) {
    this.canvas = canvas;
    this.labels = labels;
    const slow = isSlow();
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: !slow, preserveDrawingBuffer: false });
    this.renderer.setPixelRatio(slow ? 0.8 : Math.min(window.devicePixelRatio, 2));
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(45, 1, 0.02, 2000);
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(-4, -5, 4);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.maxPolarAngle = Math.PI * 0.55;
    this.controls.addEventListener("change", () => this.change());
    this.sky = new THREE.HemisphereLight(0xffffff, 0x8d8d86, 2.0);
    this.sky.position.set(0, 0, 1);
    this.sun = new THREE.DirectionalLight(0xffffff, 1.7);
    this.sun.position.set(-3, -5, 9);
    this.scene.add(this.sky, this.sun);
    this.ray = new THREE.Raycaster();
    this.before = [];
    this.marks = new Map();
    this.changed = true;
    this.drawn = 0;
    this.grid = null;
    this.gridShown = true;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.resize();
    this.tick = this.tick.bind(this);
    requestAnimationFrame(this.tick);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
    if (!width || !height) return;
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.change();
  }

  theme() {
    const style = getComputedStyle(document.documentElement);
    const dark = document.documentElement.dataset.theme === "dark";
    this.scene.background = new THREE.Color(style.getPropertyValue("--sky").trim());
    this.sky.intensity = dark ? 1.25 : 2.0;
    this.sun.intensity = dark ? 1.2 : 1.7;
    if (this.grid) this.scene.remove(this.grid);
    this.grid = new THREE.GridHelper(40, 40, dark ? 0x6b7d86 : 0x8b989e, dark ? 0x3c4a52 : 0xb6c0c4);
    this.grid.rotation.x = Math.PI / 2;
    this.grid.position.z = 0.002;
    this.grid.material.transparent = true;
    this.grid.material.opacity = 0.45;
    this.grid.material.depthWrite = false;
    this.grid.visible = this.gridShown;
    this.scene.add(this.grid);
    this.change();
  }

  showGrid(on) {
    this.gridShown = on;
    if (this.grid) this.grid.visible = on;
    this.change();
  }

  change() { this.changed = true; }

  tick() {
    requestAnimationFrame(this.tick);
    this.controls.update();
    for (const before of this.before) before();
    if (!this.changed || this.isDrawing()) return;
    this.changed = false;
    this.drawn += 1;
    this.renderer.render(this.scene, this.camera);
    const gl = this.renderer.getContext();
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    this.placeLabels();
  }

  // Whether the picture before is not ready yet: one at a time, so that a slow machine still hears keys at once.
  isDrawing() {
    if (!this.fence) return false;
    const gl = this.renderer.getContext();
    if (gl.clientWaitSync(this.fence, 0, 0) === gl.TIMEOUT_EXPIRED) return true;
    gl.deleteSync(this.fence);
    this.fence = null;
    return false;
  }

  // Puts a name beside something; place: function that gives its point in the world, or null.
  label(key, name, place, kind = "") {
    this.unlabel(key);
    const span = document.createElement("span");
    span.textContent = name;
    if (kind) span.className = kind;
    this.labels.append(span);
    this.marks.set(key, { span, place });
    this.change();
  }

  unlabel(key) {
    this.marks.get(key)?.span.remove();
    this.marks.delete(key);
  }

  unlabelAll(start) {
    for (const key of [...this.marks.keys()]) if (key.startsWith(start)) this.unlabel(key);
  }

  placeLabels() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    for (const { span, place } of this.marks.values()) {
      const point = place();
      const seen = point && point.clone().project(this.camera);
      const inside = seen && seen.z < 1 && Math.abs(seen.x) < 1.05 && Math.abs(seen.y) < 1.05;
      span.style.display = inside ? "" : "none";
      if (inside) {
        span.style.left = `${(seen.x * 0.5 + 0.5) * width}px`;
        span.style.top = `${(0.5 - seen.y * 0.5) * height}px`;
      }
    }
  }

  // Looks at a box from above a corner.
  frame(box) {
    const middle = box.getCenter(new THREE.Vector3());
    const reach = Math.max(box.getSize(new THREE.Vector3()).length() * 0.5, 0.5);
    const away = (reach / Math.sin((this.camera.fov * Math.PI) / 360)) * (this.camera.aspect < 1 ? 1.6 : 1.05);
    this.controls.target.copy(middle);
    this.camera.position.copy(middle).add(new THREE.Vector3(-0.32, -0.42, 0.95).normalize().multiplyScalar(away));
    this.change();
  }

  // The ray from the camera through a point of the window.
  rayAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * 2 - 1;
    const y = 1 - ((event.clientY - box.top) / box.height) * 2;
    this.ray.setFromCamera(new THREE.Vector2(x, y), this.camera);
    return this.ray;
  }

  // Where the ray meets the level plane at a height; null if it does not.
  floorAt(event, height = 0) {
    const plane = new THREE.Plane(new THREE.Vector3(0, 0, 1), -height);
    return this.rayAt(event).ray.intersectPlane(plane, new THREE.Vector3());
  }

  async picture() {
    this.renderer.render(this.scene, this.camera);
    return new Promise((resolve) => this.canvas.toBlob(resolve, "image/png"));
  }
}

// Frees what hangs under an object on the graphics card, shared things left out.
export function discard(object) {
  object.traverse((part) => {
    if (part.geometry && !part.geometry.userData.shared) part.geometry.dispose();
    for (const material of [part.material].flat()) {
      if (material && !material.userData.shared) {
        material.map?.dispose();
        material.dispose();
      }
    }
  });
  object.removeFromParent();
}
