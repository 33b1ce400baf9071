/* Moving atoms: the slider through an optimisation, and normal modes that a click animates. */
(() => {
  "use strict";
  const report = window.report;
  if (!report) return;
  const { data, place, showSurface } = report, stage = document.getElementById("viewer");
  const CYCLES = 1.1, LARGEST = 0.45; /* per second; Angstrom */
  const rest = data.atoms.map((atom) => atom.slice(1));
  let running = 0, playing = -1;

  function stop() {
    cancelAnimationFrame(running);
    running = 0;
    if (playing < 0) return;
    playing = -1;
    mark();
    place(rest);
    showSurface(true);
  }

  function play(k) {
    const again = k === playing;
    stop();
    if (again) return;
    playing = k;
    mark();
    showSurface(false);
    const mode = data.vibrations.modes[k];
    const scale = LARGEST / Math.max(...mode.map((d) => Math.hypot(...d)));
    const begin = performance.now();
    const tick = (now) => {
      const s = scale * Math.sin((now - begin) / 1000 * CYCLES * 2 * Math.PI);
      place(rest.map((r, a) => r.map((x, i) => x + s * mode[a][i])));
      running = requestAnimationFrame(tick);
    };
    running = requestAnimationFrame(tick);
  }

  function mark() {
    stage.dataset.mode = playing;
    document.querySelectorAll("[data-mode]").forEach((one) =>
      one.classList.toggle("playing", Number(one.dataset.mode) === playing));
  }

  /* Sum of Lorentzian bands, as in cuanto.report.motion.band_heights. */
  function drawBands() {
    const slider = document.getElementById("broadening"), { wavenumbers, intensities, frame, points } = data.vibrations;
    const half = slider.value / 2, shown = [];
    for (let i = 0; i < points; i++) {
      const nu = frame.x_high + (frame.x_low - frame.x_high) * i / (points - 1);
      let height = 0;
      wavenumbers.forEach((w, k) => { if (w > 0) height += intensities[k] * half * half / ((nu - w) ** 2 + half * half); });
      const x = frame.left + (frame.right - frame.left) * (nu - frame.x_low) / (frame.x_high - frame.x_low);
      const y = frame.bottom - (frame.bottom - frame.top) * Math.min(height / frame.y_high, 1);
      shown.push(`${x.toFixed(2)},${y.toFixed(2)}`);
    }
    document.getElementById("spectrum-curve").setAttribute("points", shown.join(" "));
    document.getElementById("broadening-text").textContent = `${slider.value} cm\u207b\u00b9`;
  }

  function showStep(k) {
    stop();
    const { frames, words, places } = data.path, marker = document.getElementById("step-marker");
    document.getElementById("geometry").value = k;
    document.getElementById("geometry-text").textContent = words[k];
    marker.setAttribute("x1", places[k]);
    marker.setAttribute("x2", places[k]);
    stage.dataset.step = k;
    showSurface(k === frames.length - 1);
    place(frames[k]);
  }

  if (data.vibrations) {
    document.querySelectorAll("[data-mode]").forEach((one) =>
      one.addEventListener("click", () => play(Number(one.dataset.mode))));
    document.getElementById("broadening").addEventListener("input", drawBands);
  }
  if (data.path) {
    document.getElementById("geometry").addEventListener("input", (event) => showStep(Number(event.target.value)));
    document.querySelectorAll("[data-step]").forEach((one) =>
      one.addEventListener("click", () => showStep(Number(one.dataset.step))));
  }
})();
