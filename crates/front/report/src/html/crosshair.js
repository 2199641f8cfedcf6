"use strict";
// Reads values off the curves under the pointer. The page is complete without it.
for (const svg of document.querySelectorAll("svg[data-chart]")) {
  const curves = [...svg.querySelectorAll("polyline[data-values]")].map((line) => ({
    line,
    name: line.dataset.name.replace(/ [\d.]+ \S+$/, ""),
    values: line.dataset.values.split(" "),
    points: line.getAttribute("points").split(" ").map((p) => p.split(",").map(Number)),
  }));
  if (!curves.length) continue;
  const [x0, x1] = svg.dataset.x.split(" ").map(Number);
  const [top, bottom] = svg.dataset.y.split(" ").map(Number);
  const until = Number(svg.dataset.until);
  const figure = svg.closest("figure");
  const shape = (tag, className) => {
    const element = document.createElementNS(svg.namespaceURI, tag);
    element.setAttribute("class", className);
    element.style.visibility = "hidden";
    svg.append(element);
    return element;
  };
  const hair = shape("line", "hair");
  hair.setAttribute("y1", top);
  hair.setAttribute("y2", bottom);
  const dots = curves.map(({ line }) => {
    const dot = shape("circle", "dot " + line.getAttribute("class").replace("curve", ""));
    dot.setAttribute("r", 4);
    return dot;
  });
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);

  const hide = () => {
    tip.hidden = true;
    for (const element of [hair, ...dots]) element.style.visibility = "hidden";
  };
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    if (x < x0 - 4 || x > x1 + 4) return hide();
    const lead = curves.reduce((a, b) => (b.points.length > a.points.length ? b : a));
    const nearest = (points) =>
      points.reduce((best, p, i) => (Math.abs(p[0] - x) < Math.abs(points[best][0] - x) ? i : best), 0);
    const at = lead.points[nearest(lead.points)][0];
    hair.setAttribute("x1", at);
    hair.setAttribute("x2", at);
    hair.style.visibility = "visible";
    const rows = [`${(((at - x0) / (x1 - x0)) * until).toFixed(2)} s`];
    curves.forEach(({ name, values, points }, i) => {
      const index = nearest(points);
      const [px, py] = points[index];
      const beyond = Math.abs(px - at) > 20;
      dots[i].setAttribute("cx", px);
      dots[i].setAttribute("cy", py);
      dots[i].style.visibility = beyond || py < top - 1 ? "hidden" : "visible";
      if (!beyond) rows.push(`${name} ${values[index]} ${svg.dataset.chart}`.trim());
    });
    tip.textContent = rows.join("\n");
    tip.hidden = false;
    const outer = figure.getBoundingClientRect();
    const left = box.left - outer.left + at / scale;
    const flip = left + 14 + tip.offsetWidth > outer.width;
    tip.style.left = `${Math.max(0, flip ? left - 14 - tip.offsetWidth : left + 14)}px`;
    tip.style.top = `${box.top - outer.top + top / scale + 8}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
}
