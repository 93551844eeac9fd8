"use strict";
// The colours of the figures (drawing.py) on a dark page. Scales run from the background to the foreground on both.
const DARK = {
  "#ffffff": "#14181f", "#1a202c": "#e6edf3", "#4a5568": "#a9b4c2", "#a0aec0": "#66758a", "#8a8a8a": "#9a9a9a",
  "#2b6cb0": "#63b3ed", "#dd8a1d": "#f6ad55", "#c53030": "#fc8181", "#97266d": "#f687b3", "#702459": "#d6a3e8", "#c05621": "#f6ad55",
  "#2f855a": "#68d391", "#6b46c1": "#b794f4", "#b83280": "#f687b3", "#2c7a7b": "#4fd1c5", "#975a16": "#ecc94b",
  "#edf4fb": "#1c2733", "#9ecae1": "#24496b", "#4292c6": "#3182bd", "#08519c": "#7ab8e6", "#08306b": "#d6ebfb",
  "#440154": "#fde725", "#3b528b": "#5ec962", "#5ec962": "#3b528b", "#fde725": "#440154",
};
const root = document.documentElement;
const charts = [...document.querySelectorAll(".chart")];

function remembered(storage, name) {
  try { return storage.getItem(name); } catch { return null; }  // a browser may forbid storage
}

function remember(storage, name, value) {
  try { storage.setItem(name, value); } catch { /* not remembered */ }
}

function recoloured(value, isColour) {
  if (Array.isArray(value)) return value.map((part) => recoloured(part, isColour));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, recoloured(part, isColour || name.includes("color"))]));
  }
  return (isColour && DARK[value]) || value;
}

function template() {
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true, title: { standoff: 12 } };
  return { layout: {
    paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper"), font: { color: colour("--ink"), size: 13, family: "system-ui, sans-serif" },
    xaxis: axis, yaxis: axis, modebar: { color: colour("--muted"), activecolor: colour("--link"), bgcolor: "rgba(0,0,0,0)" },
    hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--muted"), font: { color: colour("--ink") }, align: "left" },
    updatemenudefaults: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--muted") } } } };
}

function draw(chart) {
  if (!window.Plotly) {
    chart.textContent = "The plotting library is missing: this page needs access to cdn.plot.ly.";
    return;
  }
  if (chart.closest("details:not([open])")) return;  // a hidden figure has no width
  const made = JSON.parse(chart.nextElementSibling.textContent);
  const isDark = root.dataset.theme === "dark";
  const { data, layout } = isDark ? recoloured(made, false) : made;
  Plotly.newPlot(chart, data, { ...layout, template: template() }, { displaylogo: false, responsive: true });
  chart.dataset.drawn = root.dataset.theme;
}

function setTheme(theme) {
  root.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
  charts.forEach(draw);
}

function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const details = target && target.closest("details");
  if (details && !details.open) {
    details.open = true;
    requestAnimationFrame(() => target.scrollIntoView());
  }
}

async function copy(button) {
  const text = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {  // no permission: the text is selected for Ctrl-C
    getSelection().selectAllChildren(text);
    button.textContent = "Selected: press Ctrl-C";
  }
}

// A page that follows a run reloads itself, and keeps the scroll position and the open parts.
function follow(seconds) {
  const foldings = [...document.querySelectorAll("details")];
  const place = remembered(sessionStorage, location.pathname);
  if (place) {
    const { top, open } = JSON.parse(place);
    foldings.forEach((details, number) => { details.open = open[number] ?? details.open; });
    history.scrollRestoration = "manual";
    scrollTo(0, top);
  }
  addEventListener("pagehide", () => {
    remember(sessionStorage, location.pathname, JSON.stringify({ top: scrollY, open: foldings.map((details) => details.open) }));
  });
  if (seconds > 0) setTimeout(() => location.reload(), 1000 * seconds);
}

document.querySelectorAll(".code button").forEach((button) => button.addEventListener("click", () => copy(button)));
document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", () => {
  charts.filter((chart) => details.contains(chart) && chart.dataset.drawn !== root.dataset.theme).forEach(draw);
}));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
addEventListener("hashchange", openTarget);
document.getElementById("theme").addEventListener("click", () => {
  const theme = root.dataset.theme === "dark" ? "light" : "dark";
  remember(localStorage, "theme", theme);
  setTheme(theme);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (query) => {
  if (!remembered(localStorage, "theme")) setTheme(query.matches ? "dark" : "light");
});
follow(Number(root.dataset.reload || 0));
openTarget();
setTheme(remembered(localStorage, "theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
