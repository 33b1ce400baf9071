/* The page's own script: unpacks orbitals and densities, finds their surfaces, and lets 3Dmol draw them. */
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const stage = document.getElementById("viewer");
  const state = { surface: "none", style: "ball", labels: "none", level: 0.03, arrow: false };
  const LOBES = ["#3b82ff", "#ff7a2b"];
  const LOWEST = 0.008, RANGE = 20;
  const unpacked = new Map();
  let ownLevel = null;
  let viewer = null, model = null, drawn = [], turn = 0, hidden = false, moved = false, arrow = null, arrowLabel = null;
  let current = data.atoms.map((atom) => atom.slice(1));

  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value ?? "none";

  /* Deflated differences along z, low bytes first: cuanto.report.surfaces.pack. */
  async function unpack(surface) {
    const bytes = Uint8Array.from(atob(surface.data), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const split = new Uint8Array(await new Response(stream).arrayBuffer());
    const n = split.length / 2, nz = surface.shape[2], values = new Float32Array(n);
    for (let i = 0, sum = 0; i < n; i++) {
      if (i % nz === 0) sum = 0;
      sum += ((split[i] | (split[n + i] << 8)) << 16) >> 16;
      values[i] = sum * surface.quantum;
    }
    return values;
  }

  /* Surface nets (S. F. F. Gibson, MICCAI 1998, doi:10.1007/BFb0056277): one vertex in every cell that the surface
     crosses, at the mean of the crossings of its edges; four of them around every edge that is crossed. */
  function surfaceNet(surface, values, sign, level) {
    const [nx, ny, nz] = surface.shape, step = [ny * nz, nz, 1], size = [nx, ny, nz];
    const at = new Int32Array(nx * ny * nz).fill(-1), vertices = [], normals = [], faces = [];
    const above = (i) => sign * values[i] - level;
    const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((c) => [c >> 2 & 1, c >> 1 & 1, c & 1]);
    const offsets = corners.map(([a, b, c]) => a * step[0] + b * step[1] + c);
    const edges = [];
    for (let c = 0; c < 8; c++) for (let x = 0; x < 3; x++) if (!corners[c][x]) edges.push([c, c + [4, 2, 1][x], x]);
    const slope = (p) => {
      const g = [0, 0, 0], h = 0.75;
      for (let x = 0; x < 3; x++) {
        const low = [...p], high = [...p];
        low[x] -= h; high[x] += h;
        g[x] = sign * (sample(low) - sample(high));
      }
      const norm = Math.hypot(...g) || 1;
      return { x: g[0] / norm, y: g[1] / norm, z: g[2] / norm };
    };
    const sample = (p) => {
      let i = 0;
      const f = [0, 0, 0];
      for (let x = 0; x < 3; x++) {
        const q = Math.min(Math.max(p[x], 0), size[x] - 1.001), k = Math.floor(q);
        f[x] = q - k; i += k * step[x];
      }
      let sum = 0;
      for (let c = 0; c < 8; c++) {
        let w = 1;
        for (let x = 0; x < 3; x++) w *= corners[c][x] ? f[x] : 1 - f[x];
        sum += w * values[i + offsets[c]];
      }
      return sum;
    };
    const cell = [0, 0, 0], v = new Float64Array(8);
    for (cell[0] = 0; cell[0] < nx - 1; cell[0]++) for (cell[1] = 0; cell[1] < ny - 1; cell[1]++)
      for (cell[2] = 0; cell[2] < nz - 1; cell[2]++) {
        const i = cell[0] * step[0] + cell[1] * step[1] + cell[2];
        let inside = 0;
        for (let c = 0; c < 8; c++) { v[c] = above(i + offsets[c]); inside += v[c] > 0; }
        if (inside === 0 || inside === 8) continue;
        const p = [0, 0, 0];
        let crossings = 0;
        for (const [a, b, x] of edges) if (v[a] > 0 !== v[b] > 0) {
          for (let y = 0; y < 3; y++) p[y] += cell[y] + corners[a][y];
          p[x] += v[a] / (v[a] - v[b]);
          crossings++;
        }
        for (let y = 0; y < 3; y++) p[y] /= crossings;
        at[i] = vertices.length;
        const [x, y, z] = p.map((q, k) => surface.origin[k] + q * surface.spacing);
        vertices.push({ x, y, z });
        normals.push(slope(p));
        for (let x = 0; x < 3; x++) {
          const y = (x + 1) % 3, z = (x + 2) % 3;
          if (v[0] > 0 === v[[4, 2, 1][x]] > 0 || !cell[y] || !cell[z]) continue;
          const quad = [at[i], at[i - step[y]], at[i - step[y] - step[z]], at[i - step[z]]];
          if (v[0] <= 0) quad.reverse();
          faces.push(quad[0], quad[1], quad[2], quad[0], quad[2], quad[3]);
        }
      }
    return { vertexArr: vertices, normalArr: normals, faceArr: faces };
  }

  async function drawSurface() {
    const wanted = state.surface;
    const surface = hidden ? undefined : data.surfaces.find((s) => s.key === wanted);
    if (surface && !unpacked.has(wanted)) unpacked.set(wanted, await unpack(surface));
    if (wanted !== state.surface) return;
    drawn.forEach((shape) => viewer.removeShape(shape));
    drawn = [];
    if (surface) for (const sign of [1, -1]) {
      const mesh = surfaceNet(surface, unpacked.get(wanted), sign, state.level);
      if (mesh.faceArr.length) drawn.push(viewer.addCustom({ ...mesh, color: LOBES[sign > 0 ? 0 : 1], opacity: 0.86 }));
    }
    viewer.render();
    stage.dataset.surface = wanted;
    stage.dataset.shapes = drawn.length;
  }

  function drawAtoms() {
    const styles = {
      ball: { stick: { radius: 0.13 }, sphere: { scale: 0.25 } },
      stick: { stick: { radius: 0.18 } },
      sphere: { sphere: { scale: 1.0 } },
    };
    viewer.setStyle({}, styles[state.style] ?? styles.ball);
    viewer.removeAllLabels();
    if (state.labels !== "none") data.atoms.forEach(([symbol], a) => {
      const [x, y, z] = current[a];
      const q = data.charges?.[a];
      const text = state.labels === "charges" && q !== undefined ? (q > 0 ? "+" : "") + q.toFixed(2) : `${symbol}${a + 1}`;
      viewer.addLabel(text.replace("-", "\u2212"), {
        position: { x, y, z }, fontSize: 12, fontColor: "white", backgroundColor: "#10182a", backgroundOpacity: 0.7,
        alignment: "center", inFront: true, borderThickness: 0,
      });
    });
    viewer.render();
  }

  /* Broad side first: the directions of the principal axes, found by power iteration. */
  function broadSide() {
    const n = data.atoms.length, mean = [1, 2, 3].map((x) => data.atoms.reduce((s, a) => s + a[x], 0) / n);
    const M = [0, 1, 2].map((i) => [0, 1, 2].map((j) =>
      data.atoms.reduce((s, a) => s + (a[i + 1] - mean[i]) * (a[j + 1] - mean[j]), 0)));
    const dominant = (avoid) => {
      let u = [0.61, 0.53, 0.59];
      for (let k = 0; k < 200; k++) {
        let w = M.map((row) => row[0] * u[0] + row[1] * u[1] + row[2] * u[2]);
        for (const a of avoid) { const d = w[0] * a[0] + w[1] * a[1] + w[2] * a[2]; w = w.map((q, x) => q - d * a[x]); }
        const norm = Math.hypot(...w);
        if (norm < 1e-9) return null;
        u = w.map((q) => q / norm);
      }
      return u;
    };
    const first = dominant([]), second = first && dominant([first]);
    if (!first || !second) return null;
    const third = [first[1] * second[2] - first[2] * second[1], first[2] * second[0] - first[0] * second[2],
      first[0] * second[1] - first[1] * second[0]];
    return quaternion([first, second, third]);
  }

  function quaternion(R) {
    const w = Math.sqrt(Math.max(0, 1 + R[0][0] + R[1][1] + R[2][2])) / 2;
    const x = Math.sign(R[2][1] - R[1][2]) * Math.sqrt(Math.max(0, 1 + R[0][0] - R[1][1] - R[2][2])) / 2;
    const y = Math.sign(R[0][2] - R[2][0]) * Math.sqrt(Math.max(0, 1 - R[0][0] + R[1][1] - R[2][2])) / 2;
    const z = Math.sign(R[1][0] - R[0][1]) * Math.sqrt(Math.max(0, 1 - R[0][0] - R[1][1] + R[2][2])) / 2;
    return [x, y, z, w];
  }

  function home() {
    viewer.zoomTo();
    const q = broadSide();
    if (q) { const view = viewer.getView(); viewer.setView([...view.slice(0, 4), ...q]); }
    viewer.rotate(-28, "x");
    viewer.rotate(18, "y");
    fit();
    moved = false;
  }

  /* The nearest position of 3Dmol's camera from which the whole molecule is seen, with a margin for its surfaces. */
  const CAMERA = 150, SLOPE = Math.tan(10 * Math.PI / 180); /* its distance from the origin, half of its angle of view */
  function fit() {
    const margin = data.surfaces.length ? 1.8 : 1.3, wide = SLOPE * stage.clientWidth / Math.max(stage.clientHeight, 1);
    const view = viewer.getView(), q = view.slice(4, 8), back = [-q[0], -q[1], -q[2], q[3]];
    const seen = data.atoms.map((atom) => rotate(q, atom.slice(1)));
    const middle = [0, 1, 2].map((x) => (Math.max(...seen.map((p) => p[x])) + Math.min(...seen.map((p) => p[x]))) / 2);
    const distance = Math.max(...seen.map((p) => {
      const [x, y, z] = p.map((value, k) => value - middle[k]);
      return z + Math.max((Math.abs(x) + margin) / wide, (Math.abs(y) + margin) / SLOPE);
    }));
    const centre = rotate(back, middle);
    viewer.setView([-centre[0], -centre[1], -centre[2], CAMERA - distance, ...q]);
    viewer.render();
  }

  /* q v q*, the rotation of a vector by a unit quaternion. */
  function rotate([x, y, z, w], [a, b, c]) {
    const t = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
    return [a + w * t[0] + y * t[2] - z * t[1], b + w * t[1] + z * t[0] - x * t[2], c + w * t[2] + x * t[1] - y * t[0]];
  }

  /* From the negative to the positive side, through the middle of the molecule. */
  function drawArrow() {
    if (arrow) viewer.removeShape(arrow);
    if (arrowLabel) viewer.removeLabel(arrowLabel);
    arrow = arrowLabel = null;
    if (state.arrow && !hidden) {
      const size = Math.hypot(...data.dipole), n = data.atoms.length;
      const middle = [1, 2, 3].map((x) => data.atoms.reduce((s, a) => s + a[x], 0) / n);
      const half = Math.min(Math.max(0.6 * size, 0.9), 6), unit = data.dipole.map((x) => x / size);
      const [start, end] = [-half, half].map((s) => ({ x: middle[0] + s * unit[0], y: middle[1] + s * unit[1], z: middle[2] + s * unit[2] }));
      arrow = viewer.addArrow({ start, end, radius: 0.1, radiusRatio: 2.4, mid: 0.82, color: "#b14fd8" });
      arrowLabel = viewer.addLabel(`${size.toFixed(2)} D`, { position: end, fontSize: 12, fontColor: "white",
        backgroundColor: "#6b2a86", backgroundOpacity: 0.85, inFront: true, borderThickness: 0 });
    }
    stage.dataset.arrow = arrow ? "1" : "0";
    viewer.render();
  }

  function start() {
    viewer = $3Dmol.createViewer(stage, { antialias: true, disableFog: true });
    paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    model = viewer.addModel();
    model.addAtoms(data.atoms.map(([elem, x, y, z], serial) => ({ elem, x, y, z, serial, bonds: [], bondOrder: [] })));
    connect(model.selectedAtoms({}));
    stage.classList.add("ready");
    drawAtoms();
    home();
    new ResizeObserver(() => { viewer.resize(); if (moved) viewer.render(); else fit(); }).observe(stage);
    let active = false;
    stage.addEventListener("pointerdown", () => { active = moved = true; });
    stage.addEventListener("pointerleave", () => { active = false; });
    stage.addEventListener("wheel", (event) => { if (!active) event.stopImmediatePropagation(); }, { capture: true });
    window.report = { viewer, state, surfaceNet, unpack, data, place, showSurface };
  }

  /* Move the atoms (Angstrom) and draw them again. */
  function place(positions) {
    current = positions;
    const atoms = model.selectedAtoms({});
    atoms.forEach((atom, a) => {
      [atom.x, atom.y, atom.z] = positions[a];
      atom.bonds = []; atom.bondOrder = [];
    });
    connect(atoms);
    drawAtoms();
  }

  /* Orbitals belong to one geometry: they are hidden at others. */
  function showSurface(shown) {
    if (hidden === !shown) return;
    hidden = !shown;
    drawSurface();
    if (data.dipole) drawArrow();
  }

  /* Bonds where two atoms are nearer than 1.2 times their radii (Angstrom; B. Cordero et al., doi:10.1039/b801115j). */
  function connect(atoms) {
    const RADII = { H: 0.31, He: 0.28, Li: 1.28, Be: 0.96, B: 0.84, C: 0.76, N: 0.71, O: 0.66, F: 0.57, Ne: 0.58, Na: 1.66,
      Mg: 1.41, Al: 1.21, Si: 1.11, P: 1.07, S: 1.05, Cl: 1.02, Ar: 1.06, K: 2.03, Ca: 1.76, Br: 1.2, I: 1.39 };
    const radius = (a) => a.elem.startsWith("Gh-") ? 0 : RADII[a.elem] ?? 1.45;
    for (let i = 0; i < atoms.length; i++) for (let j = 0; j < i; j++) {
      const a = atoms[i], b = atoms[j];
      if (Math.hypot(a.x - b.x, a.y - b.y, a.z - b.z) > 1.2 * (radius(a) + radius(b))) continue;
      a.bonds.push(j); a.bondOrder.push(1);
      b.bonds.push(i); b.bondOrder.push(1);
    }
  }

  /* Transparent surfaces need a background that the viewer knows. */
  function paint() {
    viewer.setBackgroundColor(getComputedStyle(document.documentElement).getPropertyValue("--stage").trim(), 1);
    viewer.render();
  }

  function showLevel() {
    const slider = document.getElementById("isovalue");
    if (!slider) return;
    const own = data.surfaces.find((s) => s.key === chosen("surface"))?.level;
    if (Boolean(own) !== Boolean(ownLevel)) { /* densities and orbitals have levels of their own */
      const before = slider.value;
      slider.value = own ? 100 * Math.log(own / LOWEST) / Math.log(RANGE) : ownLevel.before;
      ownLevel = own ? { before } : null;
    }
    state.level = LOWEST * Math.pow(RANGE, slider.value / 100);
    document.getElementById("isovalue-text").textContent = "\u00b1" + state.level.toPrecision(2);
  }

  function wire() {
    document.querySelectorAll(".controls input[type=radio]").forEach((box) => box.addEventListener("change", () => {
      state[box.name] = box.value;
      if (box.name === "surface") { showLevel(); drawSurface(); } else drawAtoms();
    }));
    document.getElementById("isovalue")?.addEventListener("input", () => { showLevel(); drawSurface(); });
    document.getElementById("reset").addEventListener("click", home);
    document.getElementById("spin").addEventListener("click", (event) => {
      turn = turn ? 0 : 1;
      event.target.setAttribute("aria-pressed", Boolean(turn));
      viewer.spin(turn ? "y" : false, 0.5);
    });
    document.getElementById("arrow")?.addEventListener("click", (event) => {
      state.arrow = !state.arrow;
      event.target.setAttribute("aria-pressed", state.arrow);
      drawArrow();
    });
    document.getElementById("save").addEventListener("click", () => save(viewer.pngURI(), "molecule.png"));
  }

  function save(address, name) {
    const link = document.createElement("a");
    link.href = address; link.download = name;
    link.click();
  }

  function wirePage() {
    document.getElementById("theme").addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      if (viewer) paint();
    });
    document.querySelectorAll('input[name="charges"]').forEach((box) => box.addEventListener("change", () =>
      document.querySelectorAll("[data-pane]").forEach((pane) => { pane.hidden = pane.dataset.pane !== box.value; })));
    document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
      const text = document.getElementById(`text-${button.dataset.copy}`).textContent;
      if (button.dataset.file) { save(URL.createObjectURL(new Blob([text])), button.dataset.file); return; }
      try { await navigator.clipboard.writeText(text); } catch { selectText(button.dataset.copy); return; }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    }));
  }

  function selectText(key) {
    const range = document.createRange();
    range.selectNodeContents(document.getElementById(`text-${key}`));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }

  wirePage();
  showLevel();
  try {
    start();
  } catch (error) {
    stage.querySelector(".missing").textContent = "This browser has no WebGL, which the picture needs.";
    stage.dataset.failed = String(error);
    return;
  }
  wire();
  state.surface = chosen("surface");
  drawSurface();
})();
