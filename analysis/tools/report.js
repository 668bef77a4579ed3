"use strict";
/* The charts of a report: curves with bands and points with error bars, drawn as SVG from the numbers in the page, for the
 * policies that are switched on. A chart is read with the pointer, or with the arrow keys when it has the focus. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const on = data.policies.map((policy) => policy.on);
  const SVG = "http://www.w3.org/2000/svg";
  const TIP = 14; // policies that a tip lists
  const DECADES = 1e8; // what is lower than the highest value over this ends a log axis
  const DECADE = 10; // values that span more than this have a log axis, where the chart may have one

  const number = (value) => {
    if (value === null) return "";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
    return String(Number(value.toPrecision(4)));
  };

  const element = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  const colours = (node, p) => {
    node.dataset.p = p;
    node.style.setProperty("--light", data.policies[p].colour);
    node.style.setProperty("--dark", data.policies[p].dark);
    return node;
  };

  /* A scale from [low, high] to [from, to]; `ticks` are round numbers, about `count` of them. */
  const scale = (low, high, log, from, to, count) => {
    if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
    const place = log ? Math.log : (value) => value;
    const [a, b] = [place(low), place(high)];
    const at = (value) => from + ((place(value) - a) / (b - a)) * (to - from);
    let ticks = [];
    if (log) {
      const decades = Math.log10(high / low);
      const steps = decades > 3 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 5];
      for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) for (const step of steps) ticks.push(step * 10 ** e);
      ticks = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
      const every = Math.ceil(ticks.length / count);
      ticks = ticks.filter((_, i) => i % every === 0);
    }
    if (ticks.length < 2) {
      const raw = (high - low) / count, unit = 10 ** Math.floor(Math.log10(raw));
      const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw);
      ticks = [];
      for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Number(tick.toPrecision(12)));
    }
    return { at, ticks };
  };

  const extent = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

  /* The axes of a chart, around values in [xs, ys]; returns where x and y are. */
  const axes = (svg, chart, width, height, xs, ys) => {
    const left = 46, bottom = 40, top = 10, right = 20;
    let [low, high] = extent(ys);
    if (chart.wide && high > 0 && low < high / DECADES) low = Math.max(high / DECADES, extent(ys.filter((value) => value > 0))[0]);
    if (!Number.isFinite(low)) [low, high] = [0, 1];
    const logy = chart.wide && low > 0 && high > DECADE * low;
    if (logy) [low, high] = [low / 1.15, high * 1.15];
    else {
      const base = chart.kind === "points" || chart.ideal !== null ? low - 0.08 * (high - low) : Math.min(0, low); // values near a number, or from 0 up
      [low, high] = [base, high + 0.08 * (high - base)];
    }
    let [first, last] = xs.length ? extent(xs) : [1, 10];
    if (chart.kind === "points") [first, last] = [first / 1.6, last * 1.6];
    const x = scale(first, last, chart.logx, left, width - right, Math.max(3, Math.floor(width / 80)));
    const y = scale(low, high, logy, height - bottom, top, 6);
    for (const tick of y.ticks) {
      element(svg, "line", { x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick), class: "grid" });
      element(svg, "text", { x: left - 5, y: y.at(tick) + 4, "text-anchor": "end" }, number(tick));
    }
    for (const tick of x.ticks) element(svg, "text", { x: x.at(tick), y: height - bottom + 16, "text-anchor": "middle" }, number(tick));
    element(svg, "line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "grid" });
    element(svg, "text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, chart.xlabel);
    return { x: x.at, y: (value) => y.at(logy ? Math.max(value, low) : value), bottom: height - bottom, top, left, right: width - right };
  };

  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

  const drawCurves = (svg, chart, width, height) => {
    const shown = on.map((is, p) => p).filter((p) => on[p] && chart.mean[p].some((value) => value !== null));
    const known = (values) => values.filter((value) => value !== null);
    const values = shown.flatMap((p) => known(chart.mean[p].map((mean, i) => (mean === null ? null : mean + (chart.se[p][i] ?? 0)))).concat(known(chart.mean[p])));
    if (chart.floor) values.push(...known(chart.floor));
    if (chart.ideal !== null) values.push(chart.ideal);
    const at = axes(svg, chart, width, height, chart.x, values);
    if (chart.floor) {
      const line = chart.floor.map((value, i) => [chart.x[i], value]).filter(([, value]) => value !== null).map(([x, value]) => [at.x(x), at.y(value)]);
      if (line.length && chart.ideal === null) element(svg, "path", { d: `${path(line)}L${line.at(-1)[0]} ${at.bottom}L${line[0][0]} ${at.bottom}Z`, class: "floor" });
      if (line.length) element(svg, "path", { d: path(line), class: "mark" });
    }
    if (chart.ideal !== null) element(svg, "path", { d: path([[at.left, at.y(chart.ideal)], [at.right, at.y(chart.ideal)]]), class: "mark" });
    for (const p of shown) {
      const group = colours(element(svg, "g", {}), p);
      const points = chart.x.map((x, i) => [x, chart.mean[p][i], chart.se[p][i] ?? 0]).filter(([, mean]) => mean !== null);
      const upper = points.map(([x, mean, se]) => [at.x(x), at.y(mean + se)]), lower = points.map(([x, mean, se]) => [at.x(x), at.y(mean - se)]);
      element(group, "path", { d: `${path(upper)}L${path(lower.reverse()).slice(1)}Z`, class: "band" });
      element(group, "path", { d: path(points.map(([x, mean]) => [at.x(x), at.y(mean)])), class: "series", "stroke-dasharray": data.policies[p].dash });
    }
    return {
      places: chart.x.map((x) => at.x(x)), at,
      read: (i) => ({ heading: `${chart.xlabel} ${number(chart.x[i])}`,
        rows: shown.map((p) => [p, chart.mean[p][i], chart.se[p][i]]).filter(([, mean]) => mean !== null).sort((a, b) => a[1] - b[1]),
        floor: chart.floor ? chart.floor[i] : null }),
    };
  };

  const drawPoints = (svg, chart, width, height) => {
    const shown = on.map((is, p) => p).filter((p) => on[p] && chart.mean[p] !== null && chart.cost[p] !== null && chart.cost[p] > 0)
      .sort((a, b) => chart.cost[a] - chart.cost[b]);
    const at = axes(svg, chart, width, height, shown.map((p) => chart.cost[p]), shown.flatMap((p) => [chart.mean[p] - (chart.se[p] ?? 0), chart.mean[p] + (chart.se[p] ?? 0)]));
    const front = chart.front.filter((p) => shown.includes(p));
    if (front.length > 1) element(svg, "path", { class: "front",
      d: path(front.flatMap((p, i) => [...(i ? [[at.x(chart.cost[p]), at.y(chart.mean[front[i - 1]])]] : []), [at.x(chart.cost[p]), at.y(chart.mean[p])]])) });
    const taken = shown.map((p) => [at.x(chart.cost[p]) - 5, at.x(chart.cost[p]) + 5, at.y(chart.mean[p])]); // where no name may stand
    for (const p of shown) {
      const group = colours(element(svg, "g", {}), p), x = at.x(chart.cost[p]), y = at.y(chart.mean[p]), se = chart.se[p] ?? 0;
      element(group, "line", { x1: x, x2: x, y1: at.y(chart.mean[p] + se), y2: at.y(chart.mean[p] - se), class: "bar" });
      element(group, "circle", { cx: x, cy: y, r: chart.front.includes(p) ? 6 : 4, class: "dot" });
      const name = data.policies[p].label, room = 6.4 * name.length;
      // Beside the point if there is room, else above or below it, ever farther away; where there is none, the pointer tells the name.
      const spots = [0, -14, 14, -27, 27, -40, 40].flatMap((up) => [[x + 9, up, "start", 0], [x - 9, up, "end", room], [x, up, "middle", room / 2]].slice(0, up ? 3 : 2));
      const free = spots.find(([from, up, , back]) => from - back >= 0 && from - back + room < at.right && y + up > at.top && y + up < at.bottom &&
        !taken.some(([a, b, height]) => a < from - back + room && b > from - back && Math.abs(height - y - up) < 13));
      if (!free) continue;
      const [from, up, anchor, back] = free;
      taken.push([from - back, from - back + room, y + up]);
      element(group, "text", { x: from, y: y + up + 4, "text-anchor": anchor, class: "name" }, name);
    }
    return {
      places: shown.map((p) => at.x(chart.cost[p])), heights: shown.map((p) => at.y(chart.mean[p])), at,
      read: (i) => ({ heading: `${number(chart.cost[shown[i]])} CPU seconds per run${chart.front.includes(shown[i]) ? "; on the front" : ""}`,
        rows: [[shown[i], chart.mean[shown[i]], chart.se[shown[i]]]], floor: null }),
    };
  };

  const draw = (figure) => {
    const width = figure.clientWidth;
    if (!width) return; // in a closed part of the page
    figure.width = width;
    const chart = data.charts[figure.dataset.chart], svg = figure.querySelector("svg"), height = Math.round(Math.min(340, Math.max(230, width * 0.62)));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    figure.drawn = (chart.kind === "curves" ? drawCurves : drawPoints)(svg, chart, width, height);
    hide(figure);
  };

  /* Reading values. */

  const hide = (figure) => {
    figure.querySelector(".tip").hidden = true;
    figure.querySelector(".cursor")?.remove();
    figure.index = undefined;
  };

  const show = (figure, i) => {
    const { places, heights, at, read } = figure.drawn, tip = figure.querySelector(".tip"), svg = figure.querySelector("svg");
    if (!places.length) return;
    i = Math.max(0, Math.min(places.length - 1, i));
    const { heading, rows, floor } = read(i);
    figure.querySelector(".cursor")?.remove();
    figure.index = i;
    const cursor = element(svg, "g", { class: "cursor" });
    if (heights) element(cursor, "circle", { cx: places[i], cy: heights[i], r: 9, class: "mark" });
    else element(cursor, "path", { d: path([[places[i], at.top], [places[i], at.bottom]]), class: "mark" });
    tip.replaceChildren(heading);
    const table = tip.appendChild(document.createElement("table"));
    for (const [p, mean, se] of rows.slice(0, TIP)) {
      const row = table.insertRow(), name = row.insertCell();
      name.append(colours(Object.assign(document.createElement("span"), { className: "swatch" }), p), data.policies[p].label);
      row.insertCell().textContent = number(mean) + (se === null ? "" : ` ± ${number(Number(se.toPrecision(2)))}`);
    }
    if (rows.length > TIP) table.insertRow().insertCell().textContent = `and ${rows.length - TIP} more`;
    if (floor !== null) {
      const row = table.insertRow();
      row.insertCell().textContent = "floor";
      row.insertCell().textContent = number(floor);
    }
    tip.hidden = false;
    const leftHalf = places[i] < (at.left + at.right) / 2;
    tip.style.left = leftHalf ? "auto" : "3rem";
    tip.style.right = leftHalf ? "0.5rem" : "auto";
  };

  const nearest = (figure, event) => {
    const box = figure.querySelector("svg").getBoundingClientRect(), { places, heights } = figure.drawn;
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const distance = (i) => Math.hypot(places[i] - x, heights ? heights[i] - y : 0);
    return places.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0);
  };

  for (const figure of charts) {
    const svg = figure.querySelector("svg");
    svg.addEventListener("pointermove", (event) => figure.drawn && show(figure, nearest(figure, event)));
    svg.addEventListener("pointerdown", (event) => figure.drawn && show(figure, nearest(figure, event)));
    svg.addEventListener("pointerleave", () => hide(figure));
    svg.addEventListener("blur", () => hide(figure));
    svg.addEventListener("keydown", (event) => {
      const last = figure.drawn ? figure.drawn.places.length - 1 : -1, now = figure.index ?? -1;
      const to = { ArrowRight: now + 1, ArrowLeft: now < 0 ? last : now - 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide(figure);
      if (to === undefined || last < 0) return;
      event.preventDefault();
      show(figure, to);
    });
  }

  /* Switches. */

  const list = document.querySelector(".switches .list"), state = document.querySelector(".switches .state");
  const switches = data.policies.map((policy, p) => {
    const button = colours(Object.assign(document.createElement("button"), { type: "button", className: "switch" }), p);
    const sample = element(button, "svg", { width: 26, height: 10, "aria-hidden": "true" });
    element(sample, "path", { d: "M1 5H25", class: "series", "stroke-dasharray": policy.dash });
    button.append(policy.label);
    const single = (value) => () => charts.forEach((figure) => {
      figure.classList.toggle("one", value && on[p]);
      figure.querySelectorAll(`svg [data-p="${p}"]`).forEach((node) => node.classList.toggle("it", value));
    });
    button.addEventListener("click", () => { on[p] = !on[p]; update(); single(on[p])(); });
    for (const [event, value] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) button.addEventListener(event, single(value));
    return button;
  });
  data.order.forEach((p) => list.append(switches[p]));

  const update = () => {
    switches.forEach((button, p) => button.setAttribute("aria-pressed", String(on[p])));
    const count = on.filter(Boolean).length;
    state.textContent = `${count} of ${on.length} policies are shown`;
    if (on.length > data.few) document.querySelectorAll("tr[data-row]").forEach((row) => { row.hidden = !on[row.dataset.row]; });
    charts.forEach(draw);
  };

  const set = (choose) => () => { on.forEach((_, p) => { on[p] = choose(p); }); update(); };
  const filter = document.getElementById("filter");
  const matches = (p) => !filter || data.policies[p].label.toLowerCase().includes(filter.value.toLowerCase());
  filter?.addEventListener("input", () => switches.forEach((button, p) => { button.hidden = !matches(p); }));
  document.getElementById("all").addEventListener("click", set((p) => on[p] || matches(p)));
  document.getElementById("none").addEventListener("click", set((p) => on[p] && !matches(p)));
  document.getElementById("best").addEventListener("click", set((p) => data.policies[p].on));

  document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", () => part.querySelectorAll(".chart").forEach(draw)));
  let wait;
  new ResizeObserver(() => { clearTimeout(wait); wait = setTimeout(() => charts.filter((figure) => figure.clientWidth !== figure.width).forEach(draw), 60); }).observe(document.body);
  addEventListener("beforeprint", () => charts.forEach(draw));
  update();
})();
