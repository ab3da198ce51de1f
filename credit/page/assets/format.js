"use strict";
/* Elements, numbers, tables, charts and the theme. Text is only ever set as text. */
const page = (() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("data");
  const views = read("views");

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child != null) element.append(child);
    return element;
  }

  /* Text whose parts between backticks are code, and whose percentages stay in one line. */
  const prose = (text) => text.replaceAll(" %", "\u00a0%").split(/`([^`]+)`/).map((part, i) => (i % 2 ? make("code", {}, part) : part));

  /* As `graphs.text.percent`: what is not none or all does not read so. */
  const percent = (share, digits = 0) => {
    const least = 10 ** -digits, part = 100 * share;
    const text = part > 0 && part < least / 2 ? `<${least.toFixed(digits)}` : part >= 100 - least / 2 && part < 100 ? `>${(100 - least).toFixed(digits)}`
      : (Math.floor(part / least + 0.5) * least).toFixed(digits);
    return `${text}\u00a0%`;
  };
  /* As `graphs.text.apart`: numbers that stand together, with as few digits as tell different ones apart. */
  const apart = (numbers, write, digits, beside) => {
    const known = [...numbers, beside].filter((number) => number != null).sort((a, b) => a - b);
    const dust = 1e-9 * Math.max(0, ...known.map(Math.abs));
    const told = (n) => known.every((number, i) => !i || number - known[i - 1] <= dust || write(number, n) !== write(known[i - 1], n));
    let n = digits;
    while (n < 12 && !told(n)) n += 1;
    return numbers.map((number) => (number == null ? "–" : write(Math.abs(number) > dust ? number : 0, n < 12 ? n : digits)));
  };

  const ended = (text) => (/[.…]$/.test(text) ? text : `${text}.`);
  /* Without a capital where it begins with a name, such as v3.1. */
  const sentence = (text) => ended(/^\p{L}\S*[\d_.]\S/u.test(text) ? text : `${text[0].toUpperCase()}${text.slice(1)}`);

  const whole = new Intl.NumberFormat("en-US");
  function number(value, signed = false, digits = 4) {
    if (value == null) return "–";
    if (Number.isInteger(value) && !signed) return whole.format(value).replace("-", "−");
    const size = Math.abs(value);
    const text = size >= 10 ** (digits - 1) ? whole.format(Math.round(size)) : size !== 0 && size < 1e-3 ? size.toExponential(digits - 2) : String(+size.toPrecision(digits));
    return (value < 0 ? "−" : signed && value > 0 ? "+" : "") + text;
  }
  /* 0 for what is no more than rounding of amounts of a size. */
  const undusted = (value, size) => (value != null && Math.abs(value) < 1e-6 * size ? 0 : value);
  const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

  /* How many characters from the beginning tell ids apart, from LEAST on. */
  const LEAST = 10;
  const beginning = (ids) => {
    const every = [...new Set(ids)].sort();
    let n = LEAST;
    every.forEach((id, i) => { while (i && n < id.length && every[i - 1].slice(0, n) === id.slice(0, n)) n += 1; });
    return n;
  };

  /* A name, which may be broken behind an underscore or a slash. */
  const breakable = (name) => name.split(/(?<=[_/])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));

  /* columns: [title, value of a row, "n" for numbers, "t" for texts, "i" for ids, ids that these stand among]; a value may
     be an element, or several. An id shows its beginning, and is copied whole. A table that is wider than its place
     becomes cards: nothing hides behind an edge. */
  function table(columns, rows, caption, most = 50) {
    const body = make("tbody");
    const add = (from, to) => {
      for (const row of rows.slice(from, to)) {
        body.append(make("tr", {}, columns.map(([title, value, kind]) => {
          const cell = value(row) ?? "–";
          const parts = [cell].flat().map((part) => (part instanceof Node ? part : kind === "i" ? make("span", {}, part) : kind ? String(part) : breakable(String(part))));
          if (kind === "i") parts.forEach((part) => { part.title = part.textContent; });
          return make("td", { class: cell === "–" ? `${kind ?? ""} none` : kind, "data-label": title }, parts.flat());
        })));
      }
      columns.forEach(([, , kind, others = []], i) => {
        if (kind !== "i") return;
        const cells = [...body.rows].map((row) => row.cells[i]);
        const n = beginning([...others, ...cells.flatMap((cell) => [...cell.children].map((part) => part.title))]);
        cells.forEach((cell) => cell.style.setProperty("--beginning", n));
      });
    };
    add(0, most);
    const head = make("thead", {}, make("tr", {}, columns.map(([title, , kind]) => make("th", { class: kind, scope: "col" }, breakable(title)))));
    const plain = make("table", {}, head, body);
    const whole_ = make("div", { class: "scroll", role: "region", "aria-label": caption }, plain);
    const settle = () => { plain.classList.remove("cards"); plain.classList.toggle("cards", whole_.scrollWidth > whole_.clientWidth); };
    let width = 0;
    new ResizeObserver(() => { if (whole_.clientWidth && whole_.clientWidth !== width) { width = whole_.clientWidth; settle(); } }).observe(whole_);
    if (rows.length > most) {
      const more = make("button", { type: "button", class: "more", onclick: () => { add(most, rows.length); more.remove(); settle(); } },
        `Show all ${number(rows.length)}`);
      whole_.append(more);
    }
    return whole_;
  }

  /* As `credit.cli.shared.answers.explain`: a line for each term that a table has and whose name does not say what it is.
     A star stands at the end of a cell. */
  function explained(columns, rows, ...terms) {
    const is_there = (where) => {
      const at = where.lastIndexOf(": ") + 2, begin = at < 2 ? where : where.slice(at);
      const of = at < 2 ? columns : columns.filter(([title]) => title === where.slice(0, at - 2));
      const has = (cell) => (begin === "*" || begin === "†" ? cell.endsWith(` ${begin}`) : begin ? cell.startsWith(begin) : !["", "0", "–"].includes(cell));
      return !where || rows.some((row) => of.some(([, value]) => has(String(value(row) ?? "–"))));
    };
    return make("div", { class: "terms" }, terms.filter(([where]) => is_there(where)).map(([, line]) => make("p", { class: "note" }, prose(line))));
  }

  function facts(rows) {
    return make("table", { class: "facts" }, make("tbody", {}, rows.filter(([, value]) => value != null).map(([name, value]) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)))));
  }

  function choice(name, options, change, chosen) {
    const select = make("select", { onchange: () => change(select.value) },
      options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
    return [make("label", {}, name, select), select];
  }

  const section = (id, title, ...children) => {
    document.querySelector("nav").append(make("a", { href: `#${id}` }, title));
    const heading = `${id}-title`;
    const element = make("section", { id, "aria-labelledby": heading }, make("h2", { id: heading }, title), ...children);
    document.getElementById("main").append(element);
    return element;
  };

  /* What logs do not tell: a line for a section that would hold nothing, and a row for a question. Both stand in one
     section behind the others, and what a line holds is drawn when it is opened: a chart has no width before. */
  const lines = [], questions = [];
  const untold = (id, title, why, fill, ...parts) => lines.push(make("details", { id, ontoggle: fill }, make("summary", {}, `${title}: ${why}`), ...parts));
  const unanswered = (question, why) => {
    const same = questions.find((row) => row.why === why);
    if (same) same.question += `, ${question[0].toLowerCase()}${question.slice(1)}`;
    else questions.push({ question, why });
  };
  const rest = () => (!lines.length && !questions.length ? null : section("untold", "What these logs do not tell", ...lines,
    !questions.length ? null : make("details", {}, make("summary", {}, `Questions without an answer (${number(questions.length)})`),
      table([["question", (r) => r.question], ["why", (r) => r.why, "t"]], questions, "Questions without an answer"))));

  /* Sections to the front, in this order, with their links. */
  const lead = (...ids) => {
    document.getElementById("main").prepend(...ids.map((id) => document.getElementById(id)));
    document.querySelector("nav").prepend(...ids.map((id) => document.querySelector(`nav a[href="#${id}"]`)));
  };

  /* Theme: the system's until the button is pressed. Charts are drawn again after each change. */
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const charts = new Set();
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  let asked = null;
  const themed = (theme) => { root.dataset.theme = theme; charts.forEach((draw) => draw()); };
  const settle = () => themed(asked ?? (system.matches ? "dark" : "light"));
  root.dataset.theme = system.matches ? "dark" : "light";
  system.addEventListener("change", settle);
  const turn = document.getElementById("theme");
  turn.hidden = false;
  turn.addEventListener("click", () => {
    asked = root.dataset.theme === "dark" ? "light" : "dark";
    settle();
  });
  /* A page is printed as soon as `beforeprint` ends, so charts are drawn at once, all of them, and as wide as paper. */
  const PAPER = 720;
  let printing = false;
  addEventListener("beforeprint", () => { printing = true; themed("light"); });
  addEventListener("afterprint", () => { printing = false; settle(); });

  /* A chart that draws itself when it comes into view, and again after a change of theme or width. Charts out of view
     follow once the page has loaded, one at a time, for pictures of the whole page; those of very many traces wait. */
  const MOST_DRAWN = 2000; // traces
  const pending = [];
  addEventListener("load", () => {
    const idle = window.requestIdleCallback ?? setTimeout;
    const next = () => { const draw = pending.shift(); if (draw) { draw(); idle(next); } };
    if (data.overview.traces.length <= MOST_DRAWN) idle(next);
  });
  function chart(label, option) {
    const box = make("div", { class: "chart", role: "img", "aria-label": label });
    let drawn = null;
    const draw = () => {
      box.querySelector(".paper")?.remove();
      if (!box.clientWidth || !(box.dataset.seen || drawn || printing)) return;
      const chosen = option();
      if (!chosen) { box.style.height = "0"; return; }
      box.style.height = `${chosen.height}px`;
      drawn ??= echarts.init(box);
      drawn.resize(printing ? { width: Math.round(PAPER * box.clientWidth / document.getElementById("main").clientWidth) } : { width: "auto" });
      drawn.setOption({ animation: false, textStyle: { fontFamily: getComputedStyle(box).fontFamily, color: color("text") }, ...chosen.option }, true);
      if (printing) { // a chart may have several layers, of which paper shows the last; this draws all into one
        const paper = drawn.renderToCanvas({ pixelRatio: 2, backgroundColor: color("surface") });
        paper.className = "paper"; paper.removeAttribute("style");
        box.append(paper);
      }
    };
    const appear = () => { if (!box.dataset.seen) { seen.disconnect(); box.dataset.seen = "1"; draw(); } };
    const seen = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) appear(); }, { rootMargin: "400px" });
    pending.push(appear);
    box.style.height = "120px";
    seen.observe(box);
    let width = 0;
    new ResizeObserver(() => { if (!printing && box.clientWidth !== width) { width = box.clientWidth; draw(); } }).observe(box);
    charts.add(draw);
    return { box, draw, instance: () => drawn };
  }

  const axis = (extra = {}) => ({
    axisLine: { lineStyle: { color: color("line") } }, axisTick: { show: false },
    axisLabel: { color: color("soft"), fontSize: 12, hideOverlap: true, ...(extra.split === false ? {} : { formatter: (v) => number(v) }), ...extra.axisLabel },
    splitLine: { show: extra.split ?? true, lineStyle: { color: color("line"), opacity: 0.6 } },
    nameTextStyle: { color: color("soft"), fontSize: 12 }, nameLocation: "middle", nameGap: 30, ...extra.more,
  });
  /* An element of text that lets the pointer through: a hint drawn on the canvas would take the clicks of the marks below it. */
  const tooltip = (formatter) => ({
    renderMode: "html", trigger: "item", confine: true, formatter: (at) => { const text = formatter(at); return text ? make("div", {}, text) : ""; },
    backgroundColor: color("surface"), borderColor: color("line"), transitionDuration: 0, textStyle: { color: color("text"), fontSize: 12 },
    extraCssText: "max-width: min(26rem, 80%); white-space: pre-wrap; overflow-wrap: anywhere; pointer-events: none;",
  });
  const zoom = (of) => ({ type: "slider", filterMode: "none", borderColor: color("line"), fillerColor: color("accent") + "22",
    handleStyle: { color: color("surface"), borderColor: color("soft") }, textStyle: { color: color("soft") }, showDataShadow: false,
    brushSelect: false, ...of });
  const margin = (most) => Math.round(Math.min(most, innerWidth * 0.36)); // for names on the left of a chart
  const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

  return { data, views, make, beginning, prose, ended, sentence, number, percent, apart, undusted, plural, table, explained, facts, choice, section, untold, unanswered, rest, lead, chart, charts, color, axis, tooltip, zoom, margin, cut };
})();
